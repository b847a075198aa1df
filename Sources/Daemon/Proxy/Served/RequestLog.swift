import Synchronization

/// The last requests and what they were given, for those who watch.
///
/// Requests that pass `ProxyCore` are always noted. Hits from memory are noted only while somebody watches: the access log is
/// on, a stream follows, or the list was asked for within the last minute. Otherwise a hit costs one relaxed load here.
///
/// Any thread. Bounded: the oldest make room.
package final class RequestLog: Sendable {
    /// How many requests are kept.
    package static let capacity = 1_000
    /// For how long hits are noted after the list was asked for.
    private static let attention: UInt64 = 60_000_000_000

    /// Until when hits are noted, in ns of the monotonic clock.
    private let watchedUntil = Atomic<UInt64>(0)
    fileprivate let state = Mutex(State())

    fileprivate struct State {
        /// The request with number n is at n % capacity.
        var kept: [ServedRequest] = []
        var lastID: Int64 = 0
        /// Who gets every request as it is noted.
        var sink: (@Sendable (ServedRequest) -> Void)?
        /// Who hears that there are new ones.
        var listeners: [Int: @Sendable () -> Void] = [:]
        var lastListener = 0
        var askedUntil: UInt64 = 0
    }

    package init() {}

    /// Whether a hit is to be noted.
    ///
    /// - Parameter now: in ns of the monotonic clock; a loop's coarse one will do.
    @inline(__always)
    func notesHits(at now: UInt64) -> Bool { watchedUntil.load(ordering: .relaxed) > now }

    /// Notes a request that is over.
    func note(_ request: ServedRequest) {
        let (sink, listeners, noted) = state.withLock { state in
            var noted = request
            state.lastID += 1
            noted.id = state.lastID
            if state.kept.count < Self.capacity {
                // The number 1 is at 1: the first place is filled by the number `capacity`.
                if state.kept.isEmpty { state.kept.append(noted) }
                state.kept.append(noted)
            } else {
                state.kept[Int(noted.id % Int64(Self.capacity))] = noted
            }
            return (state.sink, Array(state.listeners.values), noted)
        }
        sink?(noted)
        for listener in listeners { listener() }
    }

    /// Those after a number, the oldest first; hits are noted for the next minute.
    ///
    /// A number that was never given is one of an earlier run of the daemon: everything came after it.
    ///
    /// - Parameter limit: if more are kept, the last ones are given.
    package func requests(after id: Int64, limit: Int) -> (requests: [ServedRequest], last: Int64) {
        state.withLock { state in
            state.askedUntil = RequestClock.nanoseconds + Self.attention
            watch(state)
            return state.requests(after: id, limit: limit)
        }
    }

    /// The same for a listener, who watches anyway: all that are kept.
    package func requests(after id: Int64) -> (requests: [ServedRequest], last: Int64) {
        state.withLock { $0.requests(after: id, limit: Self.capacity) }
    }

    /// The number of the last one.
    package var lastID: Int64 { state.withLock { $0.lastID } }

    /// Calls back, on any thread, whenever requests were noted; gives what `stopListening` takes.
    package func listen(_ listener: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.lastListener += 1
            state.listeners[state.lastListener] = listener
            watch(state)
            return state.lastListener
        }
    }

    package func stopListening(_ number: Int) {
        state.withLock { state in
            state.listeners[number] = nil
            watch(state)
        }
    }

    /// Has every request from now on given to a sink, which returns at once; for the life of the process.
    package func setSink(_ sink: @escaping @Sendable (ServedRequest) -> Void) {
        state.withLock { state in
            state.sink = sink
            watch(state)
        }
    }

    /// Within the lock, so that no two changes are stored in the wrong order.
    private func watch(_ state: borrowing State) {
        let isWatched = state.sink != nil || !state.listeners.isEmpty
        watchedUntil.store(isWatched ? .max : state.askedUntil, ordering: .relaxed)
    }
}

extension RequestLog.State {
    fileprivate func requests(after id: Int64, limit: Int) -> (requests: [ServedRequest], last: Int64) {
        let first = max(id > lastID ? 0 : id, lastID - Int64(min(limit, RequestLog.capacity)))
        guard first < lastID else { return ([], lastID) }
        return ((first + 1...lastID).map { kept[Int($0 % Int64(RequestLog.capacity))] }, lastID)
    }
}
