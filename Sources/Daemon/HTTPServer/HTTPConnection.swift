import EventLoops
import Glibc
package import HTTPSemantics

/// One client's connection: reads requests, passes them to the handler, writes the responses in order.
///
/// The phases of an exchange:
/// 1. `idle`: nothing of the next request has arrived;
/// 2. `head`: the head has arrived in part;
/// 3. `handling`: the handler has the request, and either responds (then 5) or defers;
/// 4. `deferred`: the request is deferred until its reply has ended; input that arrives meanwhile waits;
/// 5. `responded`: the response is complete. `discarding` drops the rest of the request's body, then `idle` follows, or
/// 6. `lingering`: nothing more will be sent, but the client's bytes are still read, because a socket closed with unread
///    bytes resets the connection and the client would lose the response;
/// 7. `closed`.
///
/// The body of a request arrives independently of the phase (`receiving`). One request is served at a time; requests
/// pipelined behind it stay in the buffer. Used on the worker's thread only.
package final class HTTPConnection {
    enum Phase { case idle, head, handling, deferred, responded, discarding, lingering, closed }

    /// The remaining part of the current request's body.
    enum Receiving {
        case nothing
        case length(Int)
        case chunked(ChunkedDecoder)
    }

    /// Unique within the process.
    let id: UInt64
    /// The listening address that the client connected to.
    package let entrance: Entrance
    let host: ConnectionHost

    var descriptor: Int32
    var phase = Phase.idle
    /// The client's address as in `Request.peer`; the kernel is asked once.
    package private(set) lazy var peer = SocketAddress.peer(of: descriptor)
    // Exclusivity is not checked here nor for `ConnectionHost.output`, because that took a tenth of the instructions of a hit. It
    // is safe: buffers call nothing but the kernel.
    @exclusivity(unchecked) var input = InputBuffer()
    @exclusivity(unchecked) var queue = OutputQueue()
    /// The parser of a head that arrives in pieces.
    var parser: RequestParser?
    var emptyLines = 0

    /// Whether it is one too many, and open only until its client has read so.
    var isSurplus = false
    var hasServed = false

    // The current exchange.
    var answersHEAD = false
    var isHTTP11 = true
    var keepsAlive = true
    var receiving = Receiving.nothing
    var bodyReceived = 0
    /// When the last bytes of the body arrived, or its head, by the loop's clock.
    var bodyArrived: UInt64 = 0
    var discarded = 0
    var owesContinue = false
    var body: RequestBody?
    var channel: ReplyChannel?
    /// The channel of a response that is complete but not yet sent as a whole.
    var draining: ReplyChannel?
    /// The delimiter of the deferred response's body; nil before the response has begun.
    var bodyEnd: ReplyHead.BodyEnd?
    var closesAfterResponse = false
    /// Whether the next response is the last of this connection.
    private(set) var isDraining = false

    /// The action to take when the queue is empty.
    var ending = Ending.none
    enum Ending { case none, close, linger, reset }
    /// Checks whether the client has received everything, before a reset.
    var resetTimer: EventTimer?

    var readWatch: EventWatch?
    var writeWatch: EventWatch?
    var isReading = false
    var isWriting = false
    /// When the sweep calls `expired`, by the loop's clock.
    var deadline = UInt64.max
    var lingered = 0
    /// Its part of `ConnectionHost.buffered`.
    private var buffered = 0
    var isResumeScheduled = false

    init(descriptor: Int32, id: UInt64, entrance: Entrance, host: ConnectionHost) {
        self.descriptor = descriptor
        self.id = id
        self.entrance = entrance
        self.host = host
    }

    func open() {
        // This cycle is broken by `close`: the loop keeps the connection alive as long as its socket is open.
        readWatch = host.loop.watch(descriptor: descriptor, events: .read) { _ in self.readable() }
        isReading = true
        deadline = host.loop.now + host.limits.idle.nanoseconds
    }

    /// What it waits for from its client, and since when by the loop's clock; nil if the client waits for Larder.
    var pause: Pause? {
        guard queue.isEmpty, ending == .none, !isSurplus else { return nil }
        switch phase {
        case .idle:
            guard input.isEmpty else { return nil }
            return Pause(isBetweenRequests: hasServed, since: deadline - host.idleNanoseconds)
        case .head: return Pause(since: deadline - host.limits.headTimeout.nanoseconds)
        case .deferred:
            // The body may also wait for its reader, or the client for being told to send it.
            if case .nothing = receiving { return nil }
            guard let body, body.hasRoom, !owesContinue else { return nil }
            return Pause(since: bodyArrived)
        case .discarding: return Pause(since: deadline - host.limits.bodyIdle.nanoseconds)
        case .lingering: return Pause(since: deadline - host.limits.linger.nanoseconds)
        case .handling, .responded, .closed: return nil
        }
    }

    struct Pause {
        /// Whether it has served a request, and nothing of a next one has arrived.
        var isBetweenRequests = false
        let since: UInt64
    }

    /// Closes the connection to make room for another one; returns false if what has just arrived on it is served instead.
    func makeRoom() -> Bool {
        if SocketCall.unread(descriptor) > 0 {
            readable()
            if phase == .closed { return true }
            guard let pause, !pause.isBetweenRequests else { return false }
        }
        if phase == .head || phase == .deferred { refuse(.tooManyConnections) }
        close()
        return true
    }

    /// Counts what it holds of requests and responses that wait; bodies beyond the output's own size are shared.
    func reportBuffers() {
        let held = phase == .closed ? 0 : input.capacity + min(queue.byteCount, ConnectionHost.readCapacity)
        host.buffered += held - buffered
        buffered = held
    }

    // MARK: For the handler

    /// Responds at once from prepared parts.
    ///
    /// `head` is the status line and the constant fields, without the empty line at the end; `variable` contains further fields
    /// and that empty line; `body` is shared if the socket does not accept all of it, and is not sent to HEAD. The connection
    /// adds its own fields between the two.
    ///
    /// - Parameter count: how many bytes of the head are sent; nil for all.
    package func respond(
        head: [UInt8],
        upTo count: Int? = nil,
        variable: borrowing SmallBuffer,
        body: [UInt8],
        headOnly: Bool = false
    ) {
        precondition(phase == .handling, "a response without a request, or a second one")
        closesAfterResponse = mustClose
        head.withUnsafeBytes { host.output.append(UnsafeRawBufferPointer(rebasing: $0[..<(count ?? $0.count)])) }
        appendConnectionLine()
        host.output.append(variable.bytes)
        if !(headOnly || answersHEAD) { send(body) }
        phase = .responded
    }

    /// Responds at once with a head built for this response.
    package func respond(status: Int, fields: Fields = Fields(), body: [UInt8] = []) {
        precondition(phase == .handling, "a response without a request, or a second one")
        let head = makeHead(status, fields, .length(body.count), closes: mustClose)
        closesAfterResponse = head.closes
        host.output.append(head.bytes)
        if head.bodyEnd != .noBody { send(body) }
        phase = .responded
    }

    /// Builds the head of a response to the current request.
    func makeHead(_ status: Int, reason: String? = nil, _ fields: Fields, _ framing: BodyFraming, closes: Bool)
        -> ReplyHead
    {
        ReplyHead(
            status: status,
            reason: reason,
            fields: fields,
            framing: framing,
            answersHEAD: answersHEAD,
            isHTTP11: isHTTP11,
            closes: closes,
            dateLine: host.dateLine
        )
    }

    package func respond(_ problem: ProblemDocument, fields: Fields = Fields()) {
        var fields = fields
        fields.set("Content-Type", ProblemDocument.mediaType)
        respond(status: problem.status, fields: fields, body: problem.bytes)
    }

    /// Takes the request over, so that it can be served later and from any thread; requests pipelined behind it wait.
    ///
    /// - Parameter request: the head as a value, which gets the body and the client's address.
    package func deferReply(_ head: borrowing RequestHead, _ request: inout Request) -> Reply {
        precondition(phase == .handling, "a request can be deferred once, and before its response")
        phase = .deferred
        let channel = ReplyChannel(worker: host.worker, connectionID: id)
        self.channel = channel
        if case .nothing = receiving {
        } else {
            var declaredLength: Int?
            if case .length(let length) = head.framing { declaredLength = length }
            let (worker, id) = (host.worker, id)
            bodyArrived = host.loop.now
            body = RequestBody(declaredLength: declaredLength, window: host.limits.bodyWindow) {
                worker.loop.enqueue { worker.assumeIsolated { $0.bodyIsWanted(on: id) } }
            }
        }
        (request.body, request.peer) = (body, peer)
        return Reply(channel)
    }

    /// Whether the response about to begin is the last of this connection, as far as is known then.
    private var mustClose: Bool {
        if !keepsAlive || isDraining { return true }
        switch receiving {
        case .nothing: return false
        // A client that waits for 100 Continue may send its body now or not, so the next bytes are ambiguous.
        case .length(let rest): return owesContinue || rest > Self.discardLimit
        case .chunked: return owesContinue
        }
    }

    /// The number of bytes of an unread body that are discarded to keep a connection.
    static let discardLimit = 64 * 1024

    private func appendConnectionLine() {
        if closesAfterResponse {
            host.output.append("Connection: close\r\n")
        } else if !isHTTP11 {
            host.output.append("Connection: keep-alive\r\n")
        }
    }

}

/// The state shared by the connections of one worker: handler, read and write memory, limits.
///
/// Used on the worker's thread only.
final class ConnectionHost {
    let loop: EventLoop
    @exclusivity(unchecked) var limits: HTTPLimits {
        didSet {
            idleNanoseconds = limits.idle.nanoseconds
            parser = RequestParser(limits: limits)
            spareParsers = []
        }
    }
    /// The idle limit in nanoseconds, precomputed because it is needed for each response.
    @exclusivity(unchecked) private(set) var idleNanoseconds: UInt64
    let worker: HTTPWorker
    let handler: any HTTPHandler
    let counter: ConnectionCounter
    let notice: @Sendable (HTTPNotice) -> Void
    let meter: (any HTTPMeter)?

    /// The memory that connections read into; bytes not consumed at once move to the connection's own buffer.
    let readMemory = UnsafeMutablePointer<UInt8>.allocate(capacity: ConnectionHost.readCapacity)
    /// Responses of the connection being served, collected until they are sent together.
    @exclusivity(unchecked) var output = SmallBuffer(capacity: 64 * 1024)
    /// The parser for heads that arrive in one piece; a connection whose head is incomplete takes it over.
    var parser: RequestParser
    var connections: [UInt64: HTTPConnection] = [:]
    /// The bytes of requests and responses that wait on the connections.
    var buffered = 0
    var isDraining = false
    private var spareParsers: [RequestParser] = []
    private var date = DateLine()

    static let readCapacity = 64 * 1024

    /// Whether connections may hold but little, because clients send many requests ahead or do not take their responses.
    var isCrowded: Bool { buffered > limits.buffered }

    /// How many bytes are read at once where no body is expected: what does not become a request now has to be kept.
    var readSize: Int { isCrowded ? 1024 : 16 * 1024 }

    /// The size from which on `output` is sent: what the socket does not take has to be kept.
    var outputFill: Int { isCrowded ? 0 : 16 * 1024 }

    init(worker: HTTPWorker, handler: any HTTPHandler, limits: HTTPLimits) {
        (self.worker, self.handler) = (worker, handler)
        (loop, self.limits, counter) = (worker.loop, limits, worker.counter)
        (notice, meter) = (worker.notice, worker.meter)
        idleNanoseconds = limits.idle.nanoseconds
        parser = RequestParser(limits: limits)
    }

    deinit { readMemory.deallocate() }

    var dateLine: [UInt8] { date.line(at: loop.wallSeconds) }

    /// Reports a request that was neither served nor deferred, or whose reply was dropped.
    func noticeMissingResponse() {
        notice(
            HTTPNotice(message: "a request got no response; this is a bug in Larder, please report it", details: [:])
        )
    }

    /// Hands over the parser, which is in the middle of a head.
    func takeParser() -> RequestParser {
        let taken = parser
        parser = spareParsers.popLast() ?? RequestParser(limits: limits)
        return taken
    }

    /// Accepts a parser for reuse.
    func giveBack(_ parser: RequestParser) {
        if spareParsers.count < 16 { spareParsers.append(parser) }
    }
}

/// The Date line for responses without one, made once per second.
private struct DateLine {
    private var second = -1
    /// The whole line with its line end.
    private var bytes: [UInt8] = []

    /// The line for a time in seconds since 1970.
    mutating func line(at seconds: Int) -> [UInt8] {
        if seconds != second {
            second = seconds
            bytes = Array("Date: ".utf8) + HTTPDate.format(Int64(seconds)) + [0x0D, 0x0A]
        }
        return bytes
    }
}

/// The end of an exchange: the next request, or the end of the connection.
extension HTTPConnection {
    /// Runs when the response is queued as a whole: goes on to the next request, or ends the connection.
    func responseIsComplete() {
        bodyEnd = nil
        guard phase == .responded else { return }
        if case .nothing = receiving {
            body = nil
            if closesAfterResponse {
                // A client that asked for the end sends nothing more; others might still be sending.
                finish(keepsAlive && !input.isEmpty ? .linger : .close)
            } else {
                becomeIdle()
            }
            return
        }
        body?.fail(.disconnected)
        body = nil
        discarded = 0
        if closesAfterResponse {
            finish(.linger)
        } else if case .length(let rest) = receiving, rest > Self.discardLimit {
            finish(.linger)
        } else {
            phase = .discarding
            deadline = host.loop.now + host.limits.bodyIdle.nanoseconds
        }
    }

    func becomeIdle() {
        phase = .idle
        deadline = host.loop.now + host.idleNanoseconds
        if isDraining, input.isEmpty { finish(.close) }
    }

    /// Refuses a request: responds if no response has begun, and ends the connection.
    func refuse(_ fault: RequestFault) {
        body?.fail(.refused(fault))
        body = nil
        receiving = .nothing
        let hasBegun = bodyEnd != nil || phase == .discarding
        if let channel {
            self.channel = nil
            if !hasBegun { channel.respondedByConnection(fault.problem) }
            channel.disconnected()
        }
        if phase == .discarding { return finish(.linger) }
        if hasBegun { return abort() }
        (answersHEAD, isHTTP11) = (false, true)
        let problem = fault.problem
        let fields: Fields = ["Content-Type": ProblemDocument.mediaType]
        let head = makeHead(problem.status, fields, .length(problem.bytes.count), closes: true)
        host.output.append(head.bytes)
        host.output.append(problem.bytes)
        flush()
        finish(.linger)
    }

    // MARK: The end

    /// Ends the connection when everything is sent.
    func finish(_ ending: Ending) {
        guard phase != .closed, phase != .lingering else { return }
        self.ending = ending
        // Responses still in `output` mean that `consume` is running: it sends them and then calls `end`.
        if queue.isEmpty, host.output.isEmpty { end() }
    }

    /// Carries out `ending`, once everything is sent.
    func end() {
        switch ending {
        case .none: break
        case .close: close()
        case .reset: resetWhenAcknowledged()
        case .linger:
            phase = .lingering
            ending = .none
            SocketCall.endSending(descriptor)
            deadline = host.loop.now + host.limits.linger.nanoseconds
            updateReading()
        }
    }

    /// Continues in a later turn: ends the connection, or consumes the waiting input.
    func resume() {
        isResumeScheduled = false
        guard phase != .closed else { return }
        if ending != .none {
            if queue.isEmpty { end() }
            return
        }
        if queue.isEmpty { consumeInput() }
        reportBuffers()
        updateReading()
    }

    /// Closes the connection once it is idle, because the server is shutting down or does not listen on its address any more.
    func drain() {
        isDraining = true
        if phase == .idle, input.isEmpty { finish(.close) }
    }

    /// Cuts a response that cannot be completed: resets once the client has received all bytes written so far (law 8).
    func breakOff() {
        guard phase == .deferred else { return abort() }
        body?.fail(.disconnected)
        body = nil
        channel?.finished()
        draining = channel
        channel = nil
        phase = .responded
        // The rest of the client's request is no longer needed.
        ending = .reset
    }

    /// Resets once all bytes are acknowledged, because a reset discards undelivered bytes.
    private func resetWhenAcknowledged() {
        guard SocketCall.unacknowledged(descriptor) > 0 else { return abort() }
        if resetTimer == nil {
            deadline = host.loop.now + host.limits.writeStall.nanoseconds
            // This cycle is broken by `close`.
            resetTimer = EventTimer(loop: host.loop) { self.resetWhenAcknowledged() }
        }
        resetTimer?.schedule(after: .milliseconds(20))
    }

    func abort() {
        guard phase != .closed else { return }
        SocketCall.resetOnClose(descriptor)
        close()
    }

    /// Closes the socket and notifies the body and the reply channels.
    func close() {
        guard phase != .closed else { return }
        phase = .closed
        readWatch = nil
        writeWatch = nil
        resetTimer = nil
        Glibc.close(descriptor)
        descriptor = -1
        deadline = .max
        host.connections[id] = nil
        reportBuffers()
        host.counter.closed(wasRefused: isSurplus)
        host.meter?.connectionClosed()
        body?.fail(.disconnected)
        body = nil
        let channels = [channel, draining]
        (channel, draining) = (nil, nil)
        for channel in channels { channel?.disconnected() }
        host.worker.assumeIsolated { $0.connectionClosed() }
    }

    func expired() {
        if !queue.isEmpty || ending == .reset { return abort() }
        switch phase {
        case .idle, .lingering: close()
        case .head: refuse(.headTimeout)
        case .deferred: refuse(.bodyTimeout)
        case .discarding: finish(.linger)
        case .handling, .responded, .closed: break
        }
    }
}
