import Basics
import Testing

@Suite("A signal")
struct SignalTests {
    @Test func `a signal resumes all tasks that wait for it, and later ones do not wait`()
        async
    {
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
