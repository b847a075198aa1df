import Mapping
import Store
import Synchronization

/// An index of ready responses by the objects that they show, so that a change makes them dirty.
///
/// Registration and change may come in either order: the store records a change before it notifies this index, and `register` asks
/// the store. A change may concern thousands of responses, so it marks them without the locks of their shards. The registrations of
/// a response are removed when it leaves the tier, so that the index is bounded like the tier.
final class ResponsesByObject: Sendable {
    /// The responses that show one object; mostly just one.
    fileprivate struct List {
        var first: MemoryEntry?
        var others: [MemoryEntry] = []
        /// How many of the others are no longer resident.
        var retired = 0

        var isEmpty: Bool { first == nil && others.isEmpty }
    }

    /// The approximate size of a registration: a slot in the table, which is never full, and one in the response's own list.
    private static var registrationSize: Int { 64 }

    private let lists = Mutex<[ObjectID: List]>([:])
    private let registrations = Atomic<Int>(0)

    init() {}

    /// Registers a response under the objects that it shows, unless it has already left the tier.
    ///
    /// - Parameter haveChanged: whether one has changed already; called when later changes mark the response.
    func register(_ entry: MemoryEntry, under objects: [ObjectID], haveChanged: () -> Bool) {
        defer { if haveChanged() { entry.markDirty() } }
        guard !objects.isEmpty else { return }
        lists.withLock { lists in
            // The flag is set before `forget` takes this lock. So either this code sees the flag, or `forget` sees the
            // registration.
            guard entry.followsChanges else { return }
            for object in objects { lists[object, default: List()].append(entry) }
            entry.objects.withLock { $0 += objects }
            registrations.add(objects.count, ordering: .relaxed)
        }
    }

    /// The objects under which a resident response is registered.
    func objects(of entry: MemoryEntry) -> [ObjectID] { entry.objects.withLock(\.self) }

    /// The number of registrations, including those of dirty responses that are still resident.
    var registrationCount: Int { registrations.load(ordering: .relaxed) }

    var byteCount: Int { registrationCount * Self.registrationSize }

    func forget(_ entry: MemoryEntry) {
        lists.withLock { lists in
            let objects = entry.objects.withLock { objects in
                defer { objects = [] }
                return objects
            }
            for object in objects {
                // By its index: the writer does this for each object of each response that it displaces.
                guard let index = lists.index(forKey: object) else { continue }
                lists.values[index].remove(entry)
                if lists.values[index].isEmpty { lists.remove(at: index) }
            }
            registrations.subtract(objects.count, ordering: .relaxed)
        }
    }

    /// Marks every response that shows one of these objects as dirty.
    ///
    /// The object's list is dropped: its responses will be composed and registered again. It is removed first, so that no
    /// registration or removal waits for a long list.
    func objectsWillChange(_ objects: [ObjectID]) {
        for object in objects {
            guard let list = lists.withLock({ $0.removeValue(forKey: object) }) else { continue }
            list.first?.markDirty()
            for entry in list.others { entry.markDirty() }
        }
    }
}

extension ResponsesByObject.List {
    mutating func append(_ entry: MemoryEntry) {
        if isEmpty { first = entry } else { others.append(entry) }
    }

    /// Removes a retired response: at once or, in a long list, together with others.
    mutating func remove(_ entry: MemoryEntry) {
        if first === entry {
            first = nil
            return
        }
        retired += 1
        guard retired * 2 > others.count else { return }
        others.removeAll { !$0.followsChanges }
        retired = 0
    }
}
