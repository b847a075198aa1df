import Mapping
import Store

/// How long the writer is busy with flipping the ready answers that show an object when it changes.
enum Changing {
    /// An answer as far as the memory tier knows it.
    private final class Answer: MemoryResident {
        let key: DocumentKey
        let variant: [UInt8] = []
        let byteCount = 2048
        let residence: Residence

        init(_ number: Int) {
            key = DocumentKey(upstream: "github", principal: 1, context: "", url: "/issues/\(number)")
            residence = Residence(digest: Digest128(low: UInt64(number) &* 0x9e37_79b9_7f4a_7c15, high: UInt64(number)))
        }
    }

    static func measure(_ count: Int) -> [(name: String, value: Double)] {
        let tier = MemoryTier<Answer>(capacity: 1 << 30)
        let answers = (0..<count).map { Answer($0) }
        for answer in answers { tier.insert(answer, at: answer.residence.digest) }
        let clock = ContinuousClock()
        var rounds: [Double] = []
        for round in 0..<51 {
            // A flipped answer is composed anew and registered again; here it is merely registered again.
            for (number, answer) in answers.enumerated() {
                answer.residence.isDirty.store(false, ordering: .relaxed)
                tier.register(answer, under: [ObjectID(round + 1), ObjectID(1_000_000 + number)])
            }
            let object = ObjectID(round + 1)
            rounds.append(clock.measure { tier.objectsChanged([object]) }.seconds * 1000)
            precondition(
                answers.allSatisfy { $0.residence.isDirty.load(ordering: .relaxed) },
                "an answer was not flipped"
            )
        }
        rounds.sort()
        return [
            ("answers", Double(count)), ("milliseconds", rounds[rounds.count / 2]),
            ("slowest", rounds[rounds.count - 1]),
        ]
    }
}
