import Mapping
import Synchronization

/// Answers that have been handed over and are still to be taken in.
///
/// What a write has done is taken in ahead of them, unless one of them may be all that says which object the write was
/// about.
final class WaitingReads: Sendable {
    private struct State {
        var count = 0
        /// How many of them show objects, by upstream.
        var upstreams: [String: Int] = [:]
        /// How many of them are about one object, by the path that they answer.
        var places: [Int64: Int] = [:]
    }

    private let state = Mutex(State())

    /// How many there are.
    var count: Int { state.withLock(\.count) }

    func enter(_ document: ReceivedDocument, place: Int64) {
        state.withLock { state in
            state.count += 1
            guard let rule = document.rule else { return }
            state.upstreams[document.key.upstream, default: 0] += 1
            if !rule.isList { state.places[place, default: 0] += 1 }
        }
    }

    func leave(_ document: ReceivedDocument, place: Int64) {
        state.withLock { state in
            state.count -= 1
            guard let rule = document.rule else { return }
            Self.decrement(&state.upstreams[document.key.upstream])
            if !rule.isList { Self.decrement(&state.places[place]) }
        }
    }

    /// Whether one of them may say what a path is about.
    func mayTell(of place: Int64) -> Bool { state.withLock { $0.places[place] != nil } }

    /// Whether one of them may say which object of an upstream has a key.
    func mayTellKeys(of upstream: String) -> Bool { state.withLock { $0.upstreams[upstream] != nil } }

    private static func decrement(_ count: inout Int?) {
        count = count.flatMap { $0 > 1 ? $0 - 1 : nil }
    }
}
