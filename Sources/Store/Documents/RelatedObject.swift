import GRDB
public import Mapping

/// An object that a document names without showing it.
public struct RelatedObject: Sendable {
    /// The object in the store.
    public var id: ObjectID
    /// The newest values of its shared members.
    public var json: [UInt8]
    /// The earliest time at which its values may have been true, on the store's clock.
    public var start: Int64
}

extension ObjectStore {
    /// The objects among these whose newest values are known, in the document's own upstream, principal and context (law 4).
    ///
    /// - Parameters:
    ///   - key: the document's cache key.
    ///   - selectedBy: as in `ReceivedDocument`.
    /// - Returns: the objects by name, and the commit sequence at which this holds.
    public func known(
        _ names: Set<ObjectName>,
        beside key: DocumentKey,
        selectedBy: String
    ) async throws(StoreError) -> (objects: [ObjectName: RelatedObject], sequence: Int64) {
        let models = core.models
        let context = ObjectContext(key: key.context, selectedBy: selectedBy).text
        return try await core.read { database in
            let sequence = try Meta.sequence.integer(in: database) ?? 0
            let scope = try Query(
                database,
                """
                SELECT s.id FROM _scopes s JOIN _names u ON u.id = s.upstream AND u.text = ?2
                JOIN _names x ON x.id = s.context AND x.text = ?3 WHERE s.principal = ?1
                """
            ).first(.id(key.principal), .string(key.upstream), .string(context)) { $0.id(0, as: ScopeID.self) }
            guard let scope, let known = models[key.upstream] else { return ([:], sequence) }
            let reader = try DocumentReader(database, models: models)
            var objects: [ObjectName: RelatedObject] = [:]
            for name in names {
                guard let state = try reader.state(of: name, scope: scope),
                    let id = try reader.id(of: name, scope: scope),
                    let json = state.sharedJSON(
                        model: name.model,
                        models: known.models,
                        lag: known.lag,
                        identity: { other in
                            // If an identity cannot be read, the default spelling is used.
                            try? reader.state(of: other, scope: scope)?
                                .identityJSON(model: other.model, models: known.models)
                        }
                    )
                else { continue }
                objects[name] = RelatedObject(id: id, json: json, start: state.start)
            }
            return (objects, sequence)
        }
    }
}

extension ObjectState {
    /// The earliest time at which its values may have been true.
    fileprivate var start: Int64 {
        let start = base?.observation.start ?? .min
        guard case .groups(let groups) = knowledge else { return start }
        return groups.reduce(start) { min($0, $1.clock.lo) }
    }
}
