import Admin
import Foundation
import Logging
import Proxy
import Recording
import Settings
import Synchronization

/// What a daemon does with a recording, decided before it starts.
struct RecordingRole {
    /// What is answered from; nil where nothing is replayed.
    var recording: Recording?
    /// Whether no recorded response repeats.
    var isStrict = false
    /// Unix seconds, to which the dates of a replay are shifted; nil leaves them.
    var clock: Int64?
    /// Where is recorded, and the config that goes with it; nil where nothing is.
    var target: (folder: RecordingFolder, config: String)?
    /// The config that goes with recordings which are begun later.
    var config = ""
    /// Called with each request that a replay does not find.
    var missed: @Sendable (Replayer.Miss) -> Void = { _ in }

    /// A daemon like any other.
    static let none = RecordingRole()

    /// A replay has no way to an upstream, unless what it does not find is recorded.
    var asksUpstreams: Bool { recording == nil || target != nil }

    var isNone: Bool { recording == nil && target == nil }
}

/// The parts of a daemon that replay and record.
final class RecordingParts: Sendable {
    let replayer: Replayer?
    private let recorder: Recorder?
    /// Those of a daemon that is not for one recording.
    let made: Recordings?
    let interceptor: any ExchangeInterceptor
    private let closed = Mutex<RecordingSummary?>(nil)

    init(_ role: RecordingRole, _ core: DaemonCore, log: Logger) throws {
        replayer = try role.recording.map {
            try Replayer(
                $0,
                upstreams: core.upstreams,
                isStrict: role.isStrict,
                clock: role.clock,
                memory: core.settings.memory.maximumSize
            )
        }
        for notice in role.recording?.notices ?? [] { log.warning("\(notice)") }
        recorder = try role.target.map { target in
            let now = Date().timeIntervalSince1970
            let writer = try RecordingWriter(target.folder, config: target.config, recorded: now)
            return Recorder(writer, upstreams: core.upstreams, log: log)
        }
        guard role.isNone else {
            made = nil
            interceptor = RecordingInterceptor(replayer: replayer, recorder: recorder, missed: role.missed)
            return
        }
        let path = core.settings.store.path ?? ""
        let made = Recordings(
            folder: (path.lastIndex(of: "/").map { String(path[...$0]) } ?? "") + "recordings",
            config: role.config,
            upstreams: core.upstreams,
            log: log
        )
        self.made = made
        interceptor = made
    }

    /// Begins to store what was recorded, so that its objects can be asked for.
    func begin(_ core: DaemonCore) {
        guard let replayer else { return }
        let (cache, principals, upstreams) = (core.proxy.cache, core.proxy.principals, core.upstreams)
        Task.detached(priority: .utility) {
            await RecordedObjects(cache: cache, principals: principals, upstreams: upstreams).store(replayer.recording)
        }
    }

    /// Ends recording; what is complete is written.
    func close() {
        made?.stopAll()
        guard let recorder else { return }
        let summary = recorder.close()
        closed.withLock { $0 = summary }
    }

    /// What became of the recording, once it is closed.
    var summary: RecordingSummary? { closed.withLock { $0 } }
}

/// A folder for what lives no longer than the daemon.
final class TemporaryStore {
    let folder: String

    init(environment: [String: String]) throws {
        var template = Array("\(environment["TMPDIR"] ?? "/tmp")/larder-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw StoreFolder.Failure(environment["TMPDIR"] ?? "/tmp", code: errno)
        }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The path of the store.
    var store: String { "\(folder)/larder.db" }

    func remove() { try? FileManager.default.removeItem(atPath: folder) }
}
