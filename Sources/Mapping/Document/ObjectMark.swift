/// A fact about an object beside its observations: a write may have changed it, or it is deleted.
///
/// Times are microseconds of the store's clock. Values observed before the mark no longer count as current: they move
/// into no document, and a document observed before the mark that shows the object is not served unchecked.
public enum ObjectMark: Sendable, Equatable {
    /// A write was complete at this time, and no response showed its effect on the object.
    case unobserved(Int64, isOwn: Bool = false, isReused: Bool = false)
    /// The object was known to be deleted at this time (tombstone).
    case tombstone(Int64)

    public var time: Int64 {
        switch self {
        case .unobserved(let time, _, _), .tombstone(let time): time
        }
    }

    /// The mark for a principal who has not made the write.
    public var forOthers: ObjectMark {
        if case .unobserved(let time, _, let isReused) = self { .unobserved(time, isReused: isReused) } else { self }
    }

    /// The mark in place of an earlier one: what may be older than the principal's own write, or than a deletion, stays so.
    public func replacing(_ earlier: ObjectMark?) -> ObjectMark {
        guard case .unobserved(let time, let isOwn, let isReused) = self, let earlier else { return self }
        let wasDeleted = isReused || earlier.isReused || earlier.isTombstone
        return .unobserved(time, isOwn: isOwn || earlier.isOwn, isReused: wasDeleted)
    }

    /// Whether the write was the principal's own; then nothing that may be older is served from the cache (law 10).
    public var isOwn: Bool { if case .unobserved(_, let isOwn, _) = self { isOwn } else { false } }

    /// Whether the object was deleted before the write: what was observed before may be another one of the same name.
    public var isReused: Bool { if case .unobserved(_, _, let isReused) = self { isReused } else { false } }

    public var isTombstone: Bool { if case .tombstone = self { true } else { false } }
}

/// What happens to documents that show a deleted object (`on_delete`).
public enum DeletionPolicy: String, Sendable, Equatable, CaseIterable {
    case stale
    /// The object is removed from lists that contain it; documents that show it elsewhere are fetched again.
    case remove
    case keep

    /// What happens if neither a model nor its base says it.
    package static let usual = Self.stale
}

extension Models {
    /// Whether a payload shows that its object is deleted (`deleted_when`).
    public func saysDeleted(_ payload: [UInt8], of model: String) -> Bool {
        index(of: model).map { saysDeleted(payload, model: $0) } ?? false
    }

    func saysDeleted(_ payload: [UInt8], model: Int) -> Bool {
        guard haveDeletions, let value = JSONSlice(payload) else { return false }
        return compiled[concrete(of: model, for: value)].reading.deletedWhen?.holds(for: value) ?? false
    }

    /// The policy for documents that show a deleted object, given the payload that one of them shows.
    func onDelete(_ payload: [UInt8]?, model: Int) -> DeletionPolicy {
        guard let value = payload.flatMap({ JSONSlice($0) }) else { return compiled[model].onDelete }
        return compiled[concrete(of: model, for: value)].onDelete
    }

    /// The policy for documents that show a deleted object of this model.
    public func onDelete(of model: String) -> DeletionPolicy {
        index(of: model).map { onDelete(nil, model: $0) } ?? .usual
    }

    /// Whether an object in a response shows anything that could have changed: a shared member other than its identity.
    public func showsState(_ payload: [UInt8], of model: String) -> Bool {
        guard let index = index(of: model), let value = JSONSlice(payload) else { return false }
        let observed = ObservedMembers(value, model: index, models: self)
        let shared = observed.members.lazy.filter { $0.value.isShared && !$0.value.isContainer }
        return !observed.gathered.isEmpty || !compiled[index].identityMembers.isSuperset(of: shared.map(\.key))
    }

    /// Whether an object shows the member that says when it changed (`modified`), with a value that can be compared.
    public func showsModification(_ payload: [UInt8], of model: String) -> Bool {
        let reader = index(of: model).map { ObjectReader(models: self, model: $0) }
        return reader?.sound(payload).flatMap { reader?.stamp(in: $0) } != nil
    }

    /// The object that the captures of a path identify, if any: by its whole identity, or else by keys.
    ///
    /// - Parameter bound: the values that the route binds, by name of the identity, key or property.
    public func object(boundBy bound: [String: String], captures: [String: String], of model: String) -> BoundObject? {
        guard let index = index(of: model), compiled[index].hasIdentity else { return nil }
        let model = compiled[index]
        let identity = model.identity(boundBy: bound, captures: captures)
        let keys = identity == nil ? model.reading.keys.compactMap { bound[$0.name] } : []
        guard identity != nil || !keys.isEmpty else { return nil }
        return BoundObject(model: model.objectName, identity: identity, keys: keys)
    }

    /// The objects of a model that a value may name, where nothing says what it is: the one with this identity, and those with
    /// this key.
    public func objects(perhapsNamed value: String, of model: String) -> [BoundObject] {
        guard let index = index(of: model), compiled[index].hasIdentity else { return [] }
        let model = compiled[index]
        var objects: [BoundObject] = []
        if model.identityNames.count == 1,
            let identity = model.identity(boundBy: [model.identityNames[0]: value], captures: [:])
        {
            objects.append(BoundObject(model: model.objectName, identity: identity, keys: []))
        }
        if !model.reading.keys.isEmpty {
            objects.append(BoundObject(model: model.objectName, identity: nil, keys: [value]))
        }
        return objects
    }
}

extension CompiledModel {
    fileprivate func identity(boundBy bound: [String: String], captures: [String: String]) -> String? {
        var parts: [String] = []
        for (name, part) in zip(identityNames, reading.identity) {
            var value = bound[name]
            if value == nil, case .context(.capture(let name), _) = part { value = captures[name] }
            if value == nil, case .member(let paths, _) = part {
                // A property that reads this member may be bound instead.
                let sources = paths.map { $0.joined(separator: ".") }
                let readers = members.lazy.filter { $0.spellings.contains(where: sources.contains) }
                value = readers.compactMap { bound[$0.declaration.name] }.first
            }
            guard let value, case .text(let text) = Identity.read(text: value) else { return nil }
            parts.append(text)
        }
        return Identity.join(parts)
    }
}

/// An object that a path identifies, by its identity or by keys known to the store.
public struct BoundObject: Sendable, Hashable, Codable {
    /// The model name in the object's key.
    public var model: String
    /// The canonical identity; nil if the path gives keys only.
    public var identity: String?
    public var keys: [String]

    package init(model: String, identity: String? = nil, keys: [String] = []) {
        (self.model, self.identity, self.keys) = (model, identity, keys)
    }
}
