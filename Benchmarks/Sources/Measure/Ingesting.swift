import Foundation
import Mapping
import Store

/// How fast responses become committed rows, and how large the file is that holds them.
enum Ingesting {
    static func measure(_ path: String, _ file: String?) async throws -> [(name: String, value: Double)] {
        let samples = try file.map(Normalising.read) ?? IssuePages.make(pages: 120, detailsEvery: 2)
        var configuration = StoreConfiguration(path: path)
        configuration.models = ["github": try IssuePages.models()]
        let (store, _) = try ObjectStore.open(configuration)
        let key = try await store.principal([UInt8](repeating: 7, count: 32))

        let clock = ContinuousClock()
        let start = clock.now
        // Enough in hand that the writer never waits for the next; fewer would measure the batches' delay.
        let objects = try await withThrowingTaskGroup(of: Int.self) { group in
            var total = 0
            for (index, sample) in samples.enumerated() {
                if index >= 512 { total += try await group.next() ?? 0 }
                group.addTask { try await receive(sample, key, store) }
            }
            for try await count in group { total += count }
            return total
        }
        await store.flush()
        let seconds = (clock.now - start).seconds
        let commits = store.statistics.commits
        await store.close()
        let fileBytes = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        return [
            ("seconds", seconds), ("objects", Double(objects)), ("documents", Double(samples.count)),
            ("commits", Double(commits)), ("bodyBytes", Double(samples.reduce(0) { $0 + $1.body.count })),
            ("fileBytes", Double(fileBytes)),
        ]
    }

    private static func receive(_ sample: Sample, _ principal: PrincipalID, _ store: ObjectStore) async throws -> Int {
        let now = store.clock.now()
        let receipt = try await store.receive(
            ReceivedDocument(
                key: CacheKey(upstream: "github", principal: principal, context: "", url: sample.path),
                head: Array("Content-Type: application/json; charset=utf-8\r\nETag: \"0123456789abcdef\"\r\n".utf8),
                body: sample.body,
                start: now,
                end: now,
                kind: sample.isList ? .list : .detail,
                rule: BodyRule(model: sample.model, isList: sample.isList)
            )
        )
        return receipt.objects.count
    }
}

extension StoreConfiguration {
    /// A store with the values that the daemon has without a config.
    init(path: String, maximumFileBytes: Int64 = 1 << 30) {
        self.init(
            path: path,
            maximumFileBytes: maximumFileBytes,
            batchDelay: .milliseconds(5),
            queueBytes: 64 << 20,
            objectLimit: 50_000,
            readers: 4,
            lag: Lag(lists: 30_000_000),
            changes: 100_000
        )
    }
}
