/// One unsafe request: what its client is sent, and when (law 10).
///
/// A value without I/O, like `Fetch`. The response is relayed except for its last piece, which waits until the store has
/// committed what the write invalidates and contains.
///
/// ```
/// asking ─ head ─ responding ─ end ─► committing ─ committed ─► over
///    └──────── no response ─────────────┘
/// ```
struct Write: Hashable {
    enum Phase: Hashable {
        case asking
        case responding
        /// The response has come or never will; the store is committing the write.
        case committing
        case over
    }

    enum Event {
        case head(isJSON: Bool)
        /// A piece of the body, and whether there is memory to keep it.
        case body([UInt8], fits: Bool)
        case ended(Fetch.End)
        case committed
        case clientLeft
    }

    enum Action: Equatable {
        /// Note how the write ended, and commit it.
        case commit
        /// Continue after the client has left: the request may have been received, so its outcome matters.
        case resume
        case begin
        case write([UInt8])
        case finish
        case abort
        /// Serve the whole body in the mapped view, or with rewritten links; as it came if it is neither.
        case serveRendered
        /// Report why there is no response.
        case fail
    }

    private(set) var phase = Phase.asking
    /// The body, as far as it is kept for the store.
    private(set) var body: BodyBuffer
    /// The pieces that the client does not have yet.
    private var held: [[UInt8]] = []
    private var isBegun = false
    private let wantsRendered: Bool
    private var isRendered = false
    private var end = Fetch.End.failed

    /// - Parameter wantsRendered: whether the client wants the mapped view or rewritten links, which are made from the whole body.
    init(wantsRendered: Bool, limit: Int) {
        self.wantsRendered = wantsRendered
        body = BodyBuffer(limit: limit)
    }

    /// Processes an event; returns the actions to perform, in order.
    mutating func handle(_ event: Event) -> [Action] {
        switch (phase, event) {
        case (.asking, .head(let isJSON)):
            (phase, isRendered) = (.responding, wantsRendered && isJSON)
            return []
        case (.responding, .body(let piece, let fits)):
            let actions = held.isEmpty || isRendered && body.isWhole ? [] : passOn()
            held.append(piece)
            body.append(piece)
            if !fits { body.letGo() }
            return actions
        case (.asking, .ended(let end)), (.responding, .ended(let end)):
            self.end = phase == .responding ? end : .failed
            phase = .committing
            // What was sent must be certain before objects are taken from it.
            if end != .whole { body.letGo() }
            body.join()
            if body.isWhole, !isBegun { held = body.pieces }
            return [.commit]
        case (.committing, .committed):
            defer { phase = .over }
            return release()
        case (.asking, .clientLeft), (.responding, .clientLeft): return [.resume]
        default: return []
        }
    }

    private mutating func release() -> [Action] {
        // Without a head nothing is held.
        guard end != .failed || isBegun || !held.isEmpty else { return [.fail] }
        if isRendered, !isBegun, end == .whole, body.isWhole { return [.serveRendered] }
        return passOn() + [end == .whole || end == .odd ? .finish : .abort]
    }

    private mutating func passOn() -> [Action] {
        defer { (isBegun, held) = (true, []) }
        return (isBegun ? [] : [.begin]) + held.map { .write($0) }
    }
}
