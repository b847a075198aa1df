import EventLoops
import HTTPSemantics

/// What the connections of one worker share: their handler, the memory they read into and write from, the limits.
///
/// The worker's thread only.
final class ConnectionHost {
    let loop: EventLoop
    let limits: HTTPLimits
    /// The limit on idleness, which starts anew with each response: to work it out takes longer than to look it up.
    let idleNanoseconds: UInt64
    let worker: HTTPWorker
    let handler: any HTTPHandler
    let population: Population
    let notice: @Sendable (HTTPNotice) -> Void
    let meter: (any HTTPMeter)?

    /// Where connections read to; what is not used at once moves to the connection's own buffer.
    let readMemory = UnsafeMutablePointer<UInt8>.allocate(capacity: ConnectionHost.readCapacity)
    /// Responses of the connection that is being served, until they are sent together.
    var output = SmallBuffer(capacity: 64 * 1024)
    /// The parser for heads that come in one piece; a connection that needs longer takes it away.
    var parser: RequestParser
    var connections: [UInt64: HTTPConnection] = [:]
    var isDraining = false
    private var spareParsers: [RequestParser] = []
    private var date = DateLine()

    static let readCapacity = 64 * 1024
    /// Room in `output` from which on it is sent.
    static let outputFill = 48 * 1024

    init(worker: HTTPWorker, handler: any HTTPHandler) {
        self.worker = worker
        self.handler = handler
        (loop, limits, population) = (worker.loop, worker.limits, worker.population)
        (notice, meter) = (worker.notice, worker.meter)
        idleNanoseconds = worker.limits.idle.nanoseconds
        parser = RequestParser(limits: worker.limits)
    }

    deinit {
        readMemory.deallocate()
    }

    /// The Date line of this second.
    var dateLine: [UInt8] { date.line(at: loop.wallSeconds) }

    /// A request was neither answered nor deferred, or its reply was dropped.
    func noticeMissingResponse() {
        notice(
            HTTPNotice(
                level: .error,
                message: "a request got no response; this is a bug in Larder, please report it",
                details: [:]
            )
        )
    }

    /// Gives away the parser, which is in the middle of a head.
    func takeParser() -> RequestParser {
        let taken = parser
        parser = spareParsers.popLast() ?? RequestParser(limits: limits)
        return taken
    }

    /// Takes a parser back.
    func giveBack(_ parser: RequestParser) {
        if spareParsers.count < 16 { spareParsers.append(parser) }
    }
}

/// The Date field of responses that have none, made once per second.
private struct DateLine {
    private var second = -1
    /// The whole line with its end.
    private var bytes: [UInt8] = []

    /// The line for this time, in seconds since 1970.
    mutating func line(at seconds: Int) -> [UInt8] {
        if seconds != second {
            second = seconds
            bytes = Array("Date: ".utf8) + HTTPDate.format(Int64(seconds)) + [0x0D, 0x0A]
        }
        return bytes
    }
}
