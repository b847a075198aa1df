import Fleet
import HTTPSemantics
import Proxy
import Recording
import Settings
import Store

extension AdminRoute {
    static let status: [AdminRoute] = documented([
        "How the daemon does, in one document: what it serves, its upstreams, its bounds, and what needs somebody's attention.":
            .json("GET /status") { _, daemon in try await Status(daemon) }
    ])
}

/// `GET /status`.
package struct Status: AdminBody {
    static let sentences = [
        "ok": "Whether nothing needs a person.", "version": "Larder's version.",
        "started": "When the process started (RFC 3339).", "uptime": "Seconds since then.",
        "config": "The config file; absent without one.", "listen": "The addresses for programs, as bound.",
        "admin": "The addresses of the admin side, as bound.", "mode": "`auto`, `online` or `offline`.",
        "configuredMode": "The mode that the config says.", "upstreams": "As in `/upstreams`.",
        "lastHour": "The requests of the last hour.", "sinceStart": "The requests since the start.",
        "store": "The store's file and its bound.",
        "memory": "The responses that are ready in memory, and their bound.",
        "fleet": "How it does in its fleet; absent without one.",
        "notes": "What is to be known or done, the most urgent first.",
    ]
    package var ok = true
    package var version: String
    var started: String
    package var uptime: Int
    package var config: String?
    package var listen: [String]
    package var admin: [String]
    package var mode: String
    var configuredMode: String
    package var upstreams: [UpstreamsResponse.Upstream]
    package var lastHour: Requests
    package var sinceStart: Requests
    package var store: StoreFigures
    package var memory: MemoryFigures
    package var fleet: FleetStatus?
    package var notes: [Note] = []

    package struct Requests: AdminBody {
        static let sentences = [
            "requests": "All of the data side.", "hits": "Those for which the upstream was not asked.",
            "errors": "Those that got a problem document of Larder's own.",
            "hitRatio": "The share of hits, from 0 to 1; absent without requests.",
        ]
        package var requests: UInt64
        var hits: UInt64
        package var errors: UInt64
        package var hitRatio: Double?

        init(_ counts: [TrafficHistory.Counts]) {
            requests = counts.reduce(0) { $0 &+ $1.requests }
            hits = counts.reduce(0) { $0 &+ $1.hits }
            errors = counts.reduce(0) { $0 &+ $1.errors }
            hitRatio = requests == 0 ? nil : (Double(hits) / Double(requests) * 1000).rounded() / 1000
        }
    }

    package struct StoreFigures: AdminBody {
        static let sentences = [
            "path": "The file.", "bytes": "Bytes in use in it.", "maximum": "The most disk space it may use, in bytes.",
            "queued": "Responses that wait to be stored.",
        ]
        package var path: String
        package var bytes: Int
        package var maximum: Int
        package var objects: Int
        package var documents: Int
        var queued: Int
    }

    package struct MemoryFigures: AdminBody {
        static let sentences = ["bytes": "Bytes that they use.", "maximum": "The most that they may use, in bytes."]
        package var bytes: Int
        package var maximum: Int
        package var responses: Int
    }

    package struct Note: AdminBody, Equatable {
        static let sentences = [
            "text": "One or more sentences.", "needsAttention": "Whether a person has to do something about it.",
        ]
        package var text: String
        package var needsAttention: Bool
    }
}

extension Status {
    init(_ daemon: DaemonCore) async throws {
        let (state, settings) = (daemon.state, daemon.settings)
        let now = ProcessFigures.wallClock()
        let count = try await daemon.store.count()
        let statistics = daemon.store.statistics
        let ready = daemon.proxy.cache.memory.statistics
        let traffic = daemon.traffic.current
        version = daemon.version
        started = StoreTime.text(Int64(daemon.metrics.startTime * 1_000_000))
        uptime = max(0, Int(now - daemon.metrics.startTime))
        config = state.configSource?.path
        (listen, admin) = (state.addresses.data.map(\.description), state.addresses.admin.map(\.description))
        (mode, configuredMode) = (daemon.modes.current.rawValue, settings.mode.rawValue)
        upstreams = daemon.upstreamStates
        (lastHour, sinceStart) = (Requests(traffic.intervals), Requests([traffic.total]))
        store = StoreFigures(
            path: settings.store.path ?? "",
            bytes: Int(count.bytes),
            maximum: settings.store.maximumSize,
            objects: count.objects,
            documents: count.documents,
            queued: statistics.queued
        )
        memory = MemoryFigures(bytes: ready.bytes, maximum: settings.memory.maximumSize, responses: ready.responses)
        fleet = daemon.fleet.map { FleetStatus($0.figures) }
        notes = urgent(state, daemon.storeTrouble)
        notes += fleet?.note.map { [Note(text: $0, needsAttention: true)] } ?? []
        let limited = daemon.metrics.allUpstreams.filter { $0.metrics.health.isBackOffForLimit }.map(\.name)
        notes += remarks(warnings: Int(statistics.warnings), limited: Set(limited), state)
        notes += lastHour.adviceOnMisses(daemon.requests).map { [Note(text: $0, needsAttention: false)] } ?? []
        ok = !notes.contains(where: \.needsAttention)
    }

    private func urgent(_ state: DaemonCore.State, _ storeTrouble: StoreTrouble) -> [Note] {
        var texts = state.unreadiness.map { ["not ready: \($0)"] } ?? []
        texts += storeTrouble.all
        if let failed = state.failedReload {
            let time = StoreTime.text(Int64(failed.time * 1_000_000))
            texts.append("the config could not be reloaded at \(time), the former one is in force: \(failed.error)")
        }
        if !state.keysForRestart.isEmpty {
            let keys = state.keysForRestart.joined(separator: ", ")
            texts.append("a restart is needed for these keys of the config: \(keys)")
        }
        let stale = [("credential of upstream", state.staleCredentials), ("secret of webhook", state.staleWebhooks)]
        for (kind, reasons) in stale {
            texts += reasons.sorted { $0.key < $1.key }.map { "the \(kind) \($0.key) is the former one: \($0.value)" }
        }
        texts += state.staleToken.map { ["the admin token is the former one: \($0)"] } ?? []
        texts += upstreams.compactMap(\.trouble)
        return texts.map { Note(text: $0, needsAttention: true) }
    }

    /// - Parameter limited: the upstreams that Larder backs off from because a rate limit is used up.
    private func remarks(warnings: Int, limited: Set<String>, _ state: DaemonCore.State) -> [Note] {
        var texts = state.replayer.map { ["responses come from the recording \($0.recording.folder.path)"] } ?? []
        if mode != configuredMode {
            texts.append("the mode is \(mode), as it was set at run time; the config says \(configuredMode)")
        }
        texts += upstreams.compactMap { upstream in
            upstream.backOffUntil.map { end in
                limited.contains(upstream.name)
                    ? "a credential's rate limit at upstream \(upstream.name) is used up; requests that count against it are not sent until \(end)"
                    : "upstream \(upstream.name) has asked for a pause (Retry-After); requests with the same credential are not sent until \(end)"
            }
        }
        if warnings > 0 {
            texts.append("\(warnings) warnings about responses since the start; `larder warnings` lists them")
        }
        return texts.map { Note(text: $0, needsAttention: false) }
    }
}

extension Status.Requests {
    /// What would make requests hits, if few of many are; nil if not.
    fileprivate func adviceOnMisses(_ log: RequestLog) -> String? {
        guard requests >= 20, let hitRatio, hitRatio < 0.1 else { return nil }
        let lines = Dictionary(grouping: log.requests(after: 0).requests.compactMap(\.remedy), by: \.self)
        guard let (line, missed) = lines.max(by: { ($0.value.count, $1.key) < ($1.value.count, $0.key) }) else {
            return "few requests are hits; `larder explain URL` says why, and what may help"
        }
        return "few requests are hits; with this line of config, \(missed.count) of the latest would have been: \(line)"
    }
}

extension UpstreamsResponse.Upstream {
    /// What is wrong with it, if a person has to do something; nil if not.
    fileprivate var trouble: String? {
        let cause = lastError.map { ": \($0.message)" } ?? ""
        if let unreachableSince { return "upstream \(name) cannot be reached since \(unreachableSince)\(cause)" }
        if let slowSince { return "upstream \(name) does not respond in time (patience) since \(slowSince)" }
        guard let failingSince else { return nil }
        return "upstream \(name) fails since \(failingSince)\(cause)"
    }
}
