/// A body while it arrives: kept once, shared by all who wait for it.
///
/// Up to the limit the pieces are kept, so that late followers get them and the whole can be stored. Past it they are let go
/// of, and the body is only relayed.
struct BodyBuffer: Hashable {
    /// The largest body that is kept, in decoded bytes.
    let limit: Int
    private(set) var pieces: [[UInt8]] = []
    private(set) var received = 0
    /// Whether everything received so far is still here.
    private(set) var isWhole = true

    init(limit: Int) {
        self.limit = limit
    }

    /// Whether it would still keep everything with so many more bytes.
    func hasRoom(for count: Int) -> Bool { isWhole && received + count <= limit }

    mutating func append(_ piece: [UInt8]) {
        received += piece.count
        guard isWhole else { return }
        if received > limit { letGo() } else { pieces.append(piece) }
    }

    /// Stops keeping what arrives.
    mutating func letGo() {
        isWhole = false
        pieces = []
    }

    /// Keeps what there is as one piece, which `joined` then gives without a copy.
    mutating func join() {
        if isWhole, pieces.count > 1 { pieces = [joined()] }
    }

    /// The body in one piece; only meaningful while it is whole.
    func joined() -> [UInt8] {
        if pieces.count == 1 { return pieces[0] }
        var body: [UInt8] = []
        body.reserveCapacity(received)
        for piece in pieces { body.append(contentsOf: piece) }
        return body
    }
}
