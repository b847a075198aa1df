import Basics
import Glibc
import HTTPSemantics
import Logging
import Settings
import Synchronization

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

/// Starts logging, once per process; the level can be changed at any time, from any thread.
enum LogSetup {
    private static let index = Atomic(0)

    static var level: Logger.Level {
        get { Logger.Level.allCases[index.load(ordering: .relaxed)] }
        set { index.store(Logger.Level.allCases.firstIndex(of: newValue) ?? 0, ordering: .relaxed) }
    }

    static func start(_ form: LogForm, level: Configuration.Log.Level) {
        self.level = Logger.Level(level)
        LoggingSystem.bootstrap { LineLogHandler(label: $0, form: form) }
    }
}

extension Logger.Level {
    init(_ level: Configuration.Log.Level) { self = Self(rawValue: level.rawValue) ?? .info }

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
    /// A level of this handler's own; nil for that of all.
    private var ownLevel: Logger.Level?
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    init(label: String, form: LogForm) { (self.label, self.form) = (label, form) }

    var logLevel: Logger.Level {
        get { ownLevel ?? LogSetup.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var fields = metadata
        if let provided = metadataProvider?.get() { fields.merge(provided) { $1 } }
        if let own = event.metadata { fields.merge(own) { $1 } }
        let time = SystemClock.nanoseconds(CLOCK_REALTIME) / 1_000_000
        let line = line(event.level, event.message.description, fields, milliseconds: time)
        _ = Array(line.utf8).withUnsafeBytes { writeAll($0, to: 2) }
    }

    /// The line, line feed included; the time is in UTC, because local time is ambiguous.
    func line(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata, milliseconds: Int64) -> String {
        let time = Timestamp.text(milliseconds: milliseconds)
        let fields = fields.sorted { $0.key < $1.key }
        if form == .json {
            let head = [("time", time), ("level", level.rawValue), ("logger", label), ("message", message)]
            let members = head + fields.map { ($0.key, $0.value.description) }
            return JSONText.object(members.map { (name: $0, value: .printable($1)) }).text + "\n"
        }
        let text =
            message.printable + fields.map { " \($0.key)=\(Self.quoted($0.value.description))" }.joined() + "\n"
        return switch form {
        case .journal: "<\(level.priority)>\(text)"
        case .plain, .json: "\(time) \(level.rawValue) \(text)"
        }
    }

    private static func quoted(_ value: String) -> String {
        let isWord =
            !value.isEmpty
            && value.unicodeScalars.allSatisfy { !$0.isDeceptive && $0 != " " && $0 != "\"" && $0 != "=" }
        return isWord ? value : "\"\(value.printable.replacing("\"", with: "\\\""))\""
    }
}
