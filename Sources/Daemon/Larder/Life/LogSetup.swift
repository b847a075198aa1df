import Glibc
import HTTPSemantics
import Logging
import Settings

/// The form of log lines.
enum LogForm: Sendable {
    /// For people: time, level, message, fields.
    case plain
    /// For journald: the level as a `<N>` prefix, no time, because the journal has its own.
    case journal
    /// For programs: an object per line.
    case json

    /// journald sets JOURNAL_STREAM for services whose standard error it reads.
    static func suitable(for environment: [String: String]) -> LogForm {
        environment["JOURNAL_STREAM"] == nil ? .plain : .journal
    }
}

/// Starts logging; once per process.
enum LogSetup {
    static func start(_ form: LogForm, level: Configuration.Log.Level) {
        let level = Logger.Level(level)
        LoggingSystem.bootstrap { LineLogHandler(label: $0, form: form, level: level) }
    }
}

extension Logger.Level {
    init(_ level: Configuration.Log.Level) {
        self =
            switch level {
            case .trace: .trace
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            }
    }

    /// The priority of syslog, which journald reads.
    fileprivate var priority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}

/// Writes each event as one line, with one `write`, to standard error.
struct LineLogHandler: LogHandler {
    let label: String
    let form: LogForm
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    init(label: String, form: LogForm, level: Logger.Level) {
        self.label = label
        self.form = form
        logLevel = level
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var fields = metadata
        if let provided = metadataProvider?.get() { fields.merge(provided) { $1 } }
        if let own = event.metadata { fields.merge(own) { $1 } }
        let line = line(event.level, event.message.description, fields, time: .now)
        var bytes = Array(line.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }

    /// The line, line feed included.
    func line(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata, time: LogTime) -> String {
        let fields = fields.sorted { $0.key < $1.key }
        if form == .json {
            let head = [
                ("time", time.text), ("level", level.rawValue), ("logger", label), ("message", message),
            ]
            let members = head + fields.map { ($0.key, $0.value.description) }
            return JSONText.object(members.map { (name: $0, value: .printable($1)) }).text + "\n"
        }
        let text =
            message.printable + fields.map { " \($0.key)=\(Self.quoted($0.value.description))" }.joined() + "\n"
        return switch form {
        case .journal: "<\(level.priority)>\(text)"
        case .plain, .json: "\(time.text) \(level.rawValue) \(text)"
        }
    }

    /// Quoted where it would not be read as one word.
    private static func quoted(_ value: String) -> String {
        let isWord =
            !value.isEmpty
            && value.unicodeScalars.allSatisfy { !$0.isDeceptive && $0 != " " && $0 != "\"" && $0 != "=" }
        return isWord ? value : "\"\(value.printable.replacing("\"", with: "\\\""))\""
    }
}

/// A time in logs: in UTC, because local time is ambiguous.
struct LogTime: Sendable {
    var seconds: Int
    var milliseconds: Int

    static var now: LogTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return LogTime(seconds: time.tv_sec, milliseconds: time.tv_nsec / 1_000_000)
    }

    /// `2026-11-21T09:52:33.250Z`.
    var text: String {
        var seconds = time_t(seconds)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        var buffer = [CChar](repeating: 0, count: 32)
        let count = strftime(&buffer, buffer.count, "%Y-%m-%dT%H:%M:%S", &parts)
        let digits = String(1000 + milliseconds).dropFirst()
        return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) + ".\(digits)Z"
    }
}
