import Synchronization

/// The reason why a request body is incomplete.
package enum RequestBodyError: Error, Sendable, Equatable {
    /// The client has left, or its connection was given up.
    case disconnected
    /// The body is malformed, too long or too slow; the server responds by itself.
    case refused(RequestFault)
    /// The body exceeds the limit of `collect`.
    case overLimit
}

/// A request body on its way in: filled by the connection, read on any thread.
///
/// The connection stops reading its socket while more than a window of bytes waits here. `100 Continue` is sent when
/// the body is first asked for, so a handler refuses a request without reading the body.
package final class RequestBody: Sendable {
    package enum Chunk: Sendable, Equatable {
        case bytes([UInt8])
        /// Nothing has arrived yet; `onAvailable` reports when there is more.
        case pending
        case end
        case failed(RequestBodyError)
    }

    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct State {
        var chunks: [[UInt8]] = []
        var firstChunk = 0
        /// The number of bytes already taken from the first chunk.
        var offset = 0
        var waitingBytes = 0
        var isComplete = false
        var failure: RequestBodyError?
        var isWanted = false
        var isPaused = false
        var available: (@Sendable () -> Void)?
        /// A copy of everything that arrives; nil if none is kept.
        var copy: [UInt8]?
        var copyLimit = 0
    }

    package let declaredLength: Int?

    private let state: Mutex<State>
    private let window: Int
    /// Asks the connection to send `100 Continue`, or to read on.
    private let ask: (@Sendable () -> Void)?

    package init(declaredLength: Int?, window: Int, ask: @escaping @Sendable () -> Void) {
        (self.declaredLength, self.window, self.ask) = (declaredLength, window, ask)
        state = Mutex(State())
    }

    /// Makes a body from bytes that are already there.
    package init(_ bytes: [UInt8]) {
        declaredLength = bytes.count
        window = .max
        ask = nil
        let chunks = bytes.isEmpty ? [] : [bytes]
        state = Mutex(State(chunks: chunks, waitingBytes: bytes.count, isComplete: true, isWanted: true))
    }

    // MARK: For the one who reads it

    /// Takes at most `max` of the bytes that have arrived, without waiting.
    ///
    /// May be called on any thread, but not concurrently.
    package func take(max: Int = .max) -> Chunk {
        let (portion, asks) = state.withLock { state in
            let asks = !state.isWanted || state.isPaused
            state.isWanted = true
            let portion = state.take(max)
            let resumes = asks && (!state.isPaused || state.waitingBytes < window / 2)
            if resumes { state.isPaused = false }
            return (portion, resumes && !state.isComplete && state.failure == nil)
        }
        if asks { ask?() }
        return portion
    }

    /// Calls back once, on any thread, when `take` no longer returns `pending`; at once if that is already so.
    package func onAvailable(_ callback: @escaping @Sendable () -> Void) {
        let (isReady, asks) = state.withLock { state in
            let asks = !state.isWanted
            state.isWanted = true
            let isReady = state.waitingBytes > 0 || state.isComplete || state.failure != nil
            if !isReady { state.available = callback }
            return (isReady, asks)
        }
        if asks { ask?() }
        if isReady { callback() }
    }

    /// The next bytes, at most `max`; waits for some, and is nil at the end.
    package func next(max: Int = .max) async throws(RequestBodyError) -> [UInt8]? {
        while true {
            switch take(max: max) {
            case .bytes(let bytes): return bytes
            case .pending:
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    onAvailable { continuation.resume() }
                }
            case .end: return nil
            case .failed(let error): throw error
            }
        }
    }

    /// The same, with a failure as a problem of the caller's.
    package func next(max: Int = .max, or problem: @autoclosure () -> ProblemDocument) async throws(ProblemDocument)
        -> [UInt8]?
    {
        do throws(RequestBodyError) { return try await next(max: max) } catch { throw problem() }
    }

    package func collect(limit: Int) async throws(RequestBodyError) -> [UInt8] {
        guard let whole = try await collectUnlessLarger(than: limit, putsBack: false) else { throw .overLimit }
        return whole
    }

    /// Collects the body unless it exceeds a limit; then returns nil, and the body can still be read from its beginning.
    package func collectUnlessLarger(than limit: Int, putsBack: Bool = true) async throws(RequestBodyError) -> [UInt8]?
    {
        var whole: [UInt8] = []
        while let bytes = try await next() {
            if whole.isEmpty { whole = bytes } else { whole += bytes }
            guard whole.count <= limit else {
                if putsBack { state.withLock { $0.putBack(whole) } }
                return nil
            }
        }
        return whole
    }

    // MARK: For recordings

    /// Keeps a copy of the body, up to a limit; must be called before any of it is taken.
    package func keepCopy(limit: Int) {
        state.withLock { state in
            (state.copy, state.copyLimit) = ([], limit)
            for chunk in state.chunks { state.addToCopy(chunk) }
        }
    }

    /// The copy of the bytes that have arrived; nil if it exceeds the limit, or no copy is kept.
    package var copy: [UInt8]? { state.withLock { $0.copy } }

    // MARK: For the connection that fills it

    package var isComplete: Bool { state.withLock { $0.isComplete } }

    package var isWanted: Bool { state.withLock { $0.isWanted } }

    /// Whether the connection should read on; if not, it resumes when `ask` is called.
    package var hasRoom: Bool { state.withLock { !$0.isPaused } }

    package func append(_ bytes: [UInt8]) {
        let callback = state.withLock { state in
            state.chunks.append(bytes)
            state.waitingBytes += bytes.count
            state.addToCopy(bytes)
            state.isPaused = state.waitingBytes >= window
            return state.takeCallback()
        }
        callback?()
    }

    package func complete() {
        state.withLock { state in
            state.isComplete = true
            return state.takeCallback()
        }?()
    }

    /// Marks a body as incomplete; bytes not yet taken are dropped.
    package func fail(_ error: RequestBodyError) {
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

    /// Puts whole chunks that were taken before all others.
    mutating func putBack(_ bytes: [UInt8]) {
        chunks.removeFirst(firstChunk)
        chunks.insert(bytes, at: 0)
        (firstChunk, waitingBytes) = (0, waitingBytes + bytes.count)
    }

    mutating func take(_ max: Int) -> RequestBody.Chunk {
        if let failure { return .failed(failure) }
        guard firstChunk < chunks.count else { return isComplete ? .end : .pending }
        let chunk = chunks[firstChunk]
        let count = min(max, chunk.count - offset)
        let portion = count == chunk.count ? chunk : Array(chunk[offset..<(offset + count)])
        offset += count
        waitingBytes -= count
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
