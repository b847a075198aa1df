import HTTPSemantics

/// A recorded request similar to one that was not recorded, with the differences.
package struct NearestRequest: Sendable, Equatable {
    /// Method and target, such as `GET /users/1`.
    package var request: String
    package var differences: [String]

    private static let count = 3

    /// Finds the nearest recorded requests, without duplicates.
    static func find(_ wanted: ComparedRequest, in all: [ComparedRequest]) -> [NearestRequest] {
        var best: [(distance: Int, request: ComparedRequest)] = []
        for request in all {
            let distance = wanted.distance(to: request, within: best.count == count ? best[count - 1].distance : .max)
            guard best.count < count || distance < best[count - 1].distance else { continue }
            if best.contains(where: { $0.request == request }) { continue }
            let index = best.firstIndex { $0.distance > distance } ?? best.count
            best.insert((distance, request), at: index)
            if best.count > count { best.removeLast() }
        }
        return best.map { NearestRequest(request: $0.request.title, differences: wanted.differences(from: $0.request)) }
    }
}

/// The parts of a request that are compared for similarity.
struct ComparedRequest: Sendable, Equatable {
    let title: String
    private let upstream: String
    private let method: String
    private let segments: [Substring]
    private let query: [String: String]
    private let session: String
    private let credential: Int?
    private let representation: String?
    private let body: String

    init(_ exchange: RecordedExchange, _ key: RequestKey) {
        self.init(
            exchange.request.method,
            exchange.request.target,
            of: exchange.upstream,
            key,
            session: exchange.session ?? "",
            credential: exchange.credential ?? 0,
            anyRepresentation: exchange.request.fields == nil
        )
    }

    /// - Parameter target: Path and query as they go upstream.
    init(
        _ method: String,
        _ target: String,
        of upstream: String,
        _ key: RequestKey,
        session: String,
        credential: Int?,
        anyRepresentation: Bool = false
    ) {
        (title, self.upstream, self.method) = ("\(method) \(target)", upstream, method)
        (self.session, self.credential) = (session, credential)
        (representation, body) = (anyRepresentation ? nil : key.representation, key.body)
        let parts = target.split(separator: "?", maxSplits: 1)
        segments = (parts.first ?? "").split(separator: "/")
        let pairs = (parts.dropFirst().first ?? "").split(separator: "&").map { pair in
            let halves = pair.split(separator: "=", maxSplits: 1).map(String.init)
            return (halves.first ?? "", halves.dropFirst().first ?? "")
        }
        query = Dictionary(pairs) { "\($0),\($1)" }
    }

    /// The distance to another request; may stop early once it is at least `limit`.
    func distance(to other: ComparedRequest, within limit: Int) -> Int {
        var distance = upstream == other.upstream ? 0 : 40
        if method != other.method { distance += 12 }
        distance += abs(segments.count - other.segments.count) * 10
        guard distance < limit else { return distance }
        for (mine, theirs) in zip(segments, other.segments) where mine != theirs { distance += 8 }
        for (name, value) in query where other.query[name] != value { distance += other.query[name] == nil ? 4 : 3 }
        for name in other.query.keys where query[name] == nil { distance += 4 }
        if body != other.body { distance += 2 }
        if other.representation != nil, representation != other.representation { distance += 1 }
        if isHidden(other) { distance += 1 }
        if let credential, credential != other.credential { distance += 1 }
        return distance
    }

    /// Whether a recorded request is another session's, so that this one's session does not get its response.
    private func isHidden(_ other: ComparedRequest) -> Bool {
        !session.isEmpty && !other.session.isEmpty && session != other.session
    }

    /// The differences, a sentence for each; `other` is the recorded request.
    func differences(from other: ComparedRequest) -> [String] {
        var result: [String] = []
        func add(_ what: String, _ recorded: String, _ asked: String) {
            result.append("\(what): recorded \(recorded), asked \(asked)")
        }
        if upstream != other.upstream { add("upstream", other.upstream, upstream) }
        if method != other.method { add("method", other.method, method) }
        let (mine, theirs) = (segments.joined(separator: "/"), other.segments.joined(separator: "/"))
        if mine != theirs { add("path", "/\(theirs)", "/\(mine)") }
        for name in Set(query.keys).union(other.query.keys).sorted() where query[name] != other.query[name] {
            let (recorded, asked) = (other.query[name].map { "\"\($0)\"" }, query[name].map { "\"\($0)\"" })
            add("query \(name)", recorded ?? "none", asked ?? "none")
        }
        if let recorded = other.representation, recorded != representation {
            add("representation", Self.shown(recorded), Self.shown(representation ?? ""))
        }
        if body != other.body { add("body", Self.shown(other.body), Self.shown(body)) }
        if isHidden(other) { add("session", Self.shown(other.session), Self.shown(session)) }
        if let credential, credential != other.credential {
            add("credential", Self.name(ofCredential: other.credential ?? 0), Self.name(ofCredential: credential))
        }
        return result
    }

    private static func name(ofCredential number: Int) -> String {
        switch number {
        case 0: "none"
        case ReplayIndex.unknownCredential: "one more than were recorded"
        default: "number \(number)"
        }
    }

    private static func shown(_ text: String) -> String {
        let line = text.split { $0.isNewline }.joined(separator: "; ")
        guard !line.isEmpty else { return "none" }
        return line.count > 200 ? "\"\(line.prefix(200))…\"" : "\"\(line)\""
    }
}
