import Mapping

extension ObjectStore {
    /// Replaces the configuration while the store is open; on an error nothing has changed; one call at a time.
    ///
    /// It takes over the upstreams with their models and lags, the limit on objects, the bound on the file, the batch
    /// delay and the size of the queue. The rest stays as it was when the store was opened.
    ///
    /// Other models apply at once: each stored object is migrated when it is read, and all of them in the background,
    /// as after a restart. Responses that were taken apart by the former models and not stored yet are taken apart
    /// again. An upstream that is gone keeps its models for responses that are on their way. Its data stay, labelled by
    /// its name and URL.
    package func replaceConfiguration(by configuration: StoreConfiguration) async throws(StoreError) {
        let core = core
        var all = core.models
        for upstream in all.keys { all[upstream]?.isConfigured = false }
        for (upstream, models) in configuration.compiledModels {
            let known = all[upstream]
            let isSame = known?.models.declarations == models.models.declarations
            all[upstream] = models
            all[upstream]?.edition = isSame ? known?.edition ?? 0 : (known?.edition ?? 0) + 1
        }
        let versions = ModelVersions(path: core.budget.path, models: configuration.models)
        let views = Views(models: configuration.models)
        try await core.read { try versions.check(in: $0) }
        let migrated = try await core.commit(.migration, .prompt, alone: true) { [all] session in
            let former = session.models
            do {
                session.models = all
                let (migrated, effects) = try session.transaction {
                    try views.install(in: session.database, hasher: core.hasher)
                    try session.forgetFollowedFlipFlops()
                    return try versions.record(in: session.database)
                }
                core.foreignLocks.end(.writing)
                core.publish(effects, of: session)
                // No job of the new models may be committed before readers have them.
                core.models = all
                core.replace(configuration, in: session)
                return migrated
            } catch {
                session.models = former
                throw error
            }
        }
        migrated.forEach(core.notify)
        let erased = try await core.read { [all] in try SecretErasure.pending(all, in: $0) }
        for upstream in erased { core.notify(.secretsErased(upstream: upstream)) }
        core.eraseSecrets()
        core.modernise()
    }

    /// Fails if the store could not take over a configuration, because it has objects that are newer than its models.
    package func check(_ configuration: StoreConfiguration) async throws(StoreError) {
        let versions = ModelVersions(path: core.budget.path, models: configuration.models)
        try await core.read { try versions.check(in: $0) }
    }
}

extension StoreCore {
    /// Takes over what is not about models; writer's thread only, outside of a transaction.
    fileprivate func replace(_ new: StoreConfiguration, in session: WriterSession) {
        var configuration = configuration
        (configuration.models, configuration.lags) = (new.models, new.lags)
        configuration.objectLimit = new.objectLimit
        configuration.batchDelay = new.batchDelay
        configuration.queueBytes = new.queueBytes
        queueLimit.setLimit(bytes: new.queueBytes)
        preparedBodies.setLimit(bytes: new.queueBytes)
        if configuration.maximumFileBytes != new.maximumFileBytes {
            configuration.maximumFileBytes = new.maximumFileBytes
            budget.maximum = min(new.maximumFileBytes, budget.fileLimit)
            // If this fails, the keeper's own bound holds, and the next start sets SQLite's.
            try? budget.configure(session.database)
            try? budget.limit(session.database)
        }
        self.configuration = configuration
    }
}
