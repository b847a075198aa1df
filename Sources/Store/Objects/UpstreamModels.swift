import GRDB
import Mapping

/// The compiled models of one upstream, with their tools.
struct UpstreamModels: Sendable {
    let models: Models
    /// How far the upstream's responses may lag behind the upstream's data.
    let lag: Lag
    /// Whether the upstream is in the current configuration; if not, only responses that are on their way may be its.
    var isConfigured = true
    /// Counts up each time that other models replace those of the upstream.
    var edition = 0
    let decomposer: Decomposer
    let mapper: DocumentMapper
    let composer: Composer

    init(_ models: Models, lag: Lag, objectLimit: Int) {
        (self.models, self.lag) = (models, lag)
        decomposer = Decomposer(models: models, objectLimit: objectLimit)
        mapper = DocumentMapper(models: models)
        composer = Composer(models: models, lag: lag)
    }
}

extension [UpstreamKey: UpstreamModels] {
    /// An upstream's label: its name if it is in the current configuration, otherwise its name with the URL.
    func label(of key: UpstreamKey) -> String { self[key]?.isConfigured == true ? key.name : key.rawValue }

    func key(labelled label: String) -> UpstreamKey {
        first { $0.key.name == label && $0.value.isConfigured }?.key ?? UpstreamKey(rawValue: label)
    }
}

extension StoreConfiguration {
    var compiledModels: [UpstreamKey: UpstreamModels] {
        Dictionary(
            uniqueKeysWithValues: models.map { upstream, models in
                (upstream, UpstreamModels(models, lag: lags[upstream] ?? lag, objectLimit: objectLimit))
            }
        )
    }
}

extension WriterSession {
    /// A body that was decomposed before its transaction, by the models that apply now.
    ///
    /// They differ only if the configuration was replaced in between.
    func current(_ prepared: PreparedBody, of subject: MappedSubject?, upstream: UpstreamKey) -> PreparedBody {
        guard let subject, let models = models[upstream], models.edition != prepared.edition else { return prepared }
        return PreparedBody(subject, models: models, hasher: hasher, isExamined: false)
    }
}

/// The version of each model under which the objects in a file were stored.
struct ModelVersions {
    let path: String
    let models: [UpstreamKey: Models]

    /// Throws if the file has objects of a model at a newer version than declared, because they cannot be read.
    func check(in database: Database) throws {
        for (upstream, model, found) in try recorded(in: database) {
            guard let declared = models[upstream]?.declaration(of: model)?.version, declared < found,
                try hasObjects(of: model, upstream: upstream, in: database)
            else { continue }
            throw StoreError.newerModel(path: path, upstream: upstream, model: model, found: found, declared: declared)
        }
    }

    /// Records the declared versions; returns a notice for each that is newer than the stored one.
    func record(in database: Database) throws -> [StoreNotice] {
        let recorded = try recorded(in: database).map { ("\($0.upstream)\u{0}\($0.model)", $0.version) }
        let known = Dictionary(recorded, uniquingKeysWith: max)
        var notices: [StoreNotice] = []
        for (upstream, models) in models.sorted(by: { $0.key < $1.key }) {
            for model in models.declarations {
                // Objects without a record were stored at version 0.
                let stored = known["\(upstream)\u{0}\(model.name)"] ?? 0
                guard stored != model.version else { continue }
                if try hasObjects(of: model.name, upstream: upstream, in: database) {
                    let (name, version) = (model.name, model.version)
                    notices.append(.modelMigrated(upstream: upstream, model: name, from: stored, to: version))
                }
                try database.query("INSERT OR REPLACE INTO _models VALUES (?, ?, ?)")
                    .run(upstream, model.name, model.version)
            }
        }
        if !notices.isEmpty { try Meta.modernised.set(0, in: database) }
        return notices
    }

    private func recorded(in database: Database) throws -> [(upstream: UpstreamKey, model: String, version: Int)] {
        let exists = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = '_models'"
        guard try database.query(exists).integer() != nil else { return [] }
        return try database.query("SELECT upstream, model, version FROM _models")
            .all { ($0.upstream(0), $0.string(1), Int($0.integer(2))) }
    }

    private func hasObjects(of model: String, upstream: UpstreamKey, in database: Database) throws -> Bool {
        try database.query(
            """
            SELECT 1 FROM _names m JOIN _collections c ON c.model = m.id JOIN _scopes s ON s.id = c.scope
            JOIN _names u ON u.id = s.upstream AND u.text = ?2
            WHERE m.text = ?1 AND EXISTS (SELECT 1 FROM _objects o WHERE o.collection = c.id)
            """
        ).integer(model, upstream) != nil
    }
}

extension WriterSession {
    /// Migrates some of them to the current version; returns the last one read, or nil if there are no more.
    func modernise(after object: ObjectID, limit: Int) throws -> ObjectID? {
        guard try Meta.modernised.integer(in: database) == 0 else { return nil }
        let found = try query(
            """
            SELECT o.id, v.declared FROM _objects o JOIN _versions v ON v.id = o.version
            WHERE o.id > ? ORDER BY o.id LIMIT ?
            """
        ).all(object, limit) { (id: $0.id(0, as: ObjectID.self), declared: Int($0.integer(1))) }
        for (id, declared) in found {
            guard let record = try record(id) else { continue }
            guard case (let model, let models?) = try model(of: record), declared < models.models.version(of: model)
            else { continue }
            try apply(state(of: record), to: record, of: model, models: models)
        }
        if found.count == limit { return found.last?.id }
        try Meta.modernised.set(1, in: database)
        return nil
    }
}
