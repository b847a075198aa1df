import CachePolicy
import HTTPSemantics

/// One event of a `Larder-Live` stream.
///
/// On the wire its data are one line of JSON, whatever the body is made of:
///
/// ```
/// event: cached
/// data: {"status":200,"age":12,"headers":{"content-type":"application/json","etag":"\"a\""},"body":"{\"id\":1}\n"}
/// ```
///
/// The line ends of a body would not survive as lines of an event, where CR, LF and CRLF are the same; as escapes in a JSON
/// string they do.
///
/// The string's UTF-8 is the body, byte for byte. A body that is not UTF-8, or begins with a byte order mark, comes as `base64`
/// instead of `body` (RFC 4648 §4).
struct LiveEvent: Sendable {
    enum Kind: String, Sendable {
        /// The stored response, whatever its age: `status`, `age`, `headers`, and `body` or `base64`.
        case cached
        /// The upstream's response, if it differs from what was shown or nothing was shown: the same members.
        case fresh
        /// The upstream's response equals what was shown, or nothing has changed since the client's last event: the current
        /// `status`, `age` and `headers`.
        case unchanged
        /// The response has changed: the same members as of `cached`.
        case changed
        /// The upstream gave no usable response: `problem`, a problem document (RFC 9457), and the `age` of what was shown, if
        /// anything was. If the upstream responded with an error, `status`, `headers` and the body are those of that response.
        case error
    }

    var kind: Kind
    var problem: ProblemDocument?
    var status: Int?
    var age: Int64?
    var fields: Fields?
    var body: LiveBody?

    /// The members before the body.
    var members: [(name: String, value: JSONText)] {
        var members: [(name: String, value: JSONText)] = []
        if let problem { members.append(("problem", .raw(problem.bytes.dropLast()))) }
        if let status { members.append(("status", .integer(status))) }
        if let age { members.append(("age", .integer(age))) }
        if let fields { members.append(("headers", Self.headers(fields))) }
        return members
    }

    private static let representation = ["content-type", "content-language", "content-location", "location", "link"]

    /// Equal for two events with equal content, except for the body.
    ///
    /// Fields that change from response to response do not count, such as `Date` and rate limits.
    var contentBeforeBody: [UInt8] {
        var text = Array("\(problem.map { "\($0.type) \($0.status)" } ?? "") \(status ?? 0)\n".utf8)
        for name in Self.representation { text += Array("\(fields?.combined(name) ?? "")\n".utf8) }
        return text
    }

    /// The fields as one string for each name, in lower case.
    ///
    /// Lines of one name are joined by a comma (RFC 9110 §5.3). The values of `Set-Cookie` contain commas, so they are joined by
    /// a line feed, which no field value contains.
    private static func headers(_ fields: Fields) -> JSONText {
        var members: [(name: String, value: String)] = []
        for line in fields.lines {
            let name = line.lowercasedName
            if let index = members.firstIndex(where: { $0.name == name }) {
                members[index].value += (name == "set-cookie" ? "\n" : ", ") + text(line.value)
            } else {
                members.append((name, text(line.value)))
            }
        }
        return .object(members.map { (name: $0.name, value: .string($0.value)) })
    }

    /// A field value as text: UTF-8 if it is valid, else ISO 8859-1, the former encoding of field values.
    private static func text(_ value: [UInt8]) -> String {
        String(validating: value, as: UTF8.self)
            ?? String(String.UnicodeScalarView(value.map { Unicode.Scalar($0) }))
    }
}

extension LiveEvent {
    init(_ kind: Kind, _ ready: ReadyResponse, as cacheUse: CacheUse, isCollapsed: Bool = false, now: Int64) {
        var fields = ready.fields
        let (status, age) = (ready.response.status, max(0, ready.policy.age(at: now)))
        ready.addAgeAndCacheStatus(to: &fields, as: cacheUse, sent: status, isCollapsed: isCollapsed, now: now)
        self.init(kind: kind, status: status, age: age, fields: Self.shown(fields), body: LiveBody(ready.body))
    }

    /// Makes the event of an upstream's response whose fields are already prepared for the client.
    init(fresh status: Int, _ fields: Fields, _ body: LiveBody) {
        let age = AgeField.parse(fields) ?? 0
        self.init(kind: .fresh, status: status, age: age, fields: Self.shown(fields), body: body)
    }

    /// Makes the event for a failure.
    ///
    /// - Parameter age: of what was shown.
    init(failure problem: ProblemDocument, age: Int64?, _ response: LiveEvent? = nil) {
        self.init(kind: .error, problem: problem, status: response?.status, age: age)
        (fields, body) = (response?.fields, response?.body)
    }

    /// The fields that an event shows: all except those for a browser and this exchange alone.
    private static func shown(_ fields: Fields) -> Fields {
        var shown = fields
        CORS.removeFields(from: &shown)
        return shown
    }
}

/// The body of a response for an event: the pieces it came in, shared with the fetch.
struct LiveBody: Sendable {
    private(set) var pieces: [[UInt8]] = []

    init(_ body: [UInt8] = []) { append(body) }

    mutating func append(_ piece: [UInt8]) {
        if !piece.isEmpty { pieces.append(piece) }
    }

    /// All of it; a copy if it came in several pieces.
    var bytes: [UInt8] { pieces.count == 1 ? pieces[0] : pieces.reduce(into: []) { $0 += $1 } }

    /// Whether a JSON string can represent bytes exactly: they are UTF-8 throughout, and do not begin with a byte order mark,
    /// which some JSON readers drop.
    static func isText(_ bytes: [UInt8]) -> Bool {
        !bytes.starts(with: [0xEF, 0xBB, 0xBF]) && (try? UTF8Span(validating: bytes.span)) != nil
    }
}

/// An encoded event, framed as the HTML standard defines (§9.2.5), and shared by all streams that it is sent to.
///
/// The upstream loop only.
final class LiveMessage {
    private let head: [UInt8]
    private let body: LiveEncoding

    /// - Parameter id: what the client returns as `Last-Event-ID`; an empty one makes it forget the previous id.
    init(_ event: LiveEvent, id: String?, body: LiveEncoding) {
        var head = Array("\(id.map { "id: \($0)\n" } ?? "")event: \(event.kind.rawValue)\ndata: ".utf8)
        head += JSONText.object(event.members).bytes
        // The next member is the last one.
        if body.form != .none { head.replaceSubrange((head.count - 1)..., with: ",\"\(body.form.rawValue)\":\"".utf8) }
        (self.head, self.body) = (head, body)
    }

    /// Makes a message that only numbers the previous event; clients see no event (HTML, §9.2.6: without data none is
    /// dispatched).
    init(number: Int64, memory: LiveMemory) {
        head = Array("id: \(number)".utf8)
        body = LiveEncoding(bodyOf: LiveEvent(kind: .unchanged), memory: memory)
    }

    var count: Int { head.count + body.count }
    var pieces: [[UInt8]] { [head] + body.pieces }
}

/// The encoded body of an event, and the event's end: made once for all streams and all events that contain it.
///
/// The upstream loop only.
final class LiveEncoding {
    /// Named as the member.
    enum Form: String { case text = "body", base64, none }

    let form: Form
    /// The pieces, each of a bounded size, so that a client's connection takes little at once.
    let pieces: [[UInt8]]
    let count: Int
    private let memory: LiveMemory?

    /// The bytes of body in one piece, before encoding; a multiple of three for base64.
    private static let portionSize = 48 << 10

    /// - Parameter memory: counts it; nil if it is not retained.
    init(bodyOf event: LiveEvent, memory: LiveMemory? = nil) {
        let body = event.body?.bytes
        let form: Form = body.map { LiveBody.isText($0) ? .text : .base64 } ?? .none
        var pieces: [[UInt8]] = []
        var rest = (body ?? [])[...]
        repeat {
            pieces.append(Self.encoded(Array(rest.prefix(Self.portionSize)), form))
            rest = rest.dropFirst(Self.portionSize)
        } while !rest.isEmpty
        pieces[pieces.count - 1] += (form == .none ? "\n\n" : "\"}\n\n").utf8
        (self.form, self.pieces, self.memory) = (form, pieces, memory)
        count = pieces.reduce(0) { $0 + $1.count }
        memory?.hold(count)
    }

    private static func encoded(_ portion: [UInt8], _ form: Form) -> [UInt8] {
        guard form == .text else { return Crypto.base64(portion) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(portion.count + portion.count / 4)
        bytes.append(escapedForJSON: portion)
        return bytes
    }

    deinit { memory?.held -= count }
}

/// The memory of all encoded bodies, and the recent ones that are kept for clients that come soon.
///
/// The upstream loop only.
final class LiveMemory {
    /// The number of bytes above which streams that lag behind are cut off.
    var limit = Int.max
    fileprivate(set) var held = 0
    private var recent: [LiveEncoding] = []
    private var recentBytes = 0
    private static let recentLimit = 8 << 20

    /// What to do when there are too many bytes.
    var onExcess: () -> Void = {}

    fileprivate func hold(_ bytes: Int) {
        held += bytes
        if held > limit { onExcess() }
    }

    /// Remembers an encoding until `forget`, if there is room, so that a crowd of clients is sent the same bytes.
    func remember(_ encoding: LiveEncoding) {
        guard recentBytes + encoding.count <= Self.recentLimit else { return }
        recent.append(encoding)
        recentBytes += encoding.count
    }

    func forget() { (recent, recentBytes) = ([], 0) }
}
