/// An answer as the upstream gave it.
final class Received: Sendable {
    /// Its number among all answers of the history.
    let number: Int
    let page: Page
    let scope: Scope
    let style: Style
    let isDated: Bool
    let listed: [Int]
    /// Every member of every object as it shows it.
    let shown: [Ref: [String: Shown]]
    /// The members on which it disagrees with itself: no observations (law 6).
    let slips: Slips
    let body: String
    let etag: String?
    /// Whether it may be used without asking for as long as the history takes.
    let isFresh: Bool
    /// Whether it may be served stale, while it is asked for again.
    let isServedStale: Bool
    /// How long before it was asked for it was made, in microseconds.
    let age: Int
    /// Whether it tells of objects at all.
    let hasObjects: Bool

    init(
        number: Int,
        page: Page,
        scope: Scope,
        style: Style,
        isDated: Bool,
        listed: [Int],
        shown: [Ref: [String: Shown]],
        slips: Slips = [:],
        body: String,
        etag: String?,
        isFresh: Bool,
        isServedStale: Bool = false,
        age: Int,
        hasObjects: Bool = true
    ) {
        (self.number, self.page, self.scope, self.style, self.isDated) = (number, page, scope, style, isDated)
        (self.listed, self.shown, self.slips, self.body, self.etag) = (listed, shown, slips, body, etag)
        (self.isFresh, self.isServedStale, self.age, self.hasObjects) = (isFresh, isServedStale, age, hasObjects)
    }
}

extension Received {
    /// What it tells of each object.
    var told: [Ref: [String: Shown]] {
        var told = shown
        for slip in slips.keys { told[slip.ref]?[slip.member] = nil }
        return told
    }

    /// What it shows of a member in one place, as it came.
    func shown(_ member: String, of ref: Ref, at place: String) -> Shown? {
        let slip = slips.first { $0.key.ref == ref && $0.key.member == member }
        return slip?.value[place] ?? shown[ref]?[member]
    }

    /// Whether it disagrees with itself on a member.
    func isContradictory(_ member: String, of ref: Ref) -> Bool {
        slips.keys.contains { $0.ref == ref && $0.member == member }
    }
}

/// One thing that Larder may know: a page, for one principal, in one representation.
struct Key: Hashable, Sendable, CustomStringConvertible {
    let page: Page
    let scope: Scope

    var description: String { "\(page.target) of \(scope)" }
}

/// A stored answer and what has become of it.
struct Document {
    let received: Received
    var isFresh: Bool
    var isServedStale: Bool
    /// When it was observed, or last found to hold.
    var moment: Moment
    /// Answers to the same question that were on their way together with this one: none is newer, any may have stayed.
    var rivals: [Document] = []

    init(_ received: Received, at moment: Moment) {
        (self.received, self.moment) = (received, moment)
        (isFresh, isServedStale) = (received.isFresh, received.isServedStale)
    }

    var candidates: [Document] { [self] + rivals }

    /// This one in the place of another, which it may have overlapped with.
    func replacing(_ other: Document?, overlaps: Bool) -> Document {
        var document = self
        if overlaps, let other { document.rivals = other.candidates }
        return document
    }

    /// This one, found to hold at a later moment.
    func renewed(at later: Moment, by answer: Received) -> Document {
        var document = self
        (document.isFresh, document.isServedStale) = (answer.isFresh, answer.isServedStale)
        document.moment.start = max(moment.start, later.start)
        document.moment.end = max(moment.end, later.end)
        return document
    }
}

/// Something told that Larder may not have taken in yet.
///
/// An answer is passed on before its objects are stored; they are stored in the order in which the answers ended.
enum Telling {
    case answer(Received, Moment, isDocument: Bool, overlaps: Bool = false)
    /// A 304: the document is as it was.
    case renewal(Key, Moment, by: Received)
}

/// One account of what Larder knows.
///
/// Where the laws leave open what it knows, there are several.
struct World {
    /// What it answers from.
    var documents: [Key: Document] = [:]
    /// What is left of that after a crash.
    var onDisk: [Key: Document] = [:]
    var knowledge: [Scope: Knowledge] = [:]
    var untold: [Telling] = []

    /// Which of the accounts that crashes have left it is.
    var line = 0

    let setting: Setting

    init(_ setting: Setting) { self.setting = setting }

    /// This world, and those that differ from it in what has been taken in by now.
    var possible: [World] {
        var worlds = [self]
        while let last = worlds.last, !last.untold.isEmpty {
            var next = last
            next.takeNext()
            worlds.append(next)
        }
        return worlds
    }

    /// All that these may have become, each once: one line, with as much taken in, is one world.
    static func possible(_ worlds: [World]) -> [World] {
        var seen: Set<Account> = []
        return worlds.flatMap(\.possible).filter { world in
            let account = Account(
                line: world.line,
                untold: world.untold.count,
                marks: world.knowledge.mapValues(\.marks).filter { !$0.value.isEmpty }
            )
            return seen.insert(account).inserted
        }
    }

    /// What tells worlds apart.
    private struct Account: Hashable {
        let line: Int
        let untold: Int
        let marks: [Scope: [Ref: Mark]]
    }

    // MARK: Marks

    /// Notes what is known of an object without its having been shown.
    mutating func mark(_ ref: Ref, of scope: Scope, _ mark: Mark) {
        knowledge[scope, default: Knowledge(setting)].mark(ref, mark)
    }

    /// What this may be once the process has ended: marks of objects that were never shown are gone, others may be.
    var withoutMarks: [World] {
        var (known, needed) = (self, self)
        for scope in knowledge.keys {
            let documents = onDisk.filter { $0.key.scope == scope }.values.flatMap(\.candidates)
            known.knowledge[scope]?.forgetMarks(neededBy: nil)
            needed.knowledge[scope]?.forgetMarks(neededBy: documents)
        }
        return [known, needed]
    }

    /// Everything that was told is known.
    mutating func settle() { while !untold.isEmpty { takeNext() } }

    private mutating func takeNext() {
        switch untold.removeFirst() {
        case .answer(let received, let moment, let isDocument, let overlaps):
            if received.hasObjects {
                knowledge[received.scope, default: Knowledge(setting)]
                    .take(received.number, received.told, at: moment, oldest: moment.start)
            }
            if isDocument {
                let key = Key(page: received.page, scope: received.scope)
                onDisk[key] = Document(received, at: moment)
                    .replacing(onDisk[key], overlaps: overlaps)
            }
        case .renewal(let key, let moment, let answer):
            guard let document = onDisk[key], isClean(document) else { return }
            onDisk[key] = document.renewed(at: moment, by: answer)
            guard document.received.hasObjects else { return }
            knowledge[key.scope, default: Knowledge(setting)]
                .take(document.received.number, document.received.told, at: moment, oldest: moment.start)
        }
    }

    /// Whether the objects of an answer have not been taken in yet.
    func isUntold(_ received: Received) -> Bool {
        untold.contains { telling in
            guard case .answer(let answer, _, _, _) = telling else { return false }
            return answer.number == received.number
        }
    }

    /// Gives a stored answer a new time.
    mutating func renew(_ key: Key, at moment: Moment, by received: Received) {
        if var document = documents[key] {
            document = document.renewed(at: moment, by: received)
            document.rivals = document.rivals.map {
                var rival = $0.renewed(at: moment, by: received)
                rival.isFresh = rival.isFresh || $0.isFresh
                return rival
            }
            documents[key] = document
        }
        untold.append(.renewal(key, moment, by: received))
    }

    // MARK: What may be answered

    /// The bodies that a stored answer may be served with, which are its own but for members known newer (law 7).
    ///
    /// Nil where not every byte is known (law 6).
    func composed(_ document: Document) -> [Alternatives]? {
        let received = document.received
        guard received.hasObjects else { return [[received.body]] }
        let source = NewestValues(
            received: received,
            moment: document.moment,
            knowledge: knowledge[received.scope] ?? Knowledge(setting)
        )
        var renderer = Renderer(
            received.page,
            received.style,
            isDated: received.isDated,
            listed: received.listed,
            source: source
        )
        renderer.run()
        return renderer.isKnown ? renderer.pieces : nil
    }

    /// Whether nothing newer is known than a document shows.
    func isClean(_ document: Document) -> Bool {
        composed(document) == [[document.received.body]]
    }
}

/// The values of a stored answer, each at its newest.
struct NewestValues: ValueSource {
    let received: Received
    let moment: Moment
    let knowledge: Knowledge

    func fate(of ref: Ref) -> Fate { knowledge.fate(of: ref, at: moment) }

    func spellings(_ member: String, of ref: Ref, isStranger: Bool, at place: String) -> Alternatives {
        if isStranger { return strange(member, of: ref) }
        guard let own = received.shown(member, of: ref, at: place) else {
            preconditionFailure("\(received.page) never showed \(ref)")
        }
        // Only declared members move (law 5).
        guard !knowledge.setting.undeclared.contains(member),
            case .value(let datum, let spellings) = knowledge.newest(member, of: ref)
        else { return [own.spelling] }
        // Only what is newer says more than an answer that disagrees with itself.
        if received.isContradictory(member, of: ref), !knowledge.isKnown(member, of: ref, since: moment) {
            return [own.spelling]
        }
        // What is merely spelled differently changes nothing (law 7).
        return datum == own.datum ? [own.spelling] : spellings.sorted()
    }

    /// An object that the answer did not show there: all of it must be known (law 6).
    private func strange(_ member: String, of ref: Ref) -> Alternatives {
        guard !knowledge.setting.undeclared.contains(member),
            case .value(_, let spellings) = knowledge.newest(member, of: ref)
        else {
            return []
        }
        return spellings.sorted()
    }

    func relation(_ member: String, of ref: Ref) -> Datum {
        guard case .value(let datum, _) = knowledge.newest(member, of: ref) else { return pinned(member, of: ref) }
        return datum
    }

    func pinned(_ member: String, of ref: Ref) -> Datum { received.shown[ref]?[member]?.datum ?? .null }
}
