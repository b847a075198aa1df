/// Something told that Larder may not have taken in yet.
///
/// An answer is passed on before its objects are stored; they are stored in the order in which the answers ended.
enum Telling: Equatable {
    case answer(Received, Moment, isDocument: Bool, overlaps: Bool = false)
    /// A 304: the document is as it was.
    case renewal(Key, Moment, by: Received)
}

/// One account of what Larder knows.
///
/// Where the laws leave open what it knows, there are several.
struct World: Hashable {
    /// What it answers from.
    var documents: [Key: Document] = [:]
    /// What is left of that after a crash.
    var onDisk: [Key: Document] = [:]
    var knowledge: [Scope: Knowledge] = [:]
    var untold: [Telling] = []

    /// The steps whose exchanges a write or a clean has invalidated in it, but not in others.
    var ignored: Set<Int> = []

    let setting: Setting

    init(_ setting: Setting) { self.setting = setting }

    /// This world, and those that differ from it in what has been taken in and forgotten by now.
    var possible: [World] {
        var all: [World] = []
        var current = [self]
        while true {
            current = current.flatMap { [$0] + $0.withoutFrailMarks }
            all += current
            guard !untold.isEmpty, current.allSatisfy({ !$0.untold.isEmpty }) else { return all }
            for index in current.indices { current[index].takeNext() }
        }
    }

    /// All that these may have become, each once.
    static func possible(_ worlds: [World]) -> [World] {
        let all = worlds.flatMap(\.possible)
        guard all.count > 1 else { return all }
        var seen: Set<World> = []
        return all.filter { seen.insert($0).inserted }
    }

    /// Of what tells worlds apart, what is quickly looked at.
    func hash(into hasher: inout Hasher) {
        hasher.combine(untold.count)
        hasher.combine(ignored)
        hasher.combine(knowledge.values.reduce(0) { $0 + $1.count })
        hasher.combine(knowledge.mapValues(\.marks).filter { !$0.value.isEmpty })
    }

    // MARK: Marks

    /// Notes what is known of an object without its having been shown.
    mutating func mark(_ ref: Ref, of scope: Scope, _ mark: Mark) {
        knowledge[scope, default: Knowledge(setting)].mark(ref, mark)
    }

    /// What this may be once the process has ended: marks of objects that were never shown are gone, others may be.
    var withoutMarks: [World] {
        var (known, needed, forgotten) = (self, self, self)
        for scope in knowledge.keys {
            let documents = onDisk.filter { $0.key.scope == scope }.values.flatMap(\.candidates)
            known.knowledge[scope]?.forgetMarks(neededBy: nil)
            needed.knowledge[scope]?.forgetMarks(neededBy: documents)
            forgotten.knowledge[scope]?.forgetMarks(neededBy: documents)
            forgotten.knowledge[scope]?.forgetOverriddenMarks(unlessNeededBy: documents)
        }
        return [known, needed, forgotten].map { world in
            var world = world
            for scope in world.knowledge.keys { world.knowledge[scope]?.weakenMarks() }
            return world
        }
    }

    /// Whether something is known from before the process ended that may be forgotten at any time.
    var isFrail: Bool { knowledge.values.contains { !$0.frail.isEmpty } }

    /// What this also may be since the process ended, if that is something else.
    private var withoutFrailMarks: [World] {
        let concerned = knowledge.filter { $0.value.mayForget }
        guard !concerned.isEmpty else { return [] }
        var forgotten = self
        for scope in concerned.keys {
            let documents = [documents, onDisk].flatMap { $0.filter { $0.key.scope == scope }.values }
            forgotten.knowledge[scope]?.forgetFrailMarks(unlessNeededBy: documents.flatMap(\.candidates))
        }
        let isOther = concerned.contains { $0.value.marks != forgotten.knowledge[$0.key]?.marks }
        return isOther ? [forgotten] : []
    }

    /// Whether what an exchange told counts here.
    func counts(_ exchange: ReferenceExchange) -> Bool { !ignored.contains(exchange.step) }

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
            guard var document = onDisk[key] else { return }
            document.rivals = document.rivals.map { isClean($0) ? $0.perhapsRenewed(at: moment, by: answer) : $0 }
            guard isClean(document) else {
                onDisk[key] = document
                // It has turned out not to count.
                documents[key]?.rivals += document.candidates
                return
            }
            let renewed = document.renewed(at: moment, by: answer)
            onDisk[key] = renewed
            guard document.received.hasObjects else { return }
            knowledge[key.scope, default: Knowledge(setting)]
                .take(document.received.number, document.received.told, at: renewed.moment, oldest: moment.start)
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
            document.rivals = document.rivals.map { $0.perhapsRenewed(at: moment, by: received) }
            documents[key] = document
        }
        untold.append(.renewal(key, moment, by: received))
    }

    // MARK: What may be answered

    /// Whether an answer may be served stale while it is asked for again.
    func isServedStale(_ key: Key) -> Bool { documents[key]?.candidates.contains(where: \.isServedStale) ?? false }

    /// The bodies that a stored answer may be served with, which are its own but for members known newer (law 7).
    ///
    /// Nil where not every byte is known (law 6).
    ///
    /// - Parameter leniently: where law 3 can be read in two ways, the other one.
    func composed(_ document: Document, leniently: Bool = false) -> [Alternatives]? {
        let received = document.received
        guard received.hasObjects else { return [[received.body]] }
        let source = NewestValues(
            received: received,
            moment: document.moment,
            knowledge: knowledge[received.scope] ?? Knowledge(setting),
            isLenient: leniently
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

    /// Whether what a document shows of some object is known to hold only because a later answer shows the same.
    func isMerelyConfirmed(_ document: Document) -> Bool {
        guard let knowledge = knowledge[document.received.scope] else { return false }
        return document.received.shown.contains { knowledge.isConfirmed($0.key, at: document.moment, shown: $0.value) }
    }

    /// Whether nothing newer is known than a document shows.
    func isClean(_ document: Document) -> Bool {
        let own: [Alternatives] = [[document.received.body]]
        return composed(document) == own
            || composed(document, leniently: true).map { matches(document.received.body[...].utf8, $0[...]) } == true
    }
}
