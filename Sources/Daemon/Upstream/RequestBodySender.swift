/// Feeds a request's body to libcurl, once.
///
/// The upstream loop only, but for the body itself, which is filled from elsewhere.
struct RequestBodySender {
    private let body: any UpstreamBody
    /// Bytes taken from the body so far.
    private(set) var taken = 0
    /// Whether all of the body has been taken.
    private(set) var hasEnded = false

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
            taken += bytes.count
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
}
