import GRDB
public import Mapping

/// An object in the form of its model, made of what other responses have shown of it.
public struct AssembledObject: Sendable {
    public var mapped: MappedBody
    /// The earliest time at which its values may have been true, on the store's clock.
    public var start: Int64
    public var isInDoubt: Bool
}

extension ObjectStore {
    /// An object of a key's upstream, principal and context in the form of its model; nil if its state is not known, or if it
    /// is deleted.
    ///
    /// It has the settled values of its shared members only: local ones, and those that are merged by a policy, belong to
    /// other responses (law 5).
    ///
    /// - Parameters:
    ///   - model: the model in whose form it is shown, or the base of its cluster.
    ///   - dividedBy: as in `ReceivedDocument`.
    public func assembled(
        _ object: BoundObject,
        as model: String,
        under key: CacheKey,
        dividedBy: Int64? = nil
    ) async throws(StoreError) -> AssembledObject? {
        let (models, keyHasher) = (core.models, core.keyHasher)
        return try await core.read { database in
            let reader = try DocumentReader(database, models: models)
            guard let known = models[key.upstream],
                let scope = try DocumentReader.scope(of: key, in: database),
                let name = try reader.name(of: object, known.models, keyHasher, scope: scope)
            else { return nil }
            func shared(_ name: ObjectName) throws -> (state: ObjectState, bytes: [UInt8], isInDoubt: Bool)? {
                guard let state = try reader.state(of: name, scope: scope),
                    try reader.mayShow(state, dividedBy: dividedBy),
                    let payload = state.sharedPayload(model: name.model, models: known.models, lag: known.lag)
                else { return nil }
                return (state, payload.bytes, payload.isInDoubt)
            }
            guard let found = try shared(name) else { return nil }
            let mapped = known.mapper.mapObject(found.bytes, model: model, identity: name.identity) { other in
                // An object that cannot be read is shown by its identity, like an unknown one.
                (try? shared(other))?.bytes
            }
            guard mapped.isMapped else { return nil }
            return AssembledObject(mapped: mapped, start: found.state.start, isInDoubt: found.isInDoubt)
        }
    }
}
