internal import Synchronization

/// Which ready answers show which object, so that a change flips them.
///
/// Registration and notice are in either order: whoever registers an answer that was read or committed a moment ago asks
/// `Store.mayHaveChanged` afterwards, since the store remembers a change before it tells of it.
public final class Showings: Sendable {
    fileprivate struct List {
        var residences: [Residence] = []
        /// Retired ones are dropped when the list reaches this length.
        var compactAt = 16
    }

    private let lists = Mutex<[ObjectID: List]>([:])

    init() {}

    /// Registers an answer under the objects that it shows.
    public func register(_ residence: Residence, under objects: [ObjectID]) {
        guard !objects.isEmpty else { return }
        lists.withLock { lists in
            for object in objects { lists[object, default: List()].append(residence) }
        }
    }

    /// How many places in lists are taken; walks all lists.
    public var registrationCount: Int {
        lists.withLock { $0.values.reduce(0) { $0 + $1.residences.count } }
    }

    /// Flips every answer that shows one of these objects.
    ///
    /// A flipped list is dropped: its answers will be composed anew and registered again.
    func objectsChanged(_ objects: [ObjectID]) {
        lists.withLock { lists in
            for object in objects {
                guard let list = lists.removeValue(forKey: object) else { continue }
                for residence in list.residences { residence.isDirty.store(true, ordering: .relaxed) }
            }
        }
    }
}

extension Showings.List {
    mutating func append(_ residence: Residence) {
        if residences.count >= compactAt {
            residences.removeAll { $0.isRetired.load(ordering: .relaxed) }
            compactAt = max(16, residences.count * 2)
        }
        residences.append(residence)
    }
}
