import HTTPSemantics
import Mapping
import Proxy
import Recording
import Settings
import Store
import Synchronization

/// Why a configuration does not replace the current one; nothing has changed then.
enum ConfigurationReplacementError: Error, Sendable, CustomStringConvertible {
    /// These parts differ, and are read at the start only.
    case needsRestart([String])
    /// Its models contradict each other.
    case invalid(MappingError)
    /// The store does not take its models.
    case store(StoreError)
    /// The daemon records or replays, by the current one.
    case recording
    /// Another one is about to replace it.
    case underWay

    var description: String {
        switch self {
        case .needsRestart(let parts):
            "\(parts.joined(separator: ", ")) cannot be changed while Larder runs; restart it"
        case .invalid(let error): "\(error)"
        case .store(let error): "\(error)"
        case .recording: "a recording has the config that it began with; end it first"
        case .underWay: "the config is being replaced already; try again"
        }
    }
}

extension DaemonCore {
    /// Replaces the configuration while the daemon runs; any thread.
    ///
    /// Requests that arrive after this has returned are served by the new one. Requests and streams under way go on with the one
    /// that they began with, also those of an upstream that is gone. An upstream is the same if it has the same name and the same
    /// URL: then its counters, back-offs and rate limits stay, and its connections if they are made in the same way. With another
    /// URL it is another upstream, which shares only the counters of its name. What memory has stays valid for upstreams
    /// for which nothing has changed; for others the disk is read, and the new rules apply.
    ///
    /// Not yet replaced, and refused if they differ: the addresses that are listened on, `workers`, `store` except for
    /// `withhold`, `memory`, the limits of clients, `limits.objects`, `log`, `access_log`, and the models of an upstream, because
    /// stored objects are migrated when the store is opened. The number of client connections remains as computed at the start.
    /// While a recording runs, and in a replay, nothing is replaced.
    ///
    /// - Parameter portable: the text of the config for recordings that are started later (`ConfigFile.portable`).
    func replaceConfiguration(by settings: Configuration, portable: String)
        async throws(ConfigurationReplacementError)
    {
        guard !isReplacing.exchange(true, ordering: .acquiringAndReleasing) else { throw .underWay }
        defer { isReplacing.store(false, ordering: .releasing) }
        guard let recordings = state.recordings, !recordings.isActive else { throw .recording }
        let former = proxy.configuration.value
        let fixed = settings.fixedParts(changedSince: former.settings)
        guard fixed.isEmpty else { throw .needsRestart(fixed) }
        let new: CompiledConfiguration
        do throws(MappingError) {
            new = try CompiledConfiguration(settings, replacing: former)
        } catch { throw .invalid(error) }
        let upstreams = new.upstreams
        do throws(StoreError) {
            try await store.replaceUpstreams(
                StoreConfiguration.models(of: upstreams),
                lags: StoreConfiguration.lags(of: upstreams)
            )
        } catch { throw .store(error) }
        recordings.replaceConfiguration(by: portable, upstreams: upstreams)
        await proxy.replaceConfiguration(by: new)
        if settings.mode != former.settings.mode { modes.set(settings.mode) }
    }
}

extension Configuration {
    /// The parts that only a restart can change and that differ from a former configuration, as the config spells them.
    fileprivate func fixedParts(changedSince former: Configuration) -> [String] {
        let listens = { (settings: Configuration) in
            let isShared = settings.upstreams.contains(where: \.listen.isEmpty)
            return (settings.listen, isShared, Set(settings.upstreams.flatMap(\.listen)))
        }
        var store = store
        store.withhold = former.store.withhold
        let parts = [
            ("listen", listens(self) != listens(former)), ("admin", admin != former.admin),
            ("workers", workers != former.workers), ("store", store != former.store),
            ("memory", memory != former.memory),
            ("the limits of clients", limits.http != former.limits.http),
            ("limits.objects", limits.objects != former.limits.objects), ("log", log != former.log),
            ("access_log", accessLog != former.accessLog),
        ]
        return parts.filter(\.1).map(\.0)
    }
}
