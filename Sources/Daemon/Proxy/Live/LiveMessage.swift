import HTTPSemantics

/// An event as it goes over the wire, shared by all streams that are sent it.
///
/// The upstream loop only.
final class LiveMessage {
    private let head: [UInt8]
    private let body: LiveEncoding

    /// - Parameter id: what the client gives back as `Last-Event-ID`; an empty one makes it forget what it had.
    init(_ event: LiveEvent, id: String?, body: LiveEncoding) {
        head = LiveEventWriter.head(of: event, as: body.form, id: id)
        self.body = body
    }

    /// Only a number for the event before; no event to the client (HTML, §9.2.6: without data nothing is dispatched).
    init(number: Int64, memory: LiveMemory) {
        head = Array("id: \(number)".utf8)
        body = LiveEncoding(bodyOf: LiveEvent(kind: .unchanged), memory: memory)
    }

    var count: Int { head.count + body.count }

    /// The pieces in their order.
    var pieces: [[UInt8]] { [head] + body.pieces }
}

/// The body of an event as it goes over the wire, and the event's end: made once for all streams and all events that show it.
///
/// The upstream loop only.
final class LiveEncoding {
    let form: LiveEventWriter.Form
    let pieces: [[UInt8]]
    let count: Int
    private let memory: LiveMemory?

    /// - Parameter memory: counts it; nil where nobody keeps it.
    init(bodyOf event: LiveEvent, memory: LiveMemory? = nil) {
        var writer = LiveEventWriter(bodyOf: event)
        form = writer.form
        var pieces: [[UInt8]] = []
        while let piece = writer.next() { pieces.append(piece) }
        self.pieces = pieces
        count = pieces.reduce(0) { $0 + $1.count }
        self.memory = memory
        memory?.hold(count)
    }

    deinit {
        memory?.held -= count
    }
}

/// What the encoded bodies of events take together, and those that are kept for the next who comes soon.
///
/// The upstream loop only.
final class LiveMemory {
    /// Bytes that there may be before streams that lag behind are cut off.
    let limit: Int
    fileprivate(set) var held = 0
    private var recent: [LiveEncoding] = []
    private var recentBytes = 0
    private static let recentLimit = 8 << 20

    private var relieve: () -> Void = {}

    init(limit: Int) {
        self.limit = limit
    }

    /// Has this done when there is too much.
    func onExcess(_ relieve: @escaping () -> Void) {
        self.relieve = relieve
    }

    fileprivate func hold(_ bytes: Int) {
        held += bytes
        if held > limit { relieve() }
    }

    /// Keeps an encoding until `forget`, if there is room: a crowd that comes at once is sent the same bytes.
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

/// Writes an event as the HTML standard frames it (§9.2.5), a piece at a time.
///
/// So an event of many megabytes takes no more memory than the body itself, which is shared: what is escaped or encoded for
/// one client is as much as that client's connection takes at once.
struct LiveEventWriter {
    /// How much of the body goes into one piece, in bytes before encoding; for base64 a multiple of three.
    private static let portion = 48 << 10

    /// How a body is written.
    package enum Form { case text, base64, none }

    let form: Form
    private let pieces: [[UInt8]]
    /// The piece that is being written, and how far.
    private var position = (piece: 0, offset: 0)
    private var isOver = false

    /// Writes what follows the head, to the end of the event: the same for all events that show one body.
    init(bodyOf event: LiveEvent) {
        pieces = event.body?.pieces ?? []
        form = event.body.map { $0.isText ? .text : .base64 } ?? .none
    }

    /// The event up to its body.
    static func head(of event: LiveEvent, as form: Form, id: String?) -> [UInt8] {
        var head = Array("\(id.map { "id: \($0)\n" } ?? "")event: \(event.kind.rawValue)\ndata: ".utf8)
        head += JSONText.object(event.members).bytes
        switch form {
        case .none: break
        // The member that follows is the last.
        case .text: head.replaceSubrange((head.count - 1)..., with: #","body":""#.utf8)
        case .base64: head.replaceSubrange((head.count - 1)..., with: #","base64":""#.utf8)
        }
        return head
    }

    /// The next bytes of the event; nil when all have been given.
    mutating func next() -> [UInt8]? {
        if isOver { return nil }
        var bytes: [UInt8] = []
        let portion = takePortion()
        switch form {
        case .none: break
        case .text:
            bytes.reserveCapacity(bytes.count + portion.count + portion.count / 4)
            bytes.append(escapedForJSON: portion)
        case .base64: bytes.append(base64: portion)
        }
        if position.piece == pieces.count {
            bytes += (form == .none ? "\n\n" : "\"}\n\n").utf8
            isOver = true
        }
        return bytes
    }

    /// The next bytes of the body; all but the last portion are of the same length.
    private mutating func takePortion() -> [UInt8] {
        var portion: [UInt8] = []
        while position.piece < pieces.count, portion.count < Self.portion {
            let piece = pieces[position.piece]
            let end = min(piece.count, position.offset + Self.portion - portion.count)
            portion += piece[position.offset..<end]
            position = end == piece.count ? (position.piece + 1, 0) : (position.piece, end)
        }
        return portion
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
