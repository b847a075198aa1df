import Basics
import Testing

@Suite("A signal")
struct SignalTests {
    @Test(.timeLimit(.minutes(1))) func `all who wait go on when it is given, and later ones at once`() async {
        let signal = Signal()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<10 { group.addTask { await signal.wait() } }
            group.addTask {
                await Task.yield()
                signal.give()
            }
        }
        signal.give()
        await signal.wait()
    }
}
