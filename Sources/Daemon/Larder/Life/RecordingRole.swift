import Admin
import Foundation
import Logging
import Proxy
import Recording
import Settings
import Synchronization

/// What a daemon does with a recording, decided before it starts.
struct RecordingRole {
    var recording: RecordingContents?
    /// Whether each recorded response is served only once.
    var isStrict = false
    var isDelayed = true
    /// The time, in Unix seconds, to which the dates of a replay are shifted; nil leaves them.
    var clock: Int64?
    /// The folder to record into, and the config stored with it; nil if nothing is recorded.
    var target: (folder: RecordingFolder, config: String)?
    /// The config stored with recordings that are started later.
    var config = ""
    /// Called with each request that a replay does not find.
    var missed: @Sendable (Replayer.Miss) -> Void = { _ in }

    static let none = RecordingRole()

    /// Whether upstreams may be asked; a replay asks none, unless it records requests that it does not find.
    var asksUpstreams: Bool { recording == nil || target != nil }
    var isNone: Bool { recording == nil && target == nil }
}

final class RecordingParts: Sendable {
    let replayer: Replayer?
    private let recorder: Recorder?
    /// The recordings started at run time; nil if the daemon is for one recording.
    let made: Recordings?
    let interceptor: any ExchangeInterceptor
    private let closed = Mutex<RecordingSummary?>(nil)

    init(_ role: RecordingRole, _ core: DaemonCore, log: Logger) throws {
        replayer = try role.recording.map {
            try Replayer(
                $0,
                upstreams: core.upstreams,
                isStrict: role.isStrict,
                isDelayed: role.isDelayed,
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
        let made = Recordings(
            folder: pathBeside(core.settings.store.path ?? "", "recordings"),
            config: role.config,
            upstreams: core.upstreams,
            log: log
        )
        self.made = made
        interceptor = made
    }

    /// Begins to store the recorded responses, so that their objects can be queried.
    func begin(_ core: DaemonCore) {
        guard let replayer else { return }
        let (cache, principals, upstreams) = (core.proxy.cache, core.proxy.principals, core.upstreams)
        Task.detached(priority: .utility) {
            await RecordedObjects(cache: cache, principals: principals, upstreams: upstreams).store(replayer.recording)
        }
    }

    /// Ends recording: complete exchanges are written, and nothing is left of a recording without any.
    func close() {
        made?.stopAll()
        guard let recorder else { return }
        let summary = recorder.close(isRemovedIfEmpty: true)
        closed.withLock { $0 = summary }
    }

    var summary: RecordingSummary? { closed.withLock { $0 } }
}

/// A folder for files that live no longer than the daemon.
final class TemporaryStore {
    let folder: String

    init(environment: [String: String]) throws {
        var template = Array("\(environment["TMPDIR"] ?? "/tmp")/larder-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw StoreFolderError(environment["TMPDIR"] ?? "/tmp", code: errno) }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    var store: String { "\(folder)/larder.db" }

    func remove() { try? FileManager.default.removeItem(atPath: folder) }
}
