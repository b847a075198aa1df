import Dispatch
import Mapping
import Synchronization
import Testing

@testable import Store

/// What memory knows of a commit, and when.
struct CommitPublicationTests {
    /// Notes what happens around each commit, in its order.
    private final class Witness: ChangeListener {
        let events = Mutex<[String]>([])
        let look = Mutex<(@Sendable (CommitStep) -> Void)?>(nil)

        func note(_ event: String) { events.withLock { $0.append(event) } }
        func objectsWillChange(_ objects: [ObjectID]) { note("marked \(objects.count)") }
        func objectsChanged(_ objects: [ObjectID]) { note("notified \(objects.count)") }
        func documentsRemoved(_ keys: [Digest128]) {}

        func reached(_ step: CommitStep) { look.withLock { $0 }?(step) }
    }

    @Test func `memory is marked before readers see a change, and listeners are notified afterwards`() async throws {
        let witness = Witness()
        let bench = try Bench { $0.commitStep = { witness.reached($0) } }
        let store = bench.store
        store.setListener(witness)
        let before = try await bench.receive("/users", #"[{"id":1,"login":"old"}]"#, users)
        witness.events.withLock { $0 = [] }
        witness.look.withLock { look in
            look = { step in
                // The writer waits here, as it would for a slow disk, while a reader looks.
                let body = Reading.body(of: "/users", in: store)
                let isMarked = store.mayHaveChanged(before.objects, since: before.sequence)
                witness.note("\(step): \(body), \(isMarked ? "marked" : "believed")")
            }
        }
        let after = try await bench.receive("/users/1", #"{"id":1,"login":"new"}"#, user)
        witness.look.withLock { $0 = nil }
        #expect(
            witness.events.withLock { $0 } == [
                "marked 1",
                #"marked: [{"id":1,"login":"old"}], marked"#,
                #"committed: [{"id":1,"login":"new"}], marked"#,
                "notified 1",
            ]
        )
        #expect(!store.mayHaveChanged(before.objects, since: after.sequence))
        await store.close()
    }

    @Test
    func `a response may begin before its commit only if it is the last of the batch and has the newest values`()
        async throws
    {
        let witness = Witness()
        let bench = try Bench {
            $0.batchDelay = .seconds(60)
            $0.commitStep = { witness.note("\($0)") }
        }
        let store = bench.store
        func submit(
            _ name: String,
            _ response: ReceivedDocument,
            isAwaited: Bool,
            done: @escaping @Sendable () -> Void = {}
        ) {
            store.receive(response, isAwaited: isAwaited, foreseen: { witness.note("\(name) is foreseen") }) { result in
                witness.note("\(name): \((try? result.get()).map { $0.isDirty ? "outdated" : "newest" } ?? "none")")
                done()
            }
        }
        let older = bench.response("/users/1", #"{"id":1,"login":"old"}"#, user)
        // The second one goes on at once, and takes the first one along.
        submit("first", bench.response("/users", #"[{"id":1,"login":"new"}]"#, users), isAwaited: false)
        let second = bench.response("/users/2", #"{"id":2,"login":"b"}"#, user)
        await withCheckedContinuation { continuation in
            submit("second", second, isAwaited: true) { continuation.resume() }
        }
        let again = bench.response("/users/2", #"{"id":2,"login":"b"}"#, user)
        let twice = bench.response("/users?page=2", #"[{"id":3,"login":"c"},{"id":3,"login":"d"}]"#, users)
        for (name, response) in [("older", older), ("again", again), ("twice", twice)] {
            await withCheckedContinuation { continuation in
                submit(name, response, isAwaited: true) { continuation.resume() }
            }
        }
        let events = witness.events.withLock { $0 }
        let expected = ["second is foreseen", "marked", "committed", "first: newest", "second: newest"]
        #expect(Array(events.prefix(expected.count)) == expected, "\(events)")
        #expect(events.contains("older: outdated") && !events.contains("older is foreseen"), "\(events)")
        #expect(events.contains("again: newest") && events.count { $0 == "again is foreseen" } == 1, "\(events)")
        #expect(events.contains("twice: newest") && events.count { $0 == "twice is foreseen" } == 1, "\(events)")
        await store.close()
    }

    @Test func `changes that were announced for a failed commit do not count`() {
        let changes = RecentChanges(since: 0)
        changes.announce([1, 2], at: 5)
        changes.confirm(at: 5)
        changes.announce([2, 3], at: 6)
        #expect(changes.mayHaveChanged([2], since: 5) && changes.mayHaveChanged([3], since: 5))
        changes.withdraw()
        #expect(!changes.mayHaveChanged([2, 3], since: 5))
        #expect(changes.mayHaveChanged([2], since: 4) && !changes.mayHaveChanged([3], since: 4))
    }
}

/// A read that the writer's thread waits for.
private final class Reading: Sendable {
    private let body = Mutex("nothing")
    private let isDone = DispatchSemaphore(value: 0)

    static func body(of url: String, in store: ObjectStore) -> String {
        let reading = Reading()
        Task.detached {
            let key = CacheKey(upstream: "github", principal: .anonymous, context: "", url: url)
            if let document = try? await store.documents(at: key).first {
                reading.body.withLock { $0 = String(decoding: document.body, as: UTF8.self) }
            }
            reading.isDone.signal()
        }
        reading.isDone.wait()
        return reading.body.withLock { $0 }
    }
}
