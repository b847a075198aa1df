/// Feeds a request's body to libcurl and remembers its beginning, in case it has to be sent again.
///
/// The upstream loop only, but for the body itself, which is filled from elsewhere.
struct RequestBodySender {
    /// Up to here what was sent is kept, so that a small body survives the death of a pooled connection.
    static let keptLimit = 64 << 10

    private let body: any UpstreamBody
    private var kept: [UInt8] = []
    /// Bytes taken from the body so far.
    private var taken = 0
    /// Bytes given to libcurl since the beginning or the last rewinding.
    private var given = 0
    private var hasEnded = false

    init(_ body: any UpstreamBody) {
        self.body = body
    }

    var declaredLength: Int? { body.declaredLength }

    /// What the body has to say after a look at it.
    enum Step {
        case bytes(Int)
        case end
        case pending
        case failed(String)
    }

    /// Fills the room with what comes next; `available` is called, on any thread, when there is more after `.pending`.
    mutating func fill(
        _ room: UnsafeMutableRawBufferPointer,
        available: @escaping @Sendable () -> Void
    ) -> Step {
        if given < taken { return replay(into: room) }
        if hasEnded { return .end }
        let step = take(into: room)
        guard case .pending = step else { return step }
        body.onAvailable(available)
        // Looked at again: what came between the look and the registration would otherwise wake nobody.
        return take(into: room)
    }

    private mutating func take(into room: UnsafeMutableRawBufferPointer) -> Step {
        switch body.take(max: room.count) {
        case .bytes(let bytes):
            if let length = declaredLength, taken + bytes.count > length {
                return .failed("it is longer than declared")
            }
            room.copyBytes(from: bytes)
            if taken + bytes.count <= Self.keptLimit { kept += bytes } else { kept = [] }
            taken += bytes.count
            given = taken
            return .bytes(bytes.count)
        case .pending:
            return .pending
        case .end:
            if let length = declaredLength, taken != length { return .failed("it is shorter than declared") }
            hasEnded = true
            return .end
        case .failed(let reason):
            return .failed(reason)
        }
    }

    private mutating func replay(into room: UnsafeMutableRawBufferPointer) -> Step {
        let count = min(room.count, taken - given)
        room.copyBytes(from: kept[given..<given + count])
        given += count
        return .bytes(count)
    }

    /// Goes back to the first byte; false when it is no longer there.
    mutating func rewind() -> Bool {
        guard taken <= Self.keptLimit else { return false }
        given = 0
        return true
    }
}
