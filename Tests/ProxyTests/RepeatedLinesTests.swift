import Logging
import Synchronization
import Testing

@testable import Proxy

@Suite struct RepeatedLinesTests {
    private let lines = Lines()
    private let repeated: RepeatedLines

    init() {
        let lines = lines
        repeated = RepeatedLines(Logger(label: "test") { _ in Handler(lines: lines) })
    }

    /// Waits without a thread, which the end of a spell needs.
    private func wait(until holds: ([String]) -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(60)
        while !holds(lines.all), ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(5)) }
        #expect(holds(lines.all))
    }

    @Test func `a spell of events has a line for its beginning and one for its end, with the number of both`()
        async throws
    {
        let subject: Logger.Metadata = ["upstream": "api", "credential": "p-1"]
        for number in 0..<34 {
            let details: Logger.Metadata = ["url": "/\(number)"]
            repeated.log(.info, "backing off", about: subject, details, for: .milliseconds(100), end: "it is over")
        }
        for _ in 0..<3 { repeated.heldBack("backing off", about: subject) }
        #expect(lines.all == ["backing off credential=p-1 upstream=api url=/0"])
        try await wait { $0.count == 2 }
        #expect(lines.all.last == "it is over after=1s credential=p-1 held_back=3 times=34 upstream=api")
        // The next one begins another.
        repeated.log(.info, "backing off", about: subject, for: .milliseconds(1), end: "it is over")
        try await wait { $0.count == 4 }
    }

    @Test func `subjects have spells of their own, and a single event needs no second line`() async throws {
        for name in ["a", "b"] { repeated.log(.info, "slow", about: ["upstream": "\(name)"], for: .milliseconds(1)) }
        #expect(lines.all == ["slow upstream=a", "slow upstream=b"])
        repeated.log(.info, "other", about: [:], for: .milliseconds(50))
        repeated.log(.info, "other", about: [:], for: .milliseconds(50))
        try await wait { $0.last == "other: counted after=1s times=2" }
        #expect(lines.all.count == 4)
    }
}

private final class Lines: Sendable {
    private let list = Mutex<[String]>([])

    func add(_ line: String) { list.withLock { $0.append(line) } }
    var all: [String] { list.withLock { $0 } }
}

private struct Handler: LogHandler {
    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let pairs = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }
        lines.add("\(event.message)" + pairs.joined())
    }
}
