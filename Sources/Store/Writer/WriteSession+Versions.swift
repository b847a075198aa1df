import GRDB
import Mapping

/// Objects that were stored under an earlier version of their model.
extension WriteSession {
    /// Writes what is known of some of them as of today; the last one looked at, nil when there are no more.
    func modernise(after object: ObjectID, limit: Int) throws -> ObjectID? {
        guard try Meta.modernised.integer(in: database) == 0 else { return nil }
        var found: [(id: ObjectID, declared: Int)] = []
        try query(
            """
            SELECT o.id, v.declared FROM _objects o JOIN _versions v ON v.id = o.version
            WHERE o.id > ? ORDER BY o.id LIMIT ?
            """
        ).each(.id(object), .integer(Int64(limit))) { found.append(($0.id(0), Int($0.integer(1)))) }
        for (id, declared) in found {
            guard let record = try record(id) else { continue }
            let (scope, model) = try names.collection(record.collection, in: database)
            guard let models = models[try names.scope(scope, in: database).upstream],
                declared < models.models.version(of: model)
            else { continue }
            try keep(state(of: record), as: record, of: model, models: models)
        }
        if found.count == limit { return found.last?.id }
        try Meta.modernised.set(1, in: database)
        return nil
    }
}
