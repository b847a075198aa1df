import Logging
import Synchronization
import TestSupport
import Testing

@testable import Proxy

@Suite struct RepeatedLinesTests {
    private let lines = Lines()
    private let repeated: RepeatedLines

    init() {
        let lines = lines
        repeated = RepeatedLines(Logger(label: "test") { _ in Handler(lines: lines) })
    }

    @Test func `a spell of events has a line for its beginning and one for its end, with the number of both`()
        async
    {
        let subject: Logger.Metadata = ["upstream": "api", "credential": "p-1"]
        for number in 0..<34 {
            let details: Logger.Metadata = ["url": "/\(number)"]
            repeated.log(.info, "backing off", about: subject, details, for: .seconds(5), end: "it is over")
        }
        for _ in 0..<3 { repeated.heldBack("backing off", about: subject) }
        #expect(lines.all == ["backing off credential=p-1 upstream=api url=/0"])
        #expect(await eventually { lines.all.count == 2 })
        #expect(lines.all.last?.hasPrefix("it is over after=") == true)
        #expect(lines.all.last?.hasSuffix("s credential=p-1 held_back=3 times=34 upstream=api") == true)
        // The next one begins another.
        repeated.log(.info, "backing off", about: subject, for: .milliseconds(1), end: "it is over")
        #expect(await eventually { lines.all.count == 4 })
    }

    @Test func `subjects have spells of their own, and a single event needs no second line`() async {
        for name in ["a", "b"] { repeated.log(.info, "slow", about: ["upstream": "\(name)"], for: .milliseconds(1)) }
        #expect(lines.all == ["slow upstream=a", "slow upstream=b"])
        repeated.log(.info, "other", about: [:], for: .seconds(5))
        repeated.log(.info, "other", about: [:], for: .seconds(5))
        #expect(await eventually { lines.all.count == 4 })
        #expect(lines.all.last?.hasPrefix("other: counted after=") == true)
        #expect(lines.all.last?.hasSuffix("s times=2") == true)
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
