import Synchronization

@testable import Upstream

/// A request's body that a test fills by hand.
final class TestBody: UpstreamBody {
    private struct State {
        var bytes: [UInt8] = []
        var hasEnded = false
        var failure: String?
        var taken = 0
        var notify: (@Sendable () -> Void)?
    }

    let declaredLength: Int?
    private let state = Mutex(State())

    init(length: Int?, _ bytes: [UInt8] = [], ended: Bool = false) {
        declaredLength = length
        state.withLock {
            $0.bytes = bytes
            $0.hasEnded = ended
        }
    }

    /// A whole body at once.
    convenience init(_ text: String) {
        self.init(length: text.utf8.count, Array(text.utf8), ended: true)
    }

    func take(max: Int) -> UpstreamBodyPart {
        state.withLock { state in
            if let failure = state.failure { return .failed(failure) }
            if state.taken == state.bytes.count { return state.hasEnded ? .end : .pending }
            let part = Array(state.bytes[state.taken...].prefix(max))
            state.taken += part.count
            return .bytes(part)
        }
    }

    func onAvailable(_ notify: @escaping @Sendable () -> Void) {
        let callsNow = state.withLock { state in
            state.notify = notify
            return state.taken < state.bytes.count || state.hasEnded || state.failure != nil
        }
        if callsNow { notify() }
    }

    private func change(_ change: (inout State) -> Void) {
        let notify = state.withLock { state in
            change(&state)
            return state.notify
        }
        notify?()
    }

    func add(_ bytes: [UInt8]) { change { $0.bytes += bytes } }
    func end() { change { $0.hasEnded = true } }
    func fail(_ reason: String) { change { $0.failure = reason } }
    var isComplete: Bool { state.withLock { $0.hasEnded } }
    var taken: Int { state.withLock { $0.taken } }
}
