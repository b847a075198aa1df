import Admin
import Basics
import Dispatch
import Glibc
import HTTPSemantics
import Logging
import Proxy
import Settings
import Synchronization

/// Writes a line for each request, to a file or to standard error, off the loops and in batches.
///
/// No request waits for it: requests that come too fast, or while the log cannot be written, are dropped and counted. An
/// unwritable file causes one warning, and one line when it is writable again.
final class AccessLog: Sendable {
    private static let capacity = 16_384
    /// The pause after a file could not be opened or written, in ns.
    fileprivate static let retryPause: UInt64 = 1_000_000_000

    private let queue = DispatchQueue(label: "larder.access-log", qos: .utility)
    private let state = Mutex(State())
    private let writer: Mutex<AccessLogWriter>
    private let dropped: @Sendable (Int) -> Void

    private struct State {
        var waiting: [ServedRequest] = []
        var lost = 0
        var isScheduled = false
        var isReopened = false
    }

    /// - Parameter dropped: called with the number of lines not written.
    init(_ settings: Configuration.AccessLog, form: LogForm, log: Logger, dropped: @escaping @Sendable (Int) -> Void) {
        self.dropped = dropped
        writer = Mutex(AccessLogWriter(settings, form: form, log: log))
        // Opened at the start, so that problems with the file are reported then and not at the first request.
        reopen()
    }

    /// Queues a request; any thread, without waiting.
    func write(_ request: ServedRequest) {
        let hasRoom = schedule { state in
            guard state.waiting.count < Self.capacity else {
                state.lost += 1
                return false
            }
            state.waiting.append(request)
            return true
        }
        if !hasRoom { dropped(1) }
    }

    /// Reopens the file by its name, after it was renamed (logrotate).
    func reopen() { schedule { $0.isReopened = true } }

    private func schedule<Result: Sendable>(_ change: (inout State) -> Result) -> Result {
        let (result, mustSchedule) = state.withLock { state in
            let result = change(&state)
            defer { state.isScheduled = true }
            return (result, !state.isScheduled)
        }
        if mustSchedule { queue.async { self.drain() } }
        return result
    }

    private func drain() {
        while true {
            let work = state.withLock { state -> State? in
                guard !state.waiting.isEmpty || state.lost > 0 || state.isReopened else {
                    state.isScheduled = false
                    return nil
                }
                defer { state = State(isScheduled: true) }
                return state
            }
            guard let work else { return }
            let lost = writer.withLock { writer in
                if work.isReopened { writer.reopen() }
                return writer.write(work.waiting, lost: work.lost)
            }
            if lost > 0 { dropped(lost) }
        }
    }

    /// Waits until all queued requests are written, or the time is over.
    func flush(within limit: Duration) async {
        let end = Signal()
        queue.async { end.give() }
        DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(Int(limit.nanoseconds))) { end.give() }
        await end.wait()
    }
}

/// The access log of the current config; any thread.
final class CurrentAccessLog: Sendable {
    private let core: DaemonCore
    private let form: LogForm
    private let log: Logger
    private let state = Mutex(State())

    private struct State {
        var settings: Configuration.AccessLog?
        var accessLog: AccessLog?
        /// The number of its listener.
        var listener = 0
    }

    init(_ settings: Configuration.AccessLog, of core: DaemonCore, form: LogForm, log: Logger) {
        (self.core, self.form, self.log) = (core, form, log)
        apply(settings)
    }

    func apply(_ settings: Configuration.AccessLog) {
        state.withLock { state in
            guard settings != state.settings else { return }
            state.settings = settings
            if state.accessLog != nil { core.requests.stopListening(state.listener) }
            state.accessLog = nil
            guard settings.format != .off, settings != Configuration.AccessLog() else { return }
            let metrics = core.metrics
            let accessLog = AccessLog(settings, form: form, log: log) { metrics.accessLogDropped.add(UInt64($0)) }
            state.listener = core.requests.listen { accessLog.write($0) }
            state.accessLog = accessLog
        }
    }

    /// Reopens its file; returns its name, or nil if it has none.
    func reopen() -> String? {
        let (file, accessLog) = state.withLock { ($0.settings?.file, $0.accessLog) }
        guard let file, let accessLog else { return nil }
        accessLog.reopen()
        return file
    }

    func flush(within limit: Duration) async { await state.withLock(\.accessLog)?.flush(within: limit) }
}

/// The file of an access log, or standard error; one thread at a time.
private struct AccessLogWriter: ~Copyable {
    private let format: Configuration.AccessLog.Format
    private let path: String?
    private let form: LogForm
    private let colours: Bool
    private let log: Logger
    private var descriptor: Int32 = -1
    private var isTorn = false
    /// When writing began to fail, in ns; nil if it works.
    private var failedAt: UInt64?
    /// The lines not written since that was last reported.
    private var lost = 0
    private static let bufferSize = 64 << 10

    init(_ settings: Configuration.AccessLog, form: LogForm, log: Logger) {
        path = settings.file
        format = settings.format ?? (settings.file == nil ? .short : .json)
        (self.form, self.log) = (form, log)
        colours = settings.file == nil && Terminal.hasColours(on: 2)
        if path == nil { descriptor = 2 }
    }

    deinit { if path != nil, descriptor >= 0 { close(descriptor) } }

    mutating func reopen() {
        guard path != nil else { return }
        if descriptor >= 0 { close(descriptor) }
        (descriptor, isTorn, failedAt) = (-1, false, nil)
        open()
    }

    /// Writes lines; returns the number that it has not written, besides the `lost` ones.
    mutating func write(_ requests: [ServedRequest], lost before: Int) -> Int {
        var missing = 0
        var text: [UInt8] = []
        var count = 0
        for (index, request) in requests.enumerated() {
            // The journal reads the level prefix of these lines, too.
            if form == .journal, path == nil { text += "<6>".utf8 }
            text += AccessLogLine.text(RequestsResponse.Request(request), format, colours: colours).utf8
            count += 1
            guard text.count >= Self.bufferSize || index == requests.count - 1 else { continue }
            if !write(text) { missing += count }
            (text, count) = ([], 0)
        }
        lost += missing + before
        if missing == 0, failedAt == nil, lost > 0 {
            log.warning(
                "lines of the access log were dropped",
                metadata: ["lines": "\(lost)", "file": "\(path ?? "standard error")"]
            )
            lost = 0
        }
        return missing
    }

    private mutating func write(_ text: [UInt8]) -> Bool {
        if descriptor < 0 || failedAt != nil {
            if let failedAt, Self.now < failedAt + AccessLog.retryPause { return false }
            if descriptor < 0 { open() }
            guard descriptor >= 0 else { return false }
        }
        let bytes = isTorn ? [0x0A] + text : text
        let (written, code) = bytes.withUnsafeBytes { writeAll($0, to: descriptor) }
        if written > 0 { isTorn = bytes[written - 1] != 0x0A }
        guard code == 0 else {
            fail("write", code)
            return false
        }
        recover()
        return true
    }

    private mutating func open() {
        guard let path else { return }
        descriptor = Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0o640)
        if descriptor < 0 { fail("open", errno) }
    }

    private mutating func fail(_ operation: String, _ code: Int32) {
        defer { failedAt = Self.now }
        guard failedAt == nil else { return }
        log.warning(
            "the access log cannot be written; requests are served as before, their lines are dropped",
            metadata: [
                "file": "\(path ?? "standard error")", "operation": "\(operation)",
                "reason": "\(systemMessage(code))\(code == ENOENT ? "; create its folder" : "")",
            ]
        )
    }

    private mutating func recover() {
        guard failedAt != nil else { return }
        failedAt = nil
        log.notice("the access log can be written again", metadata: ["file": "\(path ?? "standard error")"])
    }

    private static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

/// One line of the access log: for people, in Apache's format, or as JSON.
enum AccessLogLine {
    typealias Request = RequestsResponse.Request

    static func text(_ request: Request, _ format: Configuration.AccessLog.Format, colours: Bool = false) -> String {
        switch format {
        case .off: ""
        case .short: short(request, colours) + "\n"
        case .common: common(request) + "\n"
        case .json: json(request) + "\n"
        }
    }

    /// `07:15:01Z 200 hit              0.2ms   1.2 KiB GET github /users/1`.
    private static func short(_ request: Request, _ colours: Bool) -> String {
        let colour = colours ? Colour(status: request.status, outcome: request.outcome) : nil
        var line = "\(request.time.dropFirst(11).prefix(8))Z "
        line += painted("\(request.status) \(HumanText.padded(request.outcome, 14))", colour)
        line += " \(leading(HumanText.duration(request.seconds), 7)) \(leading(HumanText.bytes(request.bytes), 9)) "
        line += "\(request.method) \(request.upstream.map { $0.printable + " " } ?? "")\(escaped(request.url))"
        if let detail = request.detail { line += " (\(detail.printable))" }
        if let reason = request.reason { line += ": \(reason)" }
        if let seconds = request.upstreamSeconds { line += " upstream \(HumanText.duration(seconds))" }
        if let program = request.program { line += " from \(program.printable)" }
        return line
    }

    private enum Colour: String {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case cyan = "36"

        init?(status: Int, outcome: String) {
            switch (status, outcome) {
            case (500..., _), (_, "error"): self = .red
            case (400..., _): self = .yellow
            case (_, "hit"), (_, "composed"), (_, "revalidated"): self = .green
            case (_, "stale"), (_, "offline"), (_, "stale-if-error"): self = .cyan
            default: return nil
            }
        }
    }

    private static func painted(_ text: String, _ colour: Colour?) -> String {
        colour.map { "\u{1B}[\($0.rawValue)m\(text)\u{1B}[0m" } ?? text
    }

    private static func leading(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }

    /// Apache's common log format; the user is never known.
    private static func common(_ request: Request) -> String {
        let bytes = request.bytes == 0 ? "-" : "\(request.bytes)"
        let line = "\(request.method) \(escaped(request.url).replacing("\"", with: "%22")) HTTP/1.1"
        return "\(request.client) - - [\(apacheTime(request.time))] \"\(line)\" \(request.status) \(bytes)"
    }

    /// `23/Nov/2026:07:15:01 +0000` for `2026-11-23T07:15:01.250Z`.
    private static func apacheTime(_ time: String) -> String {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let parts = time.prefix(10).split(separator: "-")
        guard parts.count == 3, let month = Int(parts[1]), months.indices.contains(month - 1) else { return time }
        return "\(parts[2])/\(months[month - 1])/\(parts[0]):\(time.dropFirst(11).prefix(8)) +0000"
    }

    /// The same as `AdminJSON` writes, in a tenth of the time.
    static func json(_ request: Request) -> String {
        JSONText.object(present: [
            "bytes": .integer(request.bytes), "cache_status": request.cacheStatus.map { .printable($0) },
            "client": .string(request.client), "detail": request.detail.map { .printable($0) },
            "id": .integer(request.id), "key": request.key.map { .string($0) }, "method": .string(request.method),
            "outcome": .string(request.outcome), "principal": request.principal.map { .string($0) },
            "program": request.program.map { .printable($0) }, "reason": request.reason.map { .printable($0) },
            "remedy": request.remedy.map { .string($0) }, "route": request.route.map { .printable($0) },
            "seconds": .number(request.seconds), "status": .integer(request.status), "time": .string(request.time),
            "upstream": request.upstream.map { .printable($0) },
            "upstream_seconds": request.upstreamSeconds.map { .number($0) }, "url": .printable(request.url),
        ]).text
    }

    /// A URL with spaces and non-ASCII bytes as percent-escapes, so that nothing in it looks like its end.
    private static func escaped(_ url: String) -> String { PercentEncoding.encode(url) { $0 > 0x20 && $0 < 0x7F } }
}
