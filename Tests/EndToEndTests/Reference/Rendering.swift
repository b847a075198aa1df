/// How a response spells what it says.
struct Style: Hashable, Sendable {
    var layout = Layout.compact
    /// 1 as `1`, `1.0` or `1.00e0`.
    var numbers = 0
    var escapes = false
    /// By how many places the members are turned round.
    var rotation = 0

    /// The white space between the members.
    enum Layout: CaseIterable {
        case compact, spaced, indented
    }

    /// How many there are.
    static let count = 72

    init(number: Int) {
        layout = Layout.allCases[number % 3]
        numbers = number / 3 % 3
        escapes = number / 9 % 2 == 1
        rotation = number / 18 % 4
    }

    /// Every way in which some style spells a value.
    static func spellings(of datum: Datum) -> Alternatives {
        Set((0..<18).map { Style(number: $0).spell(datum) }).sorted { $0.utf8.count > $1.utf8.count }
    }

    func spell(_ datum: Datum) -> String {
        switch datum {
        case .null, .one(nil): return "null"
        case .number(let number): return "\(number)" + ["", ".0", ".00e0"][numbers]
        case .one(let id?): return "\(id)"
        case .text(let text):
            guard escapes else { return "\"\(text)\"" }
            let escaped = text.replacing("é", with: #"\u00e9"#).replacing("/", with: #"\/"#)
            return "\"\(escaped)\""
        case .many, .keyed: preconditionFailure("a relation is written object by object")
        }
    }

    func name(_ name: String) -> String { escapes && name == "state" ? #""st\u0061te""# : "\"\(name)\"" }
}

/// A piece of a body: one text, or any of several that mean the same.
typealias Alternatives = [String]

/// Where the values of a body come from.
///
/// The upstream writes its responses from what it has; what a cache has served is written again, by the same hand, from
/// the response that gave the shape and the values that were served.
protocol ValueSource {
    /// The spellings that a member may have; empty where it cannot be known (law 6).
    func spellings(_ member: String, of ref: Ref, isStranger: Bool, at place: String) -> Alternatives
    /// Where a relation leads now.
    func relation(_ member: String, of ref: Ref) -> Datum
    /// Where it led in the response that gave the shape.
    func pinned(_ member: String, of ref: Ref) -> Datum
    /// What becomes of an object that the response showed.
    func fate(of ref: Ref) -> Fate
}

extension ValueSource {
    func fate(of ref: Ref) -> Fate { .shown }
}

/// What becomes of an object in a response that showed it.
enum Fate: Hashable, Sendable {
    case shown
    /// Nobody knows how it is now: the response is to be asked for again.
    case stale
    /// It is gone, and leaves the list that it stands in.
    case removed
}

/// Writes a page in a style.
struct Renderer<Source: ValueSource> {
    let page: Page
    let style: Style
    let isDated: Bool
    /// The objects that the page lists.
    let listed: [Int]
    let source: Source
    /// A member of the page's subject that it does not show.
    var omitted: String?

    private(set) var pieces: [Alternatives] = []
    /// Whether every byte is known.
    private(set) var isKnown = true

    init(_ page: Page, _ style: Style, isDated: Bool, listed: [Int], source: Source) {
        (self.page, self.style, self.isDated, self.listed, self.source) = (page, style, isDated, listed, source)
    }

    mutating func run() {
        let shape = page.shape(dated: isDated)
        if let subject = page.subject {
            return object(subject, shape.filter { $0.name != omitted }, isStranger: false, depth: 0)
        }
        let refs = listed.map { Ref(kind: page.kind, id: $0) }.filter { source.fate(of: $0) != .removed }
        switch page {
        case .users, .labels:
            list(refs, depth: 0) { $0.object($1, shape, isStranger: false, depth: 1) }
        default:
            write(
                "{" + line(1) + style.name("total") + colon + "\(listed.count)" + separator(1) + style.name("items")
                    + colon
            )
            list(refs, depth: 1) { $0.object($1, shape, isStranger: false, depth: 2) }
            write(line(0) + "}")
        }
    }

    // MARK: Objects

    private mutating func object(_ ref: Ref, _ shape: [Field], isStranger: Bool, at place: String = "", depth: Int) {
        // What leaves its list never comes here; elsewhere nothing can be left out.
        if !isStranger, source.fate(of: ref) != .shown { isKnown = false }
        let turn = style.rotation % shape.count
        let fields = shape[turn...] + shape[..<turn]
        write("{")
        for (index, field) in fields.enumerated() {
            write((index > 0 ? separator(depth + 1) : line(depth + 1)) + style.name(field.name) + colon)
            value(field, of: ref, isStranger: isStranger, at: place, depth: depth + 1)
        }
        write(line(depth) + "}")
    }

    private mutating func value(_ field: Field, of ref: Ref, isStranger: Bool, at place: String, depth: Int) {
        switch field {
        case .id: write("\(ref.id)")
        case .plain(let member): choose(source.spellings(member, of: ref, isStranger: isStranger, at: place))
        case .bare(let member):
            let (now, pinned) = (source.relation(member, of: ref), source.pinned(member, of: ref))
            // Nothing says whether in the place of null an identity or an object would stand.
            if pinned.one == nil, now.one != nil { isKnown = false }
            write(style.spell(now))
        case .one(let member, let shape):
            let (now, pinned) = (source.relation(member, of: ref), source.pinned(member, of: ref))
            guard let id = now.one else { return write("null") }
            if pinned.one == nil { isKnown = false }
            let related = Ref(kind: .user, id: id)
            object(related, shape, isStranger: pinned.one != id, at: ref.place(field), depth: depth)
        case .many(let member, let shape):
            let (now, pinned) = (source.relation(member, of: ref).many, source.pinned(member, of: ref).many)
            if pinned.isEmpty, !now.isEmpty { isKnown = false }
            list(now.map { Ref(kind: .label, id: $0) }, depth: depth) {
                $0.object($1, shape, isStranger: !pinned.contains($1.id), at: ref.place(field), depth: depth + 1)
            }
        case .keyed(let member, let shape):
            let (now, pinned) = (source.relation(member, of: ref).keyed, source.pinned(member, of: ref).keyed)
            keyed(now, pinned: pinned, shape, depth) { ref.place(field, $0) }
        }
    }

    private mutating func list(_ refs: [Ref], depth: Int, _ element: (inout Self, Ref) -> Void) {
        guard !refs.isEmpty else { return write("[]") }
        write("[")
        for (index, ref) in refs.enumerated() {
            write(index > 0 ? separator(depth + 1) : line(depth + 1))
            element(&self, ref)
        }
        write(line(depth) + "]")
    }

    private mutating func keyed(
        _ now: [String: Int],
        pinned: [String: Int],
        _ shape: [Field],
        _ depth: Int,
        place: (String) -> String
    ) {
        guard !now.isEmpty else { return write("{}") }
        if pinned.isEmpty { isKnown = false }
        write("{")
        for (index, (key, id)) in now.sorted(by: { $0.key < $1.key }).enumerated() {
            write((index > 0 ? separator(depth + 1) : line(depth + 1)) + "\"\(key)\"" + colon)
            let related = Ref(kind: .user, id: id)
            object(related, shape, isStranger: pinned[key] != id, at: place(key), depth: depth + 1)
        }
        write(line(depth) + "}")
    }

    // MARK: Text

    private var colon: String { style.layout == .compact ? ":" : ": " }

    private func separator(_ depth: Int) -> String { "," + (style.layout == .spaced ? " " : line(depth)) }

    private func line(_ depth: Int) -> String {
        style.layout == .indented ? "\n" + String(repeating: "  ", count: depth) : ""
    }

    private mutating func write(_ text: String) {
        if pieces.last?.count == 1 {
            pieces[pieces.count - 1][0] += text
        } else {
            pieces.append([text])
        }
    }

    private mutating func choose(_ spellings: Alternatives) {
        guard let first = spellings.first else {
            isKnown = false
            return
        }
        if spellings.count == 1 { write(first) } else { pieces.append(spellings) }
    }
}

extension Field {
    var name: String {
        switch self {
        case .id: "id"
        case .plain(let name), .bare(let name), .one(let name, _), .many(let name, _), .keyed(let name, _): name
        }
    }
}

/// Whether a text is one of those that the pieces can be put together to.
func matches(_ text: Substring.UTF8View, _ pieces: ArraySlice<Alternatives>) -> Bool {
    guard let first = pieces.first else { return text.isEmpty }
    return first.contains { piece in
        text.starts(with: piece.utf8)
            && matches(Substring(text.dropFirst(piece.utf8.count)).utf8, pieces.dropFirst())
    }
}
