import GRDB
import Mapping

/// Erases everything that was stored before a member was declared secret.
///
/// The file does not say which responses show the member: a body that matches no route may contain it too. So
/// everything from that upstream is cleaned, and its bytes are overwritten, once each time that a member becomes
/// secret. If the process dies in the middle, the next one begins again.
struct SecretErasure {
    let core: StoreCore

    /// The upstreams with secret members that were not secret when the file was last opened.
    static func pending(_ models: [UpstreamKey: UpstreamModels], in database: Database) throws -> [UpstreamKey] {
        try models.keys.sorted().filter { upstream in
            try models[upstream].map { !Self.secrets(of: $0).isSubset(of: try Self.recorded(upstream, in: database)) }
                ?? false
        }
    }

    func run() async throws(StoreError) {
        let core = core
        let models = core.models
        let (hasChanged, pending) = try await core.read { database in
            let hasChanged = try models.contains { upstream, models in
                try Self.secrets(of: models) != Self.recorded(upstream, in: database)
            }
            return (hasChanged, try Self.pending(models, in: database))
        }
        guard hasChanged else { return }
        for upstream in pending { _ = try await core.clean(CleanFilter(upstream: upstream)) }
        try await core.commit(.erasure, .prompt) { try Self.record(models, in: $0.database) }
    }

    /// Records the current secrets, once nothing of them is stored.
    static func record(_ models: [UpstreamKey: UpstreamModels], in database: Database) throws {
        for (upstream, models) in models {
            let secrets = Self.secrets(of: models)
            // A member that is no longer secret may be stored from now on, and must be erased if it becomes secret again.
            guard try secrets != Self.recorded(upstream, in: database) else { continue }
            try database.query("INSERT OR REPLACE INTO _meta VALUES (?, ?)")
                .run(Self.key(upstream), secrets.sorted().joined(separator: "\n"))
        }
    }

    /// The secret members with their models; a line break in a name can only make the sets differ, which erases too
    /// much.
    private static func secrets(of models: UpstreamModels) -> Set<String> {
        Set(models.models.declarations.flatMap { model in model.secret.map { "\(model.name) \($0)" } })
    }

    private static func recorded(_ upstream: UpstreamKey, in database: Database) throws -> Set<String> {
        let text = try database.query("SELECT value FROM _meta WHERE key = ?").first(key(upstream)) { $0.string(0) }
        return Set((text ?? "").split(separator: "\n").map(String.init))
    }

    private static func key(_ upstream: UpstreamKey) -> String { keyPrefix + upstream.rawValue }

    /// The beginning of the keys in `_meta` of what is recorded.
    static let keyPrefix = "secrets "
}

extension StoreCore {
    /// Erases newly secret members in the background, and retries until it succeeds; new responses are stored without
    /// them anyway.
    func eraseSecrets() {
        Task {
            var pause = Duration.seconds(1)
            while true {
                do throws(StoreError) {
                    return try await SecretErasure(core: self).run()
                } catch .closed {
                    // The next opening begins again.
                    return
                } catch .unwritable, .lockedOut {
                    // The file keeper or the watch has reported it.
                } catch {
                    notify(.secretsNotErased(reason: error.description))
                }
                // Nothing cancels the sleep.
                try? await Task.sleep(for: pause)
                pause = min(pause * 2, .seconds(30))
            }
        }
    }
}
