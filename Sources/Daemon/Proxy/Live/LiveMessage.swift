/// An event as it goes over the wire, shared by all streams that are sent it.
///
/// The upstream loop only.
final class LiveMessage {
    private let head: [UInt8]
    private let body: LiveEncoding

    /// - Parameter number: what the client gives back as `Last-Event-ID`; nil where it shall forget what it had.
    init(_ event: LiveEvent, number: Int64?, body: LiveEncoding) {
        head = LiveEventWriter.head(of: event, as: body.form, number: number.map(String.init) ?? "")
        self.body = body
    }

    /// Only a number for the event before; no event to the client (HTML, §9.2.6: without data nothing is dispatched).
    init(number: Int64, memory: LiveMemory) {
        head = Array("id: \(number)".utf8)
        body = LiveEncoding(bodyOf: LiveEvent(kind: .unchanged), memory: memory)
    }

    var count: Int { head.count + body.count }

    /// The pieces in their order; nil past the last.
    func piece(_ index: Int) -> [UInt8]? {
        if index == 0 { return head }
        return index <= body.pieces.count ? body.pieces[index - 1] : nil
    }
}

/// The body of an event as it goes over the wire, and the event's end: made once for all streams and all events that show it.
///
/// The upstream loop only.
final class LiveEncoding {
    let form: LiveEventWriter.Form
    let pieces: [[UInt8]]
    let count: Int
    private let memory: LiveMemory

    init(bodyOf event: LiveEvent, memory: LiveMemory) {
        var writer = LiveEventWriter(bodyOf: event)
        form = writer.form
        var pieces: [[UInt8]] = []
        while let piece = writer.next() { pieces.append(piece) }
        self.pieces = pieces
        count = pieces.reduce(0) { $0 + $1.count }
        self.memory = memory
        memory.hold(count)
    }

    deinit {
        memory.held -= count
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
