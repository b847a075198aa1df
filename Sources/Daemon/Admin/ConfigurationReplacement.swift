import HTTPSemantics
import Logging
package import Mapping
import Proxy
import Recording
package import Settings
package import Store
import Synchronization

/// Why a configuration does not replace the current one; nothing has changed then.
package enum ConfigurationReplacementError: Error, Sendable, CustomStringConvertible {
    /// The config has mistakes, warnings besides.
    case mistakes([Diagnostic])
    /// There is no config where it was; a sentence.
    case unreadable(String)
    case invalid(MappingError)
    case store(StoreError)
    /// It needs an address or a credential that cannot be had; a sentence.
    case unavailable(String)
    /// The daemon records or replays, by the current one.
    case recording
    case underWay
    /// There is no config to read again.
    case noSource

    package var description: String {
        switch self {
        case .mistakes(let found): found.filter { $0.severity == .error }.map(\.description).joined(separator: "\n")
        case .unreadable(let reason), .unavailable(let reason): reason
        case .invalid(let error): "\(error)"
        case .store(let error): "\(error)"
        case .recording: "a recording has the config that it began with; end it first"
        case .underWay: "the config is being replaced already; try again"
        case .noSource: "a recording has the config that it began with; `larder serve` alone reads its config again"
        }
    }
}

/// Where the daemon's config comes from, and what depends on it outside of `DaemonCore`: sockets and logs.
package struct ConfigSource: Sendable {
    /// What has been made ready for a configuration, to be called once it is in force, or if it will not be.
    package typealias Preparation = (commit: @Sendable () -> Void, abandon: @Sendable () -> Void)

    /// The config file; nil if a URL alone was given.
    let path: String?
    /// Reads it with all that it names, and its text for recordings (`ConfigFile.portable`).
    let read: @Sendable () throws -> (file: ConfigFile, portable: String)
    /// Makes ready what may fail, such as the sockets of new addresses.
    package var prepare: @Sendable (Configuration) throws -> Preparation = { _ in ({}, {}) }

    package init(path: String?, read: @escaping @Sendable () throws -> (file: ConfigFile, portable: String)) {
        (self.path, self.read) = (path, read)
    }
}

extension DaemonCore {
    /// Reads the config again and puts it in force, if it has no mistake, or finds out what would change; any thread.
    package func reload(dryRun: Bool = false) async throws(ConfigurationReplacementError) -> Reload {
        guard let source = state.configSource else { throw .noSource }
        do throws(ConfigurationReplacementError) {
            let file: ConfigFile
            let portable: String
            do { (file, portable) = try source.read() } catch { throw .unreadable("\(error)") }
            guard file.errors.isEmpty else { throw .mistakes(file.diagnostics) }
            let changes = try await replaceConfiguration(
                by: file.settings,
                portable: portable,
                dryRun: dryRun,
                source.prepare
            )
            let reload = Reload(path: source.path, isDryRun: dryRun, changes: changes, warnings: file.diagnostics)
            if !dryRun { note(reload) }
            return reload
        } catch {
            if case .underWay = error { throw error }
            if !dryRun { note(error) }
            throw error
        }
    }

    /// Replaces the configuration while the daemon runs; any thread.
    ///
    /// Requests that arrive after this has returned are served by the new one. Requests and streams under way go on with the one
    /// that they began with, also those of an upstream that is gone. An upstream is the same if it has the same name and the same
    /// URL: then its counters, back-offs and rate limits stay, and its connections if they are made in the same way. With another
    /// URL it is another upstream, which shares only the counters of its name. What memory has stays valid for upstreams
    /// for which nothing has changed; for others the disk is read, and the new rules apply. Stored objects are brought to other
    /// models in the background.
    ///
    /// What only a restart changes stays as it was (`ConfigKey.readAtStart`). While a recording runs, and in a replay, nothing is
    /// replaced.
    ///
    /// - Parameters:
    ///   - portable: the text of the config for recordings that are started later (`ConfigFile.portable`).
    ///   - dryRun: whether to find out only what would change, and whether anything prevents it.
    ///   - prepare: makes ready what depends on the configuration outside of the core.
    /// - Returns: what has changed, and what would after a restart.
    @discardableResult
    func replaceConfiguration(
        by settings: Configuration,
        portable: String,
        dryRun: Bool = false,
        _ prepare: (Configuration) throws -> ConfigSource.Preparation = { _ in ({}, {}) }
    ) async throws(ConfigurationReplacementError) -> [ConfigChange] {
        guard !isReplacing.exchange(true, ordering: .acquiringAndReleasing) else { throw .underWay }
        defer { isReplacing.store(false, ordering: .releasing) }
        let recordings = state.recordings
        guard dryRun || recordings?.isActive == false else { throw .recording }
        let former = proxy.configuration.value
        let (changes, inForce) = settings.changes(since: former.settings)
        let new: CompiledConfiguration
        do throws(MappingError) {
            new = try CompiledConfiguration(inForce, replacing: former)
        } catch { throw .invalid(error) }
        let stored = StoreConfiguration(inForce, path: inForce.store.path ?? "", new.upstreams)
        if dryRun { do throws(StoreError) { try await store.check(stored) } catch { throw .store(error) } }
        let preparation: ConfigSource.Preparation
        do { preparation = try prepare(inForce) } catch { throw .unavailable("\(error)") }
        if dryRun {
            preparation.abandon()
            return changes
        }
        do throws(StoreError) {
            try await store.replaceConfiguration(by: stored)
        } catch {
            preparation.abandon()
            throw .store(error)
        }
        proxy.cache.memory.capacity = inForce.memory.maximumSize
        recordings?.replaceConfiguration(by: portable, upstreams: new.upstreams)
        await proxy.replaceConfiguration(by: new)
        preparation.commit()
        // What was set at run time holds until the config says something else.
        if inForce.mode != former.settings.mode { try? setMode(inForce.mode) }
        return changes
    }
}

/// What a reload has changed, or would change.
package struct Reload: Sendable {
    var path: String?
    var isDryRun: Bool
    var changes: [ConfigChange]
    var warnings: [Diagnostic]

    var keysForRestart: [String] { changes.filter(\.needsRestart).map(\.key) }
}

/// Reports reloads in the log, and remembers the last one.
extension DaemonCore {
    private func note(_ reload: Reload) {
        setState { ($0.keysForRestart, $0.failedReload) = (reload.keysForRestart, nil) }
        for warning in reload.warnings { proxy.log.warning("\(warning)") }
        let keys = reload.changes.filter { !$0.needsRestart }.map(\.key)
        proxy.log.notice("the config is reloaded", metadata: ["changed": "\(Self.listed(keys))"])
        guard !reload.keysForRestart.isEmpty else { return }
        proxy.log.warning(
            "parts of the config take effect at a restart only",
            metadata: ["keys": "\(Self.listed(reload.keysForRestart))"]
        )
    }

    private func note(_ error: ConfigurationReplacementError) {
        let time = ProcessFigures.wallClock()
        setState { $0.failedReload = (time, error) }
        proxy.log.error("the config is not reloaded, and the former one stays in force")
        for line in error.description.split(separator: "\n") { proxy.log.error("\(line)") }
    }

    private static func listed(_ keys: [String]) -> String {
        keys.isEmpty ? "nothing" : keys.firstTwenty
    }
}
