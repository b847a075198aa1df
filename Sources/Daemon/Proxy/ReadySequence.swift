import Synchronization

/// The responses to one recorded request in their order, as far as they are ready, and whose turn it is.
///
/// Any thread. For requests without a session of their own.
package final class ReadySequence: Sendable {
    private let count: Int
    /// Whether the last one is given only once.
    private let isStrict: Bool
    private let position = Atomic<Int>(0)
    private let furthest = Atomic<Int>(0)
    private let responses: Mutex<[ReadyResponse?]>

    package init(count: Int, isStrict: Bool) {
        self.count = count
        self.isStrict = isStrict
        responses = Mutex([])
    }

    /// How many were given at least once.
    package var given: Int { min(furthest.load(ordering: .relaxed), count) }

    /// Begins with the first one again.
    package func reset() { position.store(0, ordering: .relaxed) }

    /// Gives the number of the next one; nil where all were given, and none is given twice.
    package func advance() -> Int? {
        let position = position.add(1, ordering: .relaxed).oldValue
        furthest.max(position + 1, ordering: .relaxed)
        return number(at: position)
    }

    private func number(at position: Int) -> Int? {
        position < count ? position : isStrict ? nil : count - 1
    }

    /// Keeps a response ready.
    package func keep(_ response: ReadyResponse, as number: Int) {
        responses.withLock { responses in
            while responses.count <= number { responses.append(nil) }
            responses[number] = response
        }
    }

    /// The next one, if it is ready.
    var next: (response: ReadyResponse, position: Int)? {
        let position = position.load(ordering: .relaxed)
        guard let number = number(at: position) else { return nil }
        let response = responses.withLock { number < $0.count ? $0[number] : nil }
        return response.map { ($0, position) }
    }

    /// Takes what `next` gave; false where another request was quicker.
    func take(_ position: Int) -> Bool {
        let isTaken = self.position.compareExchange(expected: position, desired: position + 1, ordering: .relaxed)
            .exchanged
        if isTaken { furthest.max(position + 1, ordering: .relaxed) }
        return isTaken
    }
}
