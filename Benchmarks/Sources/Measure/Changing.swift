import Dispatch
import Mapping
import Store
import Synchronization

/// How long the writer is busy with flipping the ready responses that show an object when it changes.
enum Changing {
    /// A response as far as the memory tier knows it.
    private final class Resident: MemoryResident {
        let key: CacheKey
        let variant: [UInt8] = []
        let byteCount = 2048
        let entry: MemoryEntry

        init(_ number: Int) {
            key = CacheKey(upstream: "github", principal: .anonymous, context: "", url: "/issues/\(number)")
            entry = MemoryEntry(digest: Digest128(low: UInt64(number) &* 0x9e37_79b9_7f4a_7c15, high: UInt64(number)))
        }
    }

    /// One who looks up, registers and leaves meanwhile.
    private final class Neighbour: Sendable {
        let isDone = Atomic(false)
        /// In milliseconds.
        let slowest = Mutex(0.0)

        func run(_ tier: MemoryTier<Resident>, beside response: Resident) {
            let clock = ContinuousClock()
            var worst = 0.0
            repeat {
                let other = Resident(.max)
                let taken = clock.measure {
                    _ = tier.responses(at: response.entry.digest)
                    tier.register(other, under: [ObjectID(rawValue: .max)])
                    tier.discard(other)
                }
                worst = max(worst, taken.seconds * 1000)
            } while !isDone.load(ordering: .relaxed)
            slowest.withLock { $0 = worst }
        }
    }

    static func measure(_ count: Int) -> [(name: String, value: Double)] {
        let tier = MemoryTier<Resident>(capacity: 8 << 30)
        let responses = (0..<count).map { Resident($0) }
        for response in responses { tier.admit(response, at: response.entry.digest) }
        let clock = ContinuousClock()
        var rounds: [Double] = []
        // Those who come and go on other threads while a long list is flipped.
        var waits: [Double] = []
        for round in 0..<(count > 100_000 ? 5 : 51) {
            // A flipped response is composed anew and registered again; here it is merely registered again.
            for (number, response) in responses.enumerated() {
                response.entry.isDirty.store(false, ordering: .relaxed)
                tier.register(
                    response,
                    under: [ObjectID(rawValue: Int64(round + 1)), ObjectID(rawValue: Int64(1_000_000 + number))]
                )
            }
            let object = ObjectID(rawValue: Int64(round + 1))
            let neighbour = Neighbour()
            let thread = DispatchWorkItem { neighbour.run(tier, beside: responses[0]) }
            DispatchQueue.global().async(execute: thread)
            rounds.append(clock.measure { tier.objectsWillChange([object]) }.seconds * 1000)
            neighbour.isDone.store(true, ordering: .relaxed)
            thread.wait()
            waits.append(neighbour.slowest.withLock { $0 })
            precondition(
                responses.allSatisfy { $0.entry.isDirty.load(ordering: .relaxed) },
                "a response was not flipped"
            )
        }
        rounds.sort()
        waits.sort()
        return [
            ("responses", Double(count)), ("milliseconds", rounds[rounds.count / 2]),
            ("slowest", rounds[rounds.count - 1]), ("others", waits[waits.count / 2]),
        ]
    }
}
