import Proxy

/// A recorded request similar to one that was not recorded, with the differences.
package struct NearestRequest: Sendable, Equatable {
    /// Method and target, such as `GET /users/1`.
    package var request: String
    package var differences: [String]

    /// The maximum number of results.
    private static let count = 3

    /// Finds the nearest recorded requests, without duplicates.
    static func find(_ wanted: RecordedTitle, in all: [RecordedTitle]) -> [NearestRequest] {
        var best: [(score: Int, title: RecordedTitle)] = []
        for title in all {
            let score = wanted.distance(to: title, within: best.count == count ? best[count - 1].score : .max)
            guard best.count < count || score < best[count - 1].score else { continue }
            if best.contains(where: { $0.title == title }) { continue }
            let place = best.firstIndex { $0.score > score } ?? best.count
            best.insert((score, title), at: place)
            if best.count > count { best.removeLast() }
        }
        return best.map { NearestRequest(request: $0.title.title, differences: wanted.differences(from: $0.title)) }
    }
}

/// The parts of a request that are compared for similarity.
struct RecordedTitle: Sendable, Equatable {
    let title: String
    private let upstream: String
    private let method: String
    private let segments: [Substring]
    private let query: [String: String]
    private let credential: Int?
    private let representation: String?
    private let body: String

    init(_ exchange: RecordedExchange, _ key: RequestKey) {
        self.init(
            title: exchange.title,
            upstream: exchange.upstream,
            method: exchange.request.method,
            target: exchange.request.target,
            credential: exchange.credential ?? 0,
            representation: exchange.request.fields == nil ? nil : key.representation,
            body: key.body
        )
    }

    init(_ key: RequestKey, credential: Int?, _ incoming: IncomingRequest, _ method: String) {
        self.init(
            title: "\(method) \(incoming.target)",
            upstream: incoming.upstream.name,
            method: method,
            target: incoming.parts.url,
            credential: credential,
            representation: key.representation,
            body: key.body
        )
    }

    private init(
        title: String,
        upstream: String,
        method: String,
        target: String,
        credential: Int?,
        representation: String?,
        body: String
    ) {
        self.title = title
        self.upstream = upstream
        self.method = method
        self.credential = credential
        self.representation = representation
        self.body = body
        let parts = target.split(separator: "?", maxSplits: 1)
        segments = (parts.first ?? "").split(separator: "/")
        let pairs = (parts.dropFirst().first ?? "").split(separator: "&").map { pair in
            let halves = pair.split(separator: "=", maxSplits: 1)
            return (String(halves.first ?? ""), String(halves.dropFirst().first ?? ""))
        }
        query = Dictionary(pairs) { "\($0),\($1)" }
    }

    /// The distance to another request; may stop early once it is at least `limit`.
    func distance(to other: RecordedTitle, within limit: Int) -> Int {
        var distance = upstream == other.upstream ? 0 : 40
        if method != other.method { distance += 12 }
        distance += abs(segments.count - other.segments.count) * 10
        guard distance < limit else { return distance }
        for (mine, theirs) in zip(segments, other.segments) where mine != theirs { distance += 8 }
        for (name, value) in query where other.query[name] != value { distance += other.query[name] == nil ? 4 : 3 }
        for name in other.query.keys where query[name] == nil { distance += 4 }
        if body != other.body { distance += 2 }
        if other.representation != nil, representation != other.representation { distance += 1 }
        if let credential, credential != other.credential { distance += 1 }
        return distance
    }

    /// The differences, a sentence for each; `other` is the recorded request.
    func differences(from other: RecordedTitle) -> [String] {
        var result: [String] = []
        func add(_ what: String, _ recorded: String, _ asked: String) {
            result.append("\(what): recorded \(recorded), asked \(asked)")
        }
        if upstream != other.upstream { add("upstream", other.upstream, upstream) }
        if method != other.method { add("method", other.method, method) }
        let (mine, theirs) = (segments.joined(separator: "/"), other.segments.joined(separator: "/"))
        if mine != theirs { add("path", "/\(theirs)", "/\(mine)") }
        for name in Set(query.keys).union(other.query.keys).sorted() where query[name] != other.query[name] {
            add(
                "query \(name)",
                other.query[name].map { "\"\($0)\"" } ?? "none",
                query[name].map { "\"\($0)\"" } ?? "none"
            )
        }
        if let recorded = other.representation, recorded != representation {
            add("representation", Self.shown(recorded), Self.shown(representation ?? ""))
        }
        if body != other.body { add("body", Self.shown(other.body), Self.shown(body)) }
        if let credential, credential != other.credential {
            add("credential", Self.ordinal(other.credential ?? 0), Self.ordinal(credential))
        }
        return result
    }

    private static func ordinal(_ number: Int) -> String {
        number == 0 ? "anonymous" : "the session's number \(number)"
    }

    private static func shown(_ text: String) -> String {
        let line = text.split { $0.isNewline }.joined(separator: "; ")
        guard !line.isEmpty else { return "none" }
        return line.count > 200 ? "\"\(line.prefix(200))…\"" : "\"\(line)\""
    }
}
