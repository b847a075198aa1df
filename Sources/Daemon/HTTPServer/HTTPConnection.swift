import EventLoops
package import HTTPSemantics

/// One client's connection: reads requests, has them answered in order, writes the responses.
///
/// The life of an exchange:
/// 1. `idle`: nothing of the next request has arrived;
/// 2. `head`: some of it has;
/// 3. `handling`: the handler has the request, and either answers (then 5) or defers;
/// 4. `answering`: a reply somewhere else is at work; what arrives meanwhile waits;
/// 5. the response is complete: `discarding` what the client still sends of the body, then `idle` again, or
/// 6. `lingering`: nothing more will be sent, but the client's bytes are still taken, because a socket closed with unread
///    bytes resets the connection and the client would lose the response;
/// 7. `closed`.
///
/// The body of a request arrives beside that (`receiving`). One request is in work at a time; what was pipelined behind it
/// stays in the buffer. The worker's thread only.
package final class HTTPConnection {
    enum Phase { case idle, head, handling, answered, answering, discarding, lingering, closed }

    /// What is still to come of the current request's body.
    enum Receiving {
        case nothing
        case length(Int)
        case chunked(ChunkedDecoder)
    }

    /// Unique within the process.
    let id: UInt64
    /// Where the client came in.
    package let entrance: Entrance
    let host: ConnectionHost

    var descriptor: Int32
    var phase = Phase.idle
    /// The client as `Request.peer` has it; asked of the kernel once.
    package private(set) lazy var peer = SocketAddress.peer(of: descriptor)
    var input = InputBuffer()
    var queue = OutputQueue()
    /// The parser of a head that comes in pieces.
    var parser: RequestParser?
    var emptyLines = 0

    // The exchange in work.
    var isHead = false
    var isHTTP11 = true
    var keepsAlive = true
    var receiving = Receiving.nothing
    var bodyReceived = 0
    var discarded = 0
    var owesContinue = false
    var body: RequestBody?
    var channel: ReplyChannel?
    /// The channel of a response that is complete, but not yet taken by the socket.
    var draining: ReplyChannel?
    /// What delimits the deferred response's body; nil before it has begun.
    var bodyEnd: ReplyHead.BodyEnd?
    /// Whether the connection ends with this response.
    var closesAfterAnswer = false

    /// What to do when the queue is empty.
    var ending = Ending.none
    enum Ending { case none, close, linger, reset }
    /// Looks again whether the client has all that was sent before a reset.
    var resetTimer: EventTimer?

    var readWatch: EventWatch?
    var writeWatch: EventWatch?
    var isReading = false
    var isWriting = false
    /// When the sweep takes action, by the loop's clock.
    var deadline = UInt64.max
    var lingered = 0
    var isResumeScheduled = false

    init(descriptor: Int32, id: UInt64, entrance: Entrance, host: ConnectionHost) {
        self.descriptor = descriptor
        self.id = id
        self.entrance = entrance
        self.host = host
    }

    /// Begins to read.
    func open() {
        // A cycle, broken by `close`: the loop keeps the connection alive as long as its socket is open.
        readWatch = host.loop.watch(descriptor: descriptor, events: .read) { _ in self.readable() }
        isReading = true
        deadline = host.loop.now + host.limits.idle.nanoseconds
    }

    // MARK: For the handler

    /// Answers at once from parts that are ready.
    ///
    /// `head` is the status line and fields that do not change, without the empty line at the end; `variable` further
    /// fields and that empty line; `body` is shared if the socket does not take it all, and is not sent to HEAD. Connection
    /// fields are the connection's own and go between the two.
    package func respond(
        head: [UInt8],
        variable: borrowing SmallBuffer,
        body: [UInt8],
        headOnly: Bool = false
    ) {
        precondition(phase == .handling, "an answer without a request, or a second one")
        closesAfterAnswer = mustClose
        host.output.append(head)
        appendConnectionLine()
        host.output.append(variable.bytes)
        if !(headOnly || isHead) { send(body) }
        phase = .answered
    }

    /// Answers at once with a head made for the occasion.
    package func respond(status: Int, fields: Fields = Fields(), body: [UInt8] = []) {
        precondition(phase == .handling, "an answer without a request, or a second one")
        let head = makeHead(status, fields, .length(body.count), closes: mustClose)
        closesAfterAnswer = head.closes
        host.output.append(head.bytes)
        if head.bodyEnd != .noBody { send(body) }
        phase = .answered
    }

    /// The head of a response to the request in work.
    func makeHead(
        _ status: Int,
        reason: String? = nil,
        _ fields: Fields,
        _ framing: ReplyFraming,
        closes: Bool
    ) -> ReplyHead {
        ReplyHead(
            status: status,
            reason: reason,
            fields: fields,
            framing: framing,
            isHead: isHead,
            isHTTP11: isHTTP11,
            closes: closes,
            dateLine: host.dateLine
        )
    }

    /// Answers at once with a problem document.
    package func respond(_ problem: ProblemDocument, fields: Fields = Fields()) {
        var fields = fields
        fields.set("Content-Type", ProblemDocument.mediaType)
        respond(status: problem.status, fields: fields, body: problem.bytes)
    }

    /// Takes the request along, to be answered later and from any thread.
    ///
    /// What was pipelined behind it waits.
    package func deferReply(_ request: borrowing RequestHead) -> Exchange {
        precondition(phase == .handling, "a request can be deferred once, and before it is answered")
        phase = .answering
        let channel = ReplyChannel(worker: host.worker, connectionID: id)
        self.channel = channel
        if case .nothing = receiving {
        } else {
            var declaredLength: Int?
            if case .length(let length) = request.framing { declaredLength = length }
            let (worker, id) = (host.worker, id)
            body = RequestBody(declaredLength: declaredLength, window: host.limits.bodyWindow) {
                worker.loop.enqueue { worker.assumeIsolated { $0.bodyIsWanted(on: id) } }
            }
        }
        var owned = request.owned(body: body)
        owned.peer = peer
        return Exchange(request: owned, reply: Reply(channel))
    }

    /// Whether the response in the making is the last of this connection, as far as is known when it begins.
    private var mustClose: Bool {
        if !keepsAlive || host.isDraining { return true }
        switch receiving {
        case .nothing: return false
        // A client that waits for 100 Continue may or may not send its body now: there is no telling what comes next.
        case .length(let rest): return owesContinue || rest > Self.discardLimit
        case .chunked: return owesContinue
        }
    }

    /// Bytes of an unread body that are swallowed to keep a connection.
    static let discardLimit = 64 * 1024

    private func appendConnectionLine() {
        if closesAfterAnswer {
            host.output.append("Connection: close\r\n")
        } else if !isHTTP11 {
            host.output.append("Connection: keep-alive\r\n")
        }
    }

    var mustCloseAfterDeferred: Bool { !keepsAlive || host.isDraining }
}
