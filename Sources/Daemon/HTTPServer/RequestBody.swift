import Synchronization

/// Why a request body did not come to its end.
package enum RequestBodyError: Error, Sendable, Equatable {
    /// The client is gone, or its connection was given up.
    case disconnected
    /// What the client sent is malformed, too long or too slow; the server has answered or will.
    case refused(RequestFault)
    /// It is longer than the caller of `collect` wants.
    case overLimit
}

/// The body of a request on its way in: filled by the connection, emptied by whoever answers, on any thread.
///
/// The connection stops reading its socket while more than a window of bytes waits here. `100 Continue` is sent when
/// the body is first asked for, so whoever refuses a request does so without asking.
package final class RequestBody: Sendable {
    /// What there is at the moment.
    package enum Chunk: Sendable, Equatable {
        case bytes([UInt8])
        /// Nothing yet; `onAvailable` tells when to ask again.
        case pending
        case end
        case failed(RequestBodyError)
    }

    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct State {
        var chunks: [[UInt8]] = []
        var firstChunk = 0
        /// Bytes of the first chunk that were taken already.
        var offset = 0
        var byteCount = 0
        var isComplete = false
        var failure: RequestBodyError?
        var isWanted = false
        var isPaused = false
        var available: (@Sendable () -> Void)?
        /// Keeps what arrives, however it is taken.
        var copy: [UInt8]?
        var copyLimit = 0
    }

    /// The body's length when the client declared it.
    package let declaredLength: Int?

    private let state: Mutex<State>
    private let window: Int
    /// Tells the connection to send `100 Continue`, or to read on.
    private let ask: (@Sendable () -> Void)?

    /// A body that a connection fills.
    init(declaredLength: Int?, window: Int, ask: @escaping @Sendable () -> Void) {
        self.declaredLength = declaredLength
        self.window = window
        self.ask = ask
        state = Mutex(State())
    }

    /// A body that is all there.
    package init(_ bytes: [UInt8]) {
        declaredLength = bytes.count
        window = .max
        ask = nil
        state = Mutex(
            State(chunks: bytes.isEmpty ? [] : [bytes], byteCount: bytes.count, isComplete: true, isWanted: true)
        )
    }

    // MARK: For the one who reads it

    /// Takes what has arrived, at most `max` bytes of it, without waiting.
    ///
    /// Any thread, one at a time.
    package func take(max: Int = .max) -> Chunk {
        let (portion, asks) = state.withLock { state in
            let asks = !state.isWanted || state.isPaused
            state.isWanted = true
            let portion = state.take(max)
            let resumes = asks && (!state.isPaused || state.byteCount < window / 2)
            if resumes { state.isPaused = false }
            return (portion, resumes && !state.isComplete && state.failure == nil)
        }
        if asks { ask?() }
        return portion
    }

    /// Calls back once, on any thread, when `take` will not say `pending`; at once when that is so already.
    package func onAvailable(_ callback: @escaping @Sendable () -> Void) {
        let (isReady, asks) = state.withLock { state in
            let asks = !state.isWanted
            state.isWanted = true
            let isReady = state.byteCount > 0 || state.isComplete || state.failure != nil
            if !isReady { state.available = callback }
            return (isReady, asks)
        }
        if asks { ask?() }
        if isReady { callback() }
    }

    /// The whole body, once it has arrived.
    package func collect(limit: Int) async throws(RequestBodyError) -> [UInt8] {
        var whole: [UInt8] = []
        while true {
            switch take() {
            case .bytes(let bytes):
                guard whole.count + bytes.count <= limit else { throw .overLimit }
                if whole.isEmpty { whole = bytes } else { whole += bytes }
            case .pending:
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    onAvailable { continuation.resume() }
                }
            case .end: return whole
            case .failed(let error): throw error
            }
        }
    }

    // MARK: For recordings

    /// Keeps a copy of what arrives, up to a limit; before anybody takes any of it.
    package func keepCopy(limit: Int) {
        state.withLock { state in
            (state.copy, state.copyLimit) = ([], limit)
            for chunk in state.chunks { state.addToCopy(chunk) }
        }
    }

    /// What has arrived; nil where that is more than the limit, or no copy is kept.
    package var copy: [UInt8]? { state.withLock { $0.copy } }

    // MARK: For the connection that fills it

    /// Whether all of it has arrived.
    package var isComplete: Bool { state.withLock { $0.isComplete } }

    /// Whether somebody has asked for the body.
    var isWanted: Bool { state.withLock { $0.isWanted } }

    /// Whether the connection should read on; if not, it is asked again later.
    var hasRoom: Bool { state.withLock { !$0.isPaused } }

    /// Adds bytes.
    func append(_ bytes: [UInt8]) {
        let callback = state.withLock { state in
            state.chunks.append(bytes)
            state.byteCount += bytes.count
            state.addToCopy(bytes)
            state.isPaused = state.byteCount >= window
            return state.takeCallback()
        }
        callback?()
    }

    /// Marks the end.
    func complete() {
        state.withLock { state in
            state.isComplete = true
            return state.takeCallback()
        }?()
    }

    /// Marks a body that ends too early; what has arrived is dropped.
    func fail(_ error: RequestBodyError) {
        state.withLock { state -> (@Sendable () -> Void)? in
            if state.isComplete || state.failure != nil { return nil }
            state.failure = error
            return state.takeCallback()
        }?()
    }
}

extension RequestBody.State {
    mutating func addToCopy(_ bytes: [UInt8]) {
        guard let kept = copy?.count else { return }
        if kept + bytes.count > copyLimit { copy = nil } else { copy? += bytes }
    }

    mutating func takeCallback() -> (@Sendable () -> Void)? {
        defer { available = nil }
        return available
    }

    mutating func take(_ max: Int) -> RequestBody.Chunk {
        if let failure { return .failed(failure) }
        guard firstChunk < chunks.count else { return isComplete ? .end : .pending }
        let chunk = chunks[firstChunk]
        let count = min(max, chunk.count - offset)
        let portion = count == chunk.count ? chunk : Array(chunk[offset..<(offset + count)])
        offset += count
        byteCount -= count
        if offset == chunk.count {
            chunks[firstChunk] = []
            offset = 0
            firstChunk += 1
            if firstChunk == chunks.count || firstChunk > 64 {
                chunks.removeFirst(firstChunk)
                firstChunk = 0
            }
        }
        return .bytes(portion)
    }
}
