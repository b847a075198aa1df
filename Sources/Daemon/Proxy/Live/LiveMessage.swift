import HTTPSemantics

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
        switch body.form {
        case .none: break
        // The next member is the last one.
        case .text: head.replaceSubrange((head.count - 1)..., with: #","body":""#.utf8)
        case .base64: head.replaceSubrange((head.count - 1)..., with: #","base64":""#.utf8)
        }
        self.head = head
        self.body = body
    }

    /// Makes a message that only numbers the previous event; clients see no event (HTML, §9.2.6: without data none is
    /// dispatched).
    init(number: Int64, memory: LiveMemory) {
        head = Array("id: \(number)".utf8)
        body = LiveEncoding(bodyOf: LiveEvent(kind: .unchanged), memory: memory)
    }

    var count: Int { head.count + body.count }

    /// The pieces in their order.
    var pieces: [[UInt8]] { [head] + body.pieces }
}

/// The encoded body of an event, and the event's end: made once for all streams and all events that contain it.
///
/// The upstream loop only.
final class LiveEncoding {
    /// How a body is written.
    enum Form { case text, base64, none }

    let form: Form
    /// The pieces, each of a bounded size, so that a client's connection takes little at once.
    let pieces: [[UInt8]]
    let count: Int
    private let memory: LiveMemory?

    /// The bytes of body in one piece, before encoding; a multiple of three for base64.
    private static let portionSize = 48 << 10

    /// - Parameter memory: counts it; nil if it is not retained.
    init(bodyOf event: LiveEvent, memory: LiveMemory? = nil) {
        let form: Form = event.body.map { $0.isText ? .text : .base64 } ?? .none
        var pieces: [[UInt8]] = []
        var portion: [UInt8] = []
        for piece in event.body?.pieces ?? [] {
            var rest = piece[...]
            while !rest.isEmpty {
                if portion.count == Self.portionSize {
                    pieces.append(Self.encoded(portion, form))
                    portion = []
                }
                let taken = rest.prefix(Self.portionSize - portion.count)
                portion += taken
                rest = rest.dropFirst(taken.count)
            }
        }
        pieces.append(Self.encoded(portion, form) + (form == .none ? "\n\n" : "\"}\n\n").utf8)
        self.form = form
        self.pieces = pieces
        count = pieces.reduce(0) { $0 + $1.count }
        self.memory = memory
        memory?.hold(count)
    }

    private static func encoded(_ portion: [UInt8], _ form: Form) -> [UInt8] {
        var bytes: [UInt8] = []
        switch form {
        case .none: break
        case .text:
            bytes.reserveCapacity(portion.count + portion.count / 4)
            bytes.append(escapedForJSON: portion)
        case .base64: bytes.append(base64: portion)
        }
        return bytes
    }

    deinit {
        memory?.held -= count
    }
}

/// The memory of all encoded bodies, and the recent ones that are kept for clients that come soon.
///
/// The upstream loop only.
final class LiveMemory {
    /// The number of bytes above which streams that lag behind are cut off.
    let limit: Int
    fileprivate(set) var held = 0
    private var recent: [LiveEncoding] = []
    private var recentBytes = 0
    private static let recentLimit = 8 << 20

    private var relieve: () -> Void = {}

    init(limit: Int) {
        self.limit = limit
    }

    /// Sets what to do when there are too many bytes.
    func onExcess(_ relieve: @escaping () -> Void) {
        self.relieve = relieve
    }

    fileprivate func hold(_ bytes: Int) {
        held += bytes
        if held > limit { relieve() }
    }

    /// Keeps an encoding until `forget`, if there is room, so that a crowd of clients is sent the same bytes.
    func keep(_ encoding: LiveEncoding) {
        guard recentBytes + encoding.count <= Self.recentLimit else { return }
        recent.append(encoding)
        recentBytes += encoding.count
    }

    func forget() {
        recent = []
        recentBytes = 0
    }
}

extension [UInt8] {
    /// Appends bytes in base64 with padding (RFC 4648 §4).
    mutating func append(base64 bytes: [UInt8]) {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        reserveCapacity(count + (bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let length = Swift.min(3, bytes.count - start)
            let group = (0..<3).reduce(0) { $0 << 8 | ($1 < length ? Int(bytes[start + $1]) : 0) }
            for place in 0..<4 {
                append(place <= length ? alphabet[group >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
            }
        }
    }
}
