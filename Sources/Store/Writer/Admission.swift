import Synchronization

/// Bounds what waits to be written, in number and bytes.
final class Admission: Sendable {
    private struct State {
        var count = 0
        var bytes = 0
        var waiters: [(bytes: Int, admit: @Sendable () -> Void)] = []
    }

    private let countLimit: Int
    private let byteLimit: Int
    private let state = Mutex(State())

    init(count: Int, bytes: Int) {
        countLimit = max(count, 1)
        byteLimit = bytes
    }

    var queued: Int { state.withLock(\.count) }

    /// Takes room as soon as there is some, first come first served; calls back then, at once if there is room now.
    func enter(bytes: Int, admit: @escaping @Sendable () -> Void) {
        let isAdmitted = state.withLock { state in
            guard state.waiters.isEmpty, hasRoom(for: bytes, in: state) else {
                state.waiters.append((bytes, admit))
                return false
            }
            state.count += 1
            state.bytes += bytes
            return true
        }
        if isAdmitted { admit() }
    }

    /// Gives room back.
    func leave(bytes: Int) {
        let admitted = state.withLock { state in
            state.count -= 1
            state.bytes -= bytes
            var admitted: [@Sendable () -> Void] = []
            while let first = state.waiters.first, hasRoom(for: first.bytes, in: state) {
                state.waiters.removeFirst()
                state.count += 1
                state.bytes += first.bytes
                admitted.append(first.admit)
            }
            return admitted
        }
        for admit in admitted { admit() }
    }

    // One alone always fits: a body larger than the bound must not wait for ever.
    private func hasRoom(for bytes: Int, in state: State) -> Bool {
        state.count == 0 || (state.count < countLimit && state.bytes + bytes <= byteLimit)
    }
}
