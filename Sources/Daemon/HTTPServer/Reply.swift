import EventLoops
package import HTTPSemantics
import Synchronization

/// The handle for responding to one request, once, from any thread.
///
/// All calls return at once; the worker writes when the socket is ready. A reply dropped before its response sends a 500;
/// one dropped during its response cuts the connection. After the client has left, calls have no effect, and
/// `onDisconnect` has been called.
package final class Reply: Sendable {
    let channel: ReplyChannel

    init(_ channel: ReplyChannel) { self.channel = channel }

    deinit { channel.enqueue([.drop]) }

    /// Sends a 1xx response ahead of the final one; not to HTTP/1.0 clients, which do not know them.
    package func informational(status: Int, fields: Fields) {
        channel.enqueue([.informational(status: status, fields: fields)])
    }

    /// Begins the response.
    ///
    /// The connection adds a missing Date, and alone decides on Connection, Transfer-Encoding and Content-Length. Where no body
    /// is allowed (HEAD, 204, 205, 304) written bytes are dropped. The response to HEAD then has the Content-Length of `framing`,
    /// or of the fields if that is `.none`; a 304 and a 204 have none, and a 205 has the length 0.
    package func start(status: Int, reason: String? = nil, fields: Fields, framing: BodyFraming) {
        enqueue([.start(status: status, reason: reason, fields: fields, framing: framing)])
    }

    /// Adds to the body; the array is shared, not copied; callers that write much should watch `backlog`.
    package func write(_ chunk: [UInt8]) {
        if !chunk.isEmpty { enqueue([.write(chunk)]) }
    }

    /// Sends what was written at once if the caller is on the worker's thread; elsewhere this does nothing.
    package func flush() { channel.flush() }

    /// Ends the response; trailers are sent if it is chunked.
    package func finish(trailers: Fields = Fields()) { enqueue([.finish(trailers: trailers)]) }

    package func respond(status: Int, fields: Fields, body: [UInt8] = []) {
        enqueue([
            .start(status: status, reason: nil, fields: fields, framing: .length(body.count)),
            .write(body),
            .finish(trailers: Fields()),
        ])
    }

    /// Sends a problem document as the whole response.
    package func respond(_ problem: ProblemDocument, fields: Fields = Fields()) {
        var fields = fields
        fields.set("Content-Type", ProblemDocument.mediaType)
        respond(status: problem.status, fields: fields, body: problem.bytes)
    }

    /// Cuts the connection, so that the client sees that the response is incomplete.
    package func abort() { channel.enqueue([.abort]) }

    /// The number of written bytes that the socket has not accepted yet.
    package var backlog: Int { channel.backlog }

    /// Calls back once the backlog is below `limit` bytes, or the client has left.
    ///
    /// The callback runs on the worker's thread.
    package func onDrain(below limit: Int, _ callback: @escaping @Sendable () -> Void) {
        channel.onDrain(below: limit, callback)
    }

    /// Calls back once if the client leaves before the response is finished.
    ///
    /// The callback runs on the worker's thread, or at once on the caller's if the client has already left.
    package func onDisconnect(_ callback: @escaping @Sendable () -> Void) { channel.onDisconnect(callback) }

    /// Holds the response back until it is whole, and then until `release`; must be called before it begins.
    ///
    /// A response that breaks off, that is longer than `limit` bytes, or that is a stream of events, is released at once.
    ///
    /// - Parameter whenWhole: called once when the response is whole, on the thread that ends it; not if it is released before.
    package func buffer(upTo limit: Int, whenWhole: @escaping @Sendable (BufferedResponse) -> Void) {
        channel.buffer(ReplyChannel.Buffering(limit: limit, whenWhole: whenWhole))
    }

    private func enqueue(_ operations: [ReplyChannel.Operation]) {
        let isInOrder = channel.enqueue(operations)
        assert(isInOrder, "a reply was used out of order: start, write, finish, once each but write")
    }
}

/// A whole response that is held back; it is sent when it is released.
package struct BufferedResponse: Sendable {
    fileprivate let channel: ReplyChannel

    /// Sends it, with other fields; once.
    package func release(changing change: (inout Fields) -> Void) { channel.release(changing: change) }
}

/// Carries operations from a `Reply`, on any thread, to its connection, on the worker's thread.
///
/// Operations enqueued while the worker is busy are carried out together and written with one system call.
final class ReplyChannel: Sendable {
    enum Operation: Sendable {
        case informational(status: Int, fields: Fields)
        case start(status: Int, reason: String?, fields: Fields, framing: BodyFraming)
        case write([UInt8])
        case finish(trailers: Fields)
        case abort
        /// The reply was dropped: a bug, reported with a 500 if no response has begun.
        case drop
    }

    enum Phase { case open, started, finished }

    /// How a response is held back until it is whole.
    struct Buffering {
        let limit: Int
        let whenWhole: @Sendable (BufferedResponse) -> Void
        var bytes = 0
    }

    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct State {
        var operations: [Operation] = []
        /// Whether the worker has been notified of operations or of waiting callbacks.
        var isScheduled = false
        var phase = Phase.open
        /// Whether the connection accepts no more operations: it is closed, or has responded by itself.
        var isGone = false
        var drains: [(below: Int, callback: @Sendable () -> Void)] = []
        var disconnects: [@Sendable () -> Void] = []
        var observers: [any ReplyObserver] = []
        /// Whether the response is an endless stream of events.
        var isStream = false
        /// Set while operations are not carried out, until the response is whole.
        var buffering: Buffering?

        /// Whether an observer needs the whole response even after the client has left: many clients do not read an error's
        /// body.
        var isObservedToItsEnd: Bool { !isStream && observers.contains { $0.outlivesClient } }
    }

    let connectionID: UInt64
    private let worker: HTTPWorker
    private let state = Mutex(State())
    /// The number of bytes in operations that the worker has not seen yet.
    private let accepted = Atomic<Int>(0)
    /// The number of bytes that the worker has seen and the socket has not accepted.
    private let unsent = Atomic<Int>(0)

    init(worker: HTTPWorker, connectionID: UInt64) { (self.worker, self.connectionID) = (worker, connectionID) }

    var backlog: Int { accepted.load(ordering: .relaxed) + unsent.load(ordering: .relaxed) }

    // MARK: Any thread

    /// Enqueues operations that fit the phase; returns false if one comes too late or twice.
    @discardableResult
    func enqueue(_ operations: [Operation]) -> Bool {
        var byteCount = 0
        var whenWhole: (@Sendable (BufferedResponse) -> Void)?
        let (isAccepted, mustSchedule, observers) = state.withLock { state -> (Bool, Bool, [any ReplyObserver]) in
            if state.isGone { return (true, false, state.observers) }
            for operation in operations {
                guard state.accepts(operation) else { return (false, false, []) }
                if case .write(let bytes) = operation { byteCount += bytes.count }
                if case .start(_, _, let fields, _) = operation, !state.observers.isEmpty {
                    state.isStream = fields[.contentType]?.starts(with: "text/event-stream".utf8) ?? false
                }
                state.operations.append(operation)
            }
            // Inside the lock, so that the worker cannot subtract first.
            if byteCount > 0 { accepted.add(byteCount, ordering: .relaxed) }
            if state.buffering != nil {
                whenWhole = state.buffer(operations, byteCount)
                if state.buffering != nil { return (true, false, state.observers) }
            }
            defer { state.isScheduled = true }
            return (true, !state.isScheduled, state.observers)
        }
        if mustSchedule { schedule() }
        for observer in observers { operations.forEach { $0.report(to: observer) } }
        whenWhole?(BufferedResponse(channel: self))
        return isAccepted
    }

    func buffer(_ buffering: Buffering) { state.withLock { $0.buffering = buffering } }

    func release(changing change: (inout Fields) -> Void) {
        let mustSchedule = state.withLock { state in
            guard state.buffering != nil else { return false }
            state.buffering = nil
            for (index, operation) in state.operations.enumerated() {
                guard case .start(let status, let reason, var fields, let framing) = operation else { continue }
                change(&fields)
                state.operations[index] = .start(status: status, reason: reason, fields: fields, framing: framing)
            }
            guard !state.isGone else { return false }
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if mustSchedule { schedule() }
    }

    func observe(_ observer: any ReplyObserver) { state.withLock { $0.observers.append(observer) } }

    var observers: [any ReplyObserver] { state.withLock(\.observers) }

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

    func flush() {
        if worker.loop.isCurrent { worker.assumeIsolated { $0.replyHasOperations(self) } }
    }

    func takeOperations() -> [Operation] {
        state.withLock { state in
            state.isScheduled = false
            guard state.buffering == nil else { return [] }
            defer { state.operations = [] }
            return state.operations
        }
    }

    /// Updates the number of unsent bytes, and runs the `onDrain` callbacks that waited for fewer.
    func setBacklog(_ byteCount: Int, consumed: Int) {
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

    /// Reports a response that the connection made itself, because the rest of the request is faulty.
    func respondedByConnection(_ problem: ProblemDocument) {
        for observer in state.withLock({ $0.observers }) where !observer.outlivesClient {
            observer.began(status: problem.status, fields: Fields(), length: problem.bytes.count)
            observer.wrote(problem.bytes)
            observer.finished()
        }
    }

    /// Marks the response as complete: disconnections are no longer reported.
    func finished() { state.withLock { $0.disconnects = [] } }

    /// Marks the connection as gone, and runs all waiting callbacks.
    func disconnected() {
        let callbacks = state.withLock { state -> [@Sendable () -> Void] in
            if state.isGone { return [] }
            state.isGone = true
            state.buffering = nil
            accepted.store(0, ordering: .relaxed)
            defer {
                (state.operations, state.disconnects, state.drains) = ([], [], [])
            }
            return (state.isObservedToItsEnd ? [] : state.disconnects) + state.drains.map(\.callback)
        }
        unsent.store(0, ordering: .relaxed)
        for callback in callbacks { callback() }
    }
}

extension ReplyChannel.State {
    /// Notes operations of a response that is held back, and ends that if it breaks off or is too long.
    ///
    /// - Returns: what to call, as it is whole now.
    fileprivate mutating func buffer(_ operations: [ReplyChannel.Operation], _ byteCount: Int)
        -> (@Sendable (BufferedResponse) -> Void)?
    {
        buffering?.bytes += byteCount
        var isWhole = false
        for operation in operations {
            switch operation {
            case .finish: isWhole = true
            case .abort, .drop: buffering = nil
            // It never ends.
            case .start(_, _, let fields, _) where fields[.contentType]?.starts(with: "text/event-stream".utf8) ?? false:
                buffering = nil
            case .informational, .start, .write: break
            }
        }
        if let known = buffering, known.bytes > known.limit { buffering = nil }
        return isWhole ? buffering?.whenWhole : nil
    }

    /// Advances the phase; returns false if the operation is not allowed in it.
    mutating func accepts(_ operation: ReplyChannel.Operation) -> Bool {
        switch (operation, phase) {
        case (.informational, .open): true
        case (.start, .open): enter(.started)
        case (.write, .started): true
        case (.finish, .started), (.abort, .open), (.abort, .started), (.drop, .open), (.drop, .started):
            enter(.finished)
        default: false
        }
    }

    private mutating func enter(_ next: ReplyChannel.Phase) -> Bool {
        phase = next
        return true
    }
}

/// An observer of the response sent to a client, for recordings and the access log.
///
/// It is called on the thread that responds, in the order of the response.
package protocol ReplyObserver: AnyObject, Sendable {
    func began(status: Int, fields: Fields, length: Int?)
    func wrote(_ bytes: [UInt8])
    func finished()
    /// The response breaks off, or there is none.
    func aborted()
    /// Whether the observer needs the whole response even after the client has left.
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
    /// Reports the response to an observer; must be called before it begins.
    package func observe(_ observer: any ReplyObserver) { channel.observe(observer) }

    package var observers: [any ReplyObserver] { channel.observers }
}

/// The head of a response, serialized.
struct ReplyHead {
    enum BodyEnd: Equatable {
        /// No body; written bytes are dropped.
        case noBody
        case length(Int)
        case chunked
        case close
    }

    var bytes: [UInt8] = []
    private(set) var bodyEnd = BodyEnd.noBody
    private(set) var closes: Bool

    /// Fields that only the connection sets.
    private static let ownFields: KnownFields = [
        .connection, .keepAlive, .proxyConnection, .transferEncoding, .contentLength, .upgrade,
    ]

    init(
        status: Int,
        reason: String?,
        fields: Fields,
        framing: BodyFraming,
        answersHEAD: Bool,
        isHTTP11: Bool,
        closes: Bool,
        dateLine: [UInt8]
    ) {
        self.closes = closes
        bytes.reserveCapacity(512)
        appendStatusLine(status, reason)
        for line in fields where !line.isOne(of: Self.ownFields) { bytes.append(line) }
        if !fields.contains(.date) { bytes += dateLine }
        frame(status: status, framing: framing, fields: fields, answersHEAD: answersHEAD, isHTTP11: isHTTP11)
        if self.closes {
            bytes += "Connection: close\r\n".utf8
        } else if !isHTTP11 {
            bytes += "Connection: keep-alive\r\n".utf8
        }
        bytes += "\r\n".utf8
    }

    init(informational status: Int, fields: Fields) {
        closes = false
        appendStatusLine(status, nil)
        for line in fields { bytes.append(line) }
        bytes += "\r\n".utf8
    }

    /// Adds the framing fields, by RFC 9112 §6.3.
    ///
    /// A response without a body has no `Transfer-Encoding`, though RFC 9112 §6.1 permits it: clients wait for the chunks.
    private mutating func frame(status: Int, framing: BodyFraming, fields: Fields, answersHEAD: Bool, isHTTP11: Bool) {
        if status == 204 || status == 304 || status < 200 { return }
        if status == 205 { return append(contentLength: 0) }
        if answersHEAD {
            if case .length(let length) = framing {
                append(contentLength: length)
            } else if case .none = framing, let declared = fields.text("content-length") {
                bytes += "Content-Length: ".utf8
                bytes.append(value: declared.utf8)
                bytes += "\r\n".utf8
            }
            return
        }
        switch framing {
        case .none: append(contentLength: 0)
        case .length(let length):
            append(contentLength: length)
            bodyEnd = .length(length)
        case .chunked where isHTTP11:
            bytes += "Transfer-Encoding: chunked\r\n".utf8
            bodyEnd = .chunked
        case .chunked:
            bodyEnd = .close
            closes = true
        }
    }

    private mutating func appendStatusLine(_ status: Int, _ reason: String?) {
        bytes += "HTTP/1.1 ".utf8
        bytes.append(decimal: status)
        bytes.append(0x20)
        bytes.append(value: (reason ?? statusPhrase(status)).utf8)
        bytes += "\r\n".utf8
    }

    private mutating func append(contentLength length: Int) {
        bytes += "Content-Length: ".utf8
        bytes.append(decimal: length)
        bytes += "\r\n".utf8
    }
}

extension [UInt8] {
    /// Adds a field line; a name that is not a token is left out, and control characters become spaces.
    ///
    /// So no upstream and no handler can start a line of its own.
    mutating func append(_ line: Fields.Line) {
        let classes = ByteClass.table
        let (name, value) = (line.name, line.value)
        guard !name.isEmpty, name.allSatisfy({ classes[Int($0)] & ByteClass.token != 0 }) else { return }
        if value.allSatisfy({ classes[Int($0)] & ByteClass.value != 0 }) {
            self += line.encoded
            return
        }
        self += name
        self += [0x3A, 0x20]
        append(value: value)
        self += [0x0D, 0x0A]
    }

    /// Adds text, with control characters replaced by spaces.
    fileprivate mutating func append(value: some Sequence<UInt8>) {
        let classes = ByteClass.table
        for byte in value { append(classes[Int(byte)] & ByteClass.value != 0 ? byte : 0x20) }
    }
}
