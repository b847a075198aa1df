package import Store
import Synchronization

/// Tells followed documents of whatever might change what they would be answered with.
///
/// Any thread. As long as nobody follows anything, it costs those who report to it one load of a flag.
package final class LiveWatch: Sendable {
    /// What has happened to a document.
    struct Causes: OptionSet, Sendable {
        let rawValue: UInt8

        /// Objects that it shows have changed.
        static let objects = Causes(rawValue: 1)
        /// It was stored, renewed, or kept no longer.
        static let document = Causes(rawValue: 2)
        /// It was removed from the store, for whatever reason.
        static let removal = Causes(rawValue: 4)
    }

    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct State {
        var objects: [ObjectID: Set<Int>] = [:]
        var documents: [Digest128: Set<Int>] = [:]
        /// What the loop does not know yet.
        var pending: [Int: Causes] = [:]
        var wake: (@Sendable () -> Void)?
    }

    private let isWatching = Atomic(false)
    private let state = Mutex(State())

    package init() {}

    /// Has this done, on whatever thread, once something has happened to a document; `take` says to which.
    func onChange(_ wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.wake = wake }
    }

    /// What has happened since this was last asked, by the documents' numbers.
    func take() -> [Int: Causes] {
        state.withLock { state in
            defer { state.pending = [:] }
            return state.pending
        }
    }

    // MARK: For followed documents

    /// Begins to watch the document of a number.
    func begin(_ number: Int, at digest: Digest128) {
        state.withLock { state in
            _ = state.documents[digest, default: []].insert(number)
            isWatching.store(true, ordering: .releasing)
        }
    }

    /// Watches objects for a document in the place of those before.
    func watch(_ objects: Set<ObjectID>, insteadOf others: Set<ObjectID>, for number: Int) {
        state.withLock { state in
            for object in objects.subtracting(others) { state.objects[object, default: []].insert(number) }
            for object in others.subtracting(objects) { state.forget(number, of: object) }
        }
    }

    /// Nobody follows a document any more.
    func end(_ number: Int, at digest: Digest128, objects: Set<ObjectID>) {
        state.withLock { state in
            for object in objects { state.forget(number, of: object) }
            state.documents[digest]?.remove(number)
            if state.documents[digest]?.isEmpty == true { state.documents[digest] = nil }
            state.pending[number] = nil
            if state.documents.isEmpty { isWatching.store(false, ordering: .releasing) }
        }
    }

    // MARK: For those who change something

    /// A document was stored, renewed, or is kept no longer.
    func documentChanged(_ digest: Digest128) {
        guard isWatching.load(ordering: .acquiring) else { return }
        note(.document) { $0.documents[digest] }
    }

    private func note(_ cause: Causes, _ concerned: (inout State) -> Set<Int>?) {
        note(cause, of: CollectionOfOne(()), { state, _ in concerned(&state) })
    }

    private func note<Elements: Sequence>(
        _ cause: Causes,
        of elements: Elements,
        _ concerned: (inout State, Elements.Element) -> Set<Int>?
    ) {
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            let wasEmpty = state.pending.isEmpty
            for element in elements {
                for number in concerned(&state, element) ?? [] { state.pending[number, default: []].insert(cause) }
            }
            return wasEmpty && !state.pending.isEmpty ? state.wake : nil
        }
        wake?()
    }
}

extension LiveWatch: ChangeListener {
    package func objectsChanged(_ objects: [ObjectID]) {
        guard isWatching.load(ordering: .acquiring) else { return }
        note(.objects, of: objects) { $0.objects[$1] }
    }

    package func documentsRemoved(_ keys: [Digest128]) {
        guard isWatching.load(ordering: .acquiring) else { return }
        note(.removal, of: keys) { $0.documents[$1] }
    }

    package func storeEmptied() {
        guard isWatching.load(ordering: .acquiring) else { return }
        note(.removal) { $0.documents.values.reduce(into: Set<Int>()) { $0.formUnion($1) } }
    }
}

extension LiveWatch.State {
    fileprivate mutating func forget(_ number: Int, of object: ObjectID) {
        objects[object]?.remove(number)
        if objects[object]?.isEmpty == true { objects[object] = nil }
    }
}

/// Tells several of commits, in their order.
package struct ChangeListeners: ChangeListener {
    let all: [any ChangeListener]

    package init(_ all: any ChangeListener...) {
        self.all = all
    }

    package func objectsChanged(_ objects: [ObjectID]) {
        for listener in all { listener.objectsChanged(objects) }
    }

    package func documentsRemoved(_ keys: [Digest128]) {
        for listener in all { listener.documentsRemoved(keys) }
    }

    package func principalsForgotten() {
        for listener in all { listener.principalsForgotten() }
    }

    package func storeEmptied() {
        for listener in all { listener.storeEmptied() }
    }
}
