import Foundation

/// A client that listens to `/changes`.
final class ChangeListener {
    /// A change or a reset as it was told.
    struct Event {
        let name: String
        let id: Int64
        let members: [String: Any]

        var sequence: Int64? { (members["sequence"] as? NSNumber)?.int64Value }
        var model: String? { members["model"] as? String }
        var identity: String { members["id"].map { "\($0)" } ?? "" }

        /// `created User 1`.
        var text: String { "\(name) \(model ?? "") \(identity)" }
    }

    let client: Client
    let status: Int
    let fields: FieldLines
    private var rest: [UInt8] = []
    private var waiting: [Event] = []
    /// The last number that came, with an event or alone: what the client would come back with.
    private(set) var lastID: Int64?

    init(_ larder: Larder, _ query: String = "", after lastID: Int64? = nil, limit: Duration = .seconds(120)) throws {
        client = try Client(.port(larder.adminPort), limit: limit)
        let target = "/changes" + (query.isEmpty ? "" : "?\(query)")
        var head = "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(larder.adminPort)\r\n"
        if let token = larder.token { head += "Authorization: Bearer \(token)\r\n" }
        if let lastID { head += "Last-Event-ID: \(lastID)\r\n" }
        try client.send(head + "\r\n")
        let answer = try client.head()
        (status, fields) = (answer.status, answer.fields)
    }

    /// The next event; nil at the end of the stream.
    ///
    /// Fails when nothing but heartbeats comes for long.
    func next() throws -> Event? {
        let end = ContinuousClock.now + .seconds(120)
        while waiting.isEmpty {
            guard ContinuousClock.now < end else { throw SocketError.timedOut }
            guard let chunk = try client.chunk() else { return nil }
            try take(chunk)
        }
        return waiting.removeFirst()
    }

    /// So many events.
    func next(_ count: Int) throws -> [Event] {
        try (0..<count).map { _ in
            guard let event = try next() else { throw SocketError.closed }
            return event
        }
    }

    private func take(_ bytes: [UInt8]) throws {
        rest += bytes
        while let end = rest.firstRange(of: [0x0A, 0x0A]) {
            let block = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
            rest.removeSubrange(..<end.upperBound)
            var (name, data): (String?, String?) = (nil, nil)
            for line in block.split(separator: "\n") {
                if line.hasPrefix("id: ") { lastID = Int64(line.dropFirst(4)) }
                if line.hasPrefix("event: ") { name = String(line.dropFirst(7)) }
                if line.hasPrefix("data: ") { data = String(line.dropFirst(6)) }
            }
            guard let name, let data, let lastID else { continue }
            let members = try JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any] ?? [:]
            waiting.append(Event(name: name, id: lastID, members: members))
        }
    }
}

extension Larder {
    /// All that the journal tells after a number, page by page.
    func changes(_ query: String = "", since: Int64 = 0) throws -> [[String: Any]] {
        var (position, found): (String, [[String: Any]]) = (String(since), [])
        while true {
            let target = "/changes?limit=1000&since=\(position)" + (query.isEmpty ? "" : "&\(query)")
            let page = try admin("GET", target, ["Accept": "application/json"]).object
            found += page["changes"] as? [[String: Any]] ?? []
            guard page["more"] as? Bool == true, let next = page["next"] as? String else { return found }
            position = next
        }
    }
}
