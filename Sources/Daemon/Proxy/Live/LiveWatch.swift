package import Mapping
package import Store
import Synchronization

/// The objects whose changes may change the response of a followed document.
struct WatchedObjects: Equatable {
    var shown: Set<ObjectID> = []
    /// Those that its mapped view names, and of which nothing is known yet.
    ///
    /// One without an identity stands for all objects of its model: which of them has a key is not known.
    private(set) var awaited: Set<BoundObject> = []

    init(_ shown: some Sequence<ObjectID> = [], awaiting names: some Sequence<BoundObject> = []) {
        self.shown = Set(shown)
        awaited = Set(names.map { BoundObject(model: $0.model, identity: $0.identity) })
    }

    func union(_ other: WatchedObjects) -> WatchedObjects {
        WatchedObjects(shown.union(other.shown), awaiting: awaited.union(other.awaited))
    }
}

/// Notices what might change the responses of followed documents.
///
/// Any thread. While no document is followed, each report costs one load of a flag.
package final class LiveWatch: Sendable {
    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct State {
        var objects: [ObjectID: Set<Int>] = [:]
        var awaited: [BoundObject: Set<Int>] = [:]
        var documents: [Digest128: Set<Int>] = [:]
        /// The documents with changes that the loop has not taken yet, and whether their objects have changed.
        var pending: [Int: Bool] = [:]
        var wake: (@Sendable () -> Void)?
    }

    private let isWatching = Atomic(false)
    private let state = Mutex(State())

    package init() {}

    /// Sets what to do, on any thread, when something happens to a document; `take` returns the changes.
    func onChange(_ wake: @escaping @Sendable () -> Void) { state.withLock { $0.wake = wake } }

    /// The numbers of the documents that may have changed since the last call, and whether their objects have.
    func take() -> [Int: Bool] { state.withLock { exchange(&$0.pending, with: [:]) } }

    // MARK: For followed documents

    func watch(_ number: Int, at digest: Digest128) {
        state.withLock { state in
            _ = state.documents[digest, default: []].insert(number)
            isWatching.store(true, ordering: .releasing)
        }
    }

    func watch(_ objects: WatchedObjects, insteadOf others: WatchedObjects, for number: Int) {
        guard objects != others else { return }
        state.withLock { state in
            for object in objects.shown.subtracting(others.shown) { state.objects[object, default: []].insert(number) }
            for name in objects.awaited.subtracting(others.awaited) { state.awaited[name, default: []].insert(number) }
            for object in others.shown.subtracting(objects.shown) { state.objects.remove(number, of: object) }
            for name in others.awaited.subtracting(objects.awaited) { state.awaited.remove(number, of: name) }
        }
    }

    /// Stops watching for a document that has no more readers.
    func end(_ number: Int, at digest: Digest128, _ objects: WatchedObjects) {
        watch(WatchedObjects(), insteadOf: objects, for: number)
        state.withLock { state in
            state.documents.remove(number, of: digest)
            state.pending[number] = nil
            if state.documents.isEmpty { isWatching.store(false, ordering: .releasing) }
        }
    }

    // MARK: Reports of changes

    /// Reports that a document was stored, freshened or dropped.
    func documentChanged(_ digest: Digest128) { record(CollectionOfOne(digest)) { $0.documents[$1] } }

    private func record<Elements: Sequence>(
        _ elements: Elements,
        areObjects: Bool = false,
        _ concerned: (inout State, Elements.Element) -> Set<Int>?
    ) {
        guard isWatching.load(ordering: .acquiring) else { return }
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            let wasEmpty = state.pending.isEmpty
            for element in elements {
                for number in concerned(&state, element) ?? [] {
                    state.pending[number] = areObjects || state.pending[number] == true
                }
            }
            return wasEmpty && !state.pending.isEmpty ? state.wake : nil
        }
        wake?()
    }
}

extension LiveWatch: ChangeListener {
    package func objectsChanged(_ objects: [ObjectID]) { record(objects, areObjects: true) { $0.objects[$1] } }
    package var awaitsObjects: Bool { isWatching.load(ordering: .acquiring) && state.withLock { !$0.awaited.isEmpty } }

    package func objectsWritten(_ objects: Set<ObjectName>) {
        let models = Set(objects.map(\.model)).map { BoundObject(model: $0) }
        record(objects.map { BoundObject($0) } + models) { $0.awaited[$1] }
    }

    package func documentsRemoved(_ keys: [Digest128]) { record(keys) { $0.documents[$1] } }

    package func storeEmptied() { record(CollectionOfOne(())) { state, _ in Set(state.documents.values.joined()) } }
}

extension Dictionary where Value == Set<Int> {
    fileprivate mutating func remove(_ number: Int, of key: Key) {
        self[key]?.remove(number)
        if self[key]?.isEmpty == true { self[key] = nil }
    }
}

/// Passes commits on to several listeners, in their order.
package struct ChangeListeners: ChangeListener {
    let all: [any ChangeListener]

    package init(_ all: any ChangeListener...) { self.all = all }

    package func objectsWillChange(_ objects: [ObjectID]) { all.forEach { $0.objectsWillChange(objects) } }
    package func objectsChanged(_ objects: [ObjectID]) { all.forEach { $0.objectsChanged(objects) } }
    package var awaitsObjects: Bool { all.contains { $0.awaitsObjects } }
    package func objectsWritten(_ objects: Set<ObjectName>) { all.forEach { $0.objectsWritten(objects) } }
    package func documentsRemoved(_ keys: [Digest128]) { all.forEach { $0.documentsRemoved(keys) } }
    package func principalsForgotten() { all.forEach { $0.principalsForgotten() } }
    package func storeEmptied() { all.forEach { $0.storeEmptied() } }
}
