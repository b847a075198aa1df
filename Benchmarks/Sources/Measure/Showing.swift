import Foundation
import Mapping
import Store
import Synchronization

/// A store of very many documents that all show one object: what a change, a search and a clean cost, and what others
/// notice of it.
///
/// Others read a document at random from the file, and write one, again and again; the slowest of them show a stall.
enum Showing {
    static func measure(_ path: String, _ count: Int) async throws -> [(name: String, value: Double)] {
        var configuration = StoreConfiguration(path: path, maximumFileBytes: 16 << 30)
        configuration.models = ["github": try IssuePages.models()]
        let (store, _) = try ObjectStore.open(configuration)
        var figures: [(name: String, value: Double)] = [("documents", Double(count))]
        let clock = ContinuousClock()

        // The first document alone shows a label: whoever looks for it has to look through all.
        _ = try await store.receive(document(0, of: store, #","labels":[{"id":77,"name":"rare"}]"#))
        let filling = clock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1..<count {
                if number >= 512 { try await group.next() }
                group.addTask { _ = try await store.receive(document(number, of: store)) }
            }
            try await group.waitForAll()
        }
        await store.flush()
        figures.append(("filling, s", (clock.now - filling).seconds))
        let bytes = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        figures.append(("file, MB", Double(bytes) / 1e6))

        let others = Others(store, count)
        func timed(_ name: String, _ work: () async throws -> Void) async throws {
            others.begin()
            let start = clock.now
            try await work()
            figures.append((name + ", ms", (clock.now - start).seconds * 1000))
            figures += others.end(name)
        }
        try await timed("nothing") { try await Task.sleep(for: .seconds(2)) }
        try await timed("change") {
            for number in 0..<20 {
                _ = try await store.receive(user(of: store, login: "changed-\(number)"))
            }
        }
        let shown = try await store.objects(ObjectQuery(model: "User", identity: "1")).rows[0].id
        let rare = try await store.objects(ObjectQuery(model: "Label", identity: "77")).rows[0].id
        try await timed("first page of a hundred") { _ = try await store.documents(showing: shown, limit: 100) }
        try await timed("why") { _ = try await store.why(shown) }
        try await timed("search to the end") {
            var after: Int64?
            var found = 0
            repeat {
                let page = try await store.documents(showing: rare, limit: 100, after: after)
                found += page.rows.count
                after = page.next
            } while after != nil
            precondition(found == 1, "the rare label is shown by one document")
        }
        try await timed("clean of a model shown once") {
            let removed = try await store.clean(CleanFilter(model: "Label")).removed
            precondition(removed.documents == 1, "one document shows a label")
        }
        others.stop()
        await store.close()
        return figures
    }

    /// An issue whose user all have in common.
    private static func document(_ number: Int, of store: ObjectStore, _ more: String = "") -> ReceivedDocument {
        let body =
            #"{"id":\#(number),"number":\#(number),"title":"Issue \#(number)","state":"open","user":{"id":1,"login":"ada","type":"User"}\#(more)}"#
        return received("/issues/\(number)", body, "Issue", of: store)
    }

    private static func user(of store: ObjectStore, login: String) -> ReceivedDocument {
        received("/users/1", #"{"id":1,"login":"\#(login)","type":"User"}"#, "User", of: store)
    }

    private static func received(_ url: String, _ body: String, _ model: String, of store: ObjectStore)
        -> ReceivedDocument
    {
        let now = store.clock.now()
        return ReceivedDocument(
            key: CacheKey(upstream: "github", principal: .anonymous, context: "", url: url),
            head: Array("Content-Type: application/json\r\n".utf8),
            body: Array(body.utf8),
            start: now,
            end: now,
            rule: BodyRule(model: model, isList: false)
        )
    }

    /// Those who go on with their work meanwhile.
    private final class Others: Sendable {
        private let isStopped = Atomic(false)
        private let reads = Mutex<[Double]>([])
        private let writes = Mutex<[Double]>([])

        init(_ store: ObjectStore, _ count: Int) {
            Task.detached { [self] in
                var random = SplitMix(state: 7)
                while !isStopped.load(ordering: .relaxed) {
                    let key = CacheKey(
                        upstream: "github",
                        principal: .anonymous,
                        context: "",
                        url: "/issues/\(random.below(count))"
                    )
                    let taken = await time { _ = try? await store.documents(at: key) }
                    reads.withLock { $0.append(taken) }
                }
            }
            Task.detached { [self] in
                var number = 0
                while !isStopped.load(ordering: .relaxed) {
                    number += 1
                    let text = received("/texts/\(number % 100)", #"{"id":\#(number)}"#, "User", of: store)
                    let taken = await time { _ = try? await store.receive(text) }
                    writes.withLock { $0.append(taken) }
                }
            }
        }

        private func time(_ work: () async -> Void) async -> Double {
            let start = ContinuousClock.now
            await work()
            return (ContinuousClock.now - start).seconds * 1000
        }

        func begin() {
            reads.withLock { $0 = [] }
            writes.withLock { $0 = [] }
        }

        func end(_ name: String) -> [(name: String, value: Double)] {
            let (reads, writes) = (reads.withLock { $0.sorted() }, writes.withLock { $0.sorted() })
            return [("reads", reads), ("writes", writes)].flatMap { what, times -> [(name: String, value: Double)] in
                guard let last = times.last else { return [] }
                return [
                    ("\(name): \(what), median ms", times[times.count / 2]),
                    ("\(name): \(what), 99th ms", times[times.count * 99 / 100]),
                    ("\(name): \(what), slowest ms", last),
                ]
            }
        }

        func stop() { isStopped.store(true, ordering: .relaxed) }
    }
}
