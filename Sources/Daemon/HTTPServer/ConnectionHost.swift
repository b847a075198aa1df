import EventLoops
import HTTPSemantics

/// The state shared by the connections of one worker: handler, read and write memory, limits.
///
/// Used on the worker's thread only.
final class ConnectionHost {
    let loop: EventLoop
    let limits: HTTPLimits
    /// The idle limit in nanoseconds, precomputed because it is needed for each response.
    let idleNanoseconds: UInt64
    let worker: HTTPWorker
    let handler: any HTTPHandler
    let population: Population
    let notice: @Sendable (HTTPNotice) -> Void
    let meter: (any HTTPMeter)?

    /// The memory that connections read into; bytes not consumed at once move to the connection's own buffer.
    let readMemory = UnsafeMutablePointer<UInt8>.allocate(capacity: ConnectionHost.readCapacity)
    /// Responses of the connection being served, collected until they are sent together.
    var output = SmallBuffer(capacity: 64 * 1024)
    /// The parser for heads that arrive in one piece; a connection whose head is incomplete takes it over.
    var parser: RequestParser
    var connections: [UInt64: HTTPConnection] = [:]
    var isDraining = false
    private var spareParsers: [RequestParser] = []
    private var date = DateLine()

    static let readCapacity = 64 * 1024
    /// The size from which on `output` is sent.
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

    /// The Date line of the current second.
    var dateLine: [UInt8] { date.line(at: loop.wallSeconds) }

    /// Reports a request that was neither served nor deferred, or whose reply was dropped.
    func noticeMissingResponse() {
        notice(
            HTTPNotice(
                level: .error,
                message: "a request got no response; this is a bug in Larder, please report it",
                details: [:]
            )
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
