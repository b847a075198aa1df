import TestSupport
import Testing

/// The two ways in which RFC 9111 can be read: `shared: false` and `shared: true`.
enum Reading: String, CaseIterable, Sendable {
    case `private`, shared
}

/// One line of a requirement's table: what the origin answers to one URL, what is asked for twice, and what becomes of it.
struct Row: Sendable {
    /// What the origin says.
    var answer: FieldLines
    var status = 200
    /// The fields of the first request, which stores or not, and of the second.
    var first: FieldLines = [:]
    var second: FieldLines = [:]
    /// In which readings the second request is answered without asking the origin.
    var reusedBy: Set<Reading>

    /// Answered from what is stored, in both readings.
    static func reused(_ answer: FieldLines, status: Int = 200, first: FieldLines = [:], second: FieldLines = [:])
        -> Row
    {
        Row(answer: answer, status: status, first: first, second: second, reusedBy: [.private, .shared])
    }

    /// Asked of the origin again, in both readings.
    static func asked(_ answer: FieldLines, status: Int = 200, first: FieldLines = [:], second: FieldLines = [:]) -> Row
    {
        Row(answer: answer, status: status, first: first, second: second, reusedBy: [])
    }

    /// Answered from what is stored in one reading only.
    static func reused(
        by reading: Reading,
        _ answer: FieldLines,
        status: Int = 200,
        first: FieldLines = [:],
        second: FieldLines = [:]
    ) -> Row {
        Row(answer: answer, status: status, first: first, second: second, reusedBy: [reading])
    }
}

extension FieldLines {
    /// One `Cache-Control` line.
    static func control(_ value: String) -> FieldLines { ["Cache-Control": value] }

    /// A `Date` of now, or of so many seconds from it.
    static func dated(_ seconds: Double = 0) -> FieldLines { ["Date": CacheTests.date(in: seconds)] }
}

/// A counting origin behind one daemon that serves it in both readings, so that a whole table needs one process.
final class Readings {
    let origin: Origin
    let larder: Larder
    private let answers: Monitor<[String: @Sendable (Origin.Request, Int) -> OriginResponse]>
    private var count = 0

    /// - Parameter upstream: further keys of both upstreams.
    init(upstream: [String] = []) throws {
        let table = Monitor<[String: @Sendable (Origin.Request, Int) -> OriginResponse]>([:])
        let counts = Monitor<[String: Int]>([:])
        answers = table
        let origin = try Origin { request in
            let number = counts.withLock { counts in
                counts[request.path, default: 0] += 1
                return counts[request.path] ?? 0
            }
            return table.current[request.path]?(request, number) ?? .empty(404)
        }
        self.origin = origin
        let keys = upstream.map { "\n    \($0)" }.joined()
        let upstreams = Reading.allCases.map { reading in
            """
              \(reading.rawValue):
                url: \(origin.url)/\(reading.rawValue)
                prefix: /\(reading.rawValue)
                shared: \(reading == .shared)
                targets: [Larder-Cache-Control, CDN-Cache-Control]\(keys)
            """
        }
        larder = try Larder(config: "upstreams:\n" + upstreams.joined(separator: "\n"))
    }

    /// A path of its own in one reading, answered by `answer`, which is told how often it was asked, from 1.
    func path(
        _ reading: Reading,
        query: String = "",
        _ answer: @escaping @Sendable (Origin.Request, Int) -> OriginResponse
    ) -> String {
        count += 1
        let path = "/\(reading.rawValue)/\(count)"
        answers.withLock { $0[path] = answer }
        return path + query
    }

    /// How often the origin was asked.
    func requests(_ path: String) -> Int { origin.count(String(path.prefix { $0 != "?" })) }

    /// Asks for each row twice in each reading, and holds what came against the table.
    func check(_ rows: [Row], query: String = "", sourceLocation: SourceLocation = #_sourceLocation) throws {
        for row in rows {
            for reading in Reading.allCases {
                let path = path(reading, query: query) { _, number in
                    let body = [204, 205].contains(row.status) ? "" : "answer \(number)"
                    return .text(body, ["Content-Type": "text/plain"] + row.answer, status: row.status)
                }
                let label: Comment = "\(reading): \(row.status) \(row.answer.text) asked with \(row.second.text)"
                let first = try larder.get(path, row.first)
                #expect(first.status == row.status, label, sourceLocation: sourceLocation)
                let second = try larder.get(path, row.second)
                #expect(second.status == row.status, label, sourceLocation: sourceLocation)
                let isReused = requests(path) == 1
                #expect(isReused == row.reusedBy.contains(reading), label, sourceLocation: sourceLocation)
                #expect(second.isHit == isReused, label, sourceLocation: sourceLocation)
                if isReused { #expect(second.body == first.body, label, sourceLocation: sourceLocation) }
            }
        }
    }
}
