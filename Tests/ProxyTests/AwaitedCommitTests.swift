import Synchronization
import Testing

@testable import Proxy

@Suite("A commit that a found response waits for")
struct AwaitedCommitTests {
    private let begun = Count()

    private final class Count: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func increment() { count.withLock { $0 += 1 } }
    }

    @Test func `a response begins when its commit is foreseen, before the commit ends, and only once`() async {
        let commit = AwaitedCommit()
        commit.whenForeseen { [begun] in begun.increment() }
        #expect(begun.value == 0)
        commit.foresee()
        #expect(begun.value == 1)
        // A batch that had to be rolled back is tried again.
        commit.foresee()
        #expect(begun.value == 1)
        #expect(await commit.isForeseen())
        commit.succeed()
        commit.finish()
        #expect(await commit.isStored())
        #expect(begun.value == 1)
    }

    @Test func `a response that waits for a commit already foreseen begins at once`() {
        let commit = AwaitedCommit()
        commit.foresee()
        commit.whenForeseen { [begun] in begun.increment() }
        #expect(begun.value == 1)
    }

    @Test func `a response does not begin if its commit ends without being foreseen, although it is stored`() async {
        let commit = AwaitedCommit()
        commit.whenForeseen { [begun] in begun.increment() }
        commit.succeed()
        commit.finish()
        #expect(await !commit.isForeseen())
        #expect(await commit.isStored())
        #expect(begun.value == 0)
    }
}
