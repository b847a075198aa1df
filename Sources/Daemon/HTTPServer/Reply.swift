import EventLoops
package import HTTPSemantics
import Synchronization

/// The means to answer one request, once, from any thread.
///
/// Everything returns at once; the worker writes when the socket can take it. A reply that is dropped without a response
/// answers 500 by itself; one dropped within a response cuts the connection. When the client has left, calls have no
/// effect, and `onDisconnect` has been called.
package final class Reply: Sendable {
    let channel: ReplyChannel

    init(_ channel: ReplyChannel) {
        self.channel = channel
    }

    deinit {
        channel.submit([.drop])
    }

    /// Sends a 1xx answer ahead of the final one; not to HTTP/1.0 clients, who do not know them.
    package func informational(status: Int, fields: Fields) {
        channel.submit([.informational(status: status, fields: fields)])
    }

    /// Begins the response.
    ///
    /// The connection adds Date when it is missing, and alone decides about Connection, Transfer-Encoding and
    /// Content-Length. Where no body is allowed (HEAD, 204, 304) whatever is written is dropped; a Content-Length there
    /// comes from `framing`, or from the fields when that is `.none`.
    package func start(status: Int, reason: String? = nil, fields: Fields, framing: ReplyFraming) {
        submit([.start(status: status, reason: reason, fields: fields, framing: framing)])
    }

    /// Adds to the body; the array is shared, not copied.
    ///
    /// Whoever writes much looks at `backlog`.
    package func write(_ chunk: [UInt8]) {
        if !chunk.isEmpty { submit([.write(chunk)]) }
    }

    /// Ends the response; trailers are sent if it is chunked.
    package func finish(trailers: Fields = Fields()) {
        submit([.finish(trailers: trailers)])
    }

    /// Gives the whole response.
    package func respond(status: Int, fields: Fields, body: [UInt8] = []) {
        submit([
            .start(status: status, reason: nil, fields: fields, framing: .length(body.count)),
            .write(body),
            .finish(trailers: Fields()),
        ])
    }

    /// Gives a problem document as the whole response.
    package func respond(_ problem: ProblemDocument, fields: Fields = Fields()) {
        var fields = fields
        fields.set("Content-Type", ProblemDocument.mediaType)
        respond(status: problem.status, fields: fields, body: problem.bytes)
    }

    /// Cuts the connection, so that a response that cannot be completed looks cut short to the client too.
    package func abort() {
        channel.submit([.abort])
    }

    /// Bytes written here that the socket has not taken yet.
    package var backlog: Int { channel.backlog }

    /// Calls back once when the backlog is below `limit` bytes, or the client gone.
    ///
    /// On the worker's thread.
    package func onDrain(below limit: Int, _ callback: @escaping @Sendable () -> Void) {
        channel.onDrain(below: limit, callback)
    }

    /// Calls back once if the client leaves before the response is finished.
    ///
    /// On the worker's thread; at once on the caller's when the client has left already.
    package func onDisconnect(_ callback: @escaping @Sendable () -> Void) {
        channel.onDisconnect(callback)
    }

    private func submit(_ operations: [ReplyChannel.Operation]) {
        let isInOrder = channel.submit(operations)
        assert(isInOrder, "a reply was used out of order: start, write, finish, once each but write")
    }
}

/// How the body of a response is to be delimited.
package enum ReplyFraming: Sendable, Equatable {
    /// This many bytes will be written.
    case length(Int)
    /// The length is not known; to an HTTP/1.0 client the end of the connection marks it.
    case chunked
    /// There is no body.
    case none
}

/// What travels from a `Reply`, on any thread, to its connection, on the worker's.
///
/// What is called for while the worker is busy travels together and is written with one system call.
final class ReplyChannel: Sendable {
    /// One call of a `Reply`.
    enum Operation: Sendable {
        case informational(status: Int, fields: Fields)
        case start(status: Int, reason: String?, fields: Fields, framing: ReplyFraming)
        case write([UInt8])
        case finish(trailers: Fields)
        case abort
        /// The reply was dropped: an error of ours, answered if it still can be.
        case drop
    }

    enum Phase { case open, started, finished }

    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct State {
        var operations: [Operation] = []
        /// Whether the worker has been notified of operations, or of callbacks that wait.
        var isScheduled = false
        var phase = Phase.open
        /// Whether the connection takes no more: it is closed, or has answered by itself.
        var isGone = false
        var drains: [(below: Int, callback: @Sendable () -> Void)] = []
        var disconnects: [@Sendable () -> Void] = []
        var observers: [any ReplyObserver] = []
        /// Whether the response is a stream of events, which has no end to wait for.
        var isStream = false

        /// Whether an observer waits for the end of the response although the client does not: many clients leave an error's
        /// body unread.
        var isObservedToItsEnd: Bool { !isStream && observers.contains { $0.outlivesClient } }
    }

    let connectionID: UInt64
    private let worker: HTTPWorker
    private let state = Mutex(State())
    /// Bytes in operations that the worker has not seen.
    private let accepted = Atomic<Int>(0)
    /// Bytes that the worker has seen and the socket has not taken.
    private let unsent = Atomic<Int>(0)

    init(worker: HTTPWorker, connectionID: UInt64) {
        self.worker = worker
        self.connectionID = connectionID
    }

    var backlog: Int { accepted.load(ordering: .relaxed) + unsent.load(ordering: .relaxed) }

    // MARK: Any thread

    /// Passes an operation on if it fits the phase; false when it comes too late or twice.
    @discardableResult
    func submit(_ operations: [Operation]) -> Bool {
        var byteCount = 0
        let (isAccepted, mustSchedule, observers) = state.withLock { state -> (Bool, Bool, [any ReplyObserver]) in
            if state.isGone { return (true, false, state.observers) }
            for operation in operations {
                guard state.accepts(operation) else { return (false, false, []) }
                if case .write(let bytes) = operation { byteCount += bytes.count }
                if case .start(_, _, let fields, _) = operation, !state.observers.isEmpty {
                    state.isStream = fields.text("content-type")?.hasPrefix("text/event-stream") ?? false
                }
                state.operations.append(operation)
            }
            // Within the lock, so that the worker cannot subtract first.
            if byteCount > 0 { accepted.add(byteCount, ordering: .relaxed) }
            defer { state.isScheduled = true }
            return (true, !state.isScheduled, state.observers)
        }
        if mustSchedule { schedule() }
        for observer in observers { operations.forEach { $0.report(to: observer) } }
        return isAccepted
    }

    /// Reports what is called for from now on to an observer.
    func observe(_ observer: any ReplyObserver) {
        state.withLock { $0.observers.append(observer) }
    }

    func onDrain(below limit: Int, _ callback: @escaping @Sendable () -> Void) {
        let (isGone, mustSchedule) = state.withLock { state in
            if state.isGone { return (true, false) }
            state.drains.append((limit, callback))
            defer { state.isScheduled = true }
            return (false, !state.isScheduled)
        }
        if mustSchedule { schedule() }
        if isGone { callback() }
    }

    func onDisconnect(_ callback: @escaping @Sendable () -> Void) {
        let isGone = state.withLock { state in
            if state.isGone { return !state.isObservedToItsEnd }
            if state.phase != .finished || !state.operations.isEmpty { state.disconnects.append(callback) }
            return false
        }
        if isGone { callback() }
    }

    private func schedule() {
        worker.loop.enqueue { [self] in
            worker.assumeIsolated { $0.replyHasOperations(self) }
        }
    }

    // MARK: The worker's thread

    /// Takes what was called for since the last time.
    func takeOperations() -> [Operation] {
        let operations = state.withLock { state in
            state.isScheduled = false
            defer { state.operations = [] }
            return state.operations
        }
        return operations
    }

    /// Notes how many bytes wait for the socket, and tells those who waited for fewer.
    func noteBacklog(_ byteCount: Int, consumed: Int) {
        unsent.store(byteCount, ordering: .relaxed)
        if consumed > 0 { accepted.subtract(consumed, ordering: .relaxed) }
        let backlog = backlog
        let ready = state.withLock { state -> [@Sendable () -> Void] in
            if state.drains.isEmpty { return [] }
            let ready = state.drains.filter { backlog < $0.below }.map(\.callback)
            state.drains.removeAll { backlog < $0.below }
            return ready
        }
        for callback in ready { callback() }
    }

    /// The connection answers by itself, because of what is wrong with the rest of the request.
    func answeredByConnection(_ problem: ProblemDocument) {
        for observer in state.withLock({ $0.observers }) where !observer.outlivesClient {
            observer.began(status: problem.status, fields: Fields(), length: problem.bytes.count)
            observer.wrote(problem.bytes)
            observer.finished()
        }
    }

    /// Notes that the response is complete as far as the reply is concerned: nobody waits for a disconnection any more.
    func finished() {
        state.withLock { $0.disconnects = [] }
    }

    /// Notes that the connection takes no more, and tells everybody who waits for anything.
    func disconnected() {
        let callbacks = state.withLock { state -> [@Sendable () -> Void] in
            if state.isGone { return [] }
            state.isGone = true
            accepted.store(0, ordering: .relaxed)
            defer {
                state.operations = []
                state.disconnects = []
                state.drains = []
            }
            return (state.isObservedToItsEnd ? [] : state.disconnects) + state.drains.map(\.callback)
        }
        unsent.store(0, ordering: .relaxed)
        for callback in callbacks { callback() }
    }
}

extension ReplyChannel.State {
    /// Moves the phase on; false when the operation has no place in it.
    mutating func accepts(_ operation: ReplyChannel.Operation) -> Bool {
        switch (operation, phase) {
        case (.informational, .open): true
        case (.start, .open):
            enter(.started)
        case (.write, .started): true
        case (.finish, .started):
            enter(.finished)
        case (.abort, .open), (.abort, .started), (.drop, .open), (.drop, .started):
            enter(.finished)
        default: false
        }
    }

    private mutating func enter(_ next: ReplyChannel.Phase) -> Bool {
        phase = next
        return true
    }
}

/// What sees the response that a client is given, as it is given: for recordings and the access log.
///
/// Called on the thread that gives the response, in its order.
package protocol ReplyObserver: AnyObject, Sendable {
    /// The response begins.
    ///
    /// - Parameter length: of its body, where that is known.
    func began(status: Int, fields: Fields, length: Int?)
    /// The next bytes of its body.
    func wrote(_ bytes: [UInt8])
    /// It is complete.
    func finished()
    /// It breaks off, or there is none.
    func aborted()
    /// Whether the response is completed for it although the client has left.
    var outlivesClient: Bool { get }
}

extension ReplyObserver {
    package var outlivesClient: Bool { true }
}

extension ReplyChannel.Operation {
    func report(to observer: any ReplyObserver) {
        switch self {
        case .informational: break
        case .start(let status, _, let fields, let framing):
            let length: Int? = if case .length(let length) = framing { length } else { nil }
            observer.began(status: status, fields: fields, length: length)
        case .write(let bytes): observer.wrote(bytes)
        case .finish: observer.finished()
        case .abort, .drop: observer.aborted()
        }
    }
}

extension Reply {
    /// Reports the response to an observer from now on; to be called before it begins.
    package func observe(_ observer: any ReplyObserver) { channel.observe(observer) }
}
