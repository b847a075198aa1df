import Foundation
import HTTPSemantics
import Mapping
import Proxy
import Settings
import Store

/// The properties by which a replay matches requests: method, URL, body, and the selected representation.
///
/// Redacted values are left out, so that no credential has to match.
struct RequestKey: Sendable {
    /// Upstream, method, path and query, normalised.
    let request: String
    /// The selected representation, and the fields that the route names.
    let representation: String
    let body: String
    /// The request's conditions and ranges, which count if the recorded response depends on them.
    let conditions: String

    /// The whole key as an entry of the index.
    func text(credential: Int?, anyRepresentation: Bool = false, withConditions: Bool) -> String {
        let parts = [
            request, credential.map { "\($0)" } ?? "", anyRepresentation ? "*" : representation,
            withConditions ? conditions : "", body,
        ]
        return parts.joined(separator: "\n")
    }

    /// Makes the key, the same for a live request and for a recorded one.
    ///
    /// - Parameters:
    ///   - incoming: The request, either not redacted at all or completely. Of a live one, the plain request counts.
    ///   - body: Its whole body.
    init(_ incoming: IncomingRequest, body: [UInt8]) {
        let upstream = incoming.upstream
        let message = incoming.live == nil ? incoming.message : incoming.message.plain
        let (method, fields) = (message.method, message.fields)
        let matching = Self.matching(incoming, method: method)
        let redactor = Redactor(numbers: false)
        let target = redactor.redacted(target: incoming.url, of: upstream)
        request = "\(upstream.name) \(method) \(Self.url(target, ignoring: matching.query.ignore))"
        let named = matching.headers.map { name in
            "\(name.lowercased()): \(fields.combined(name.lowercased()) ?? "")"
        }
        representation = ([incoming.context] + named).joined(separator: "\n")
        conditions = Self.conditional.compactMap { name in
            fields.combined(name).map { "\(name): \($0)" }
        }.joined(separator: "\n")
        guard !body.isEmpty else {
            self.body = ""
            return
        }
        let plain = CodedContent.plain(body, ContentHead(fields))
        // Parsing so much text takes seconds, and uploads of this size are rarely text.
        guard plain.count <= Self.readLimit else {
            self.body = Self.digest(of: Self.withoutBoundary(plain, fields))
            return
        }
        redactor.learnCredentials(of: upstream)
        var exchange = WholeExchange(
            method: method,
            target: incoming.target,
            requestFields: fields,
            requestBody: plain
        )
        // The content has no coding any more.
        exchange.requestFields?.remove("content-encoding")
        guard (try? redactor.redact(&exchange, of: upstream, route: incoming.route)) != nil else {
            self.body = Self.digest(of: exchange.requestBody)
            return
        }
        self.body = Self.canonical(exchange.requestBody, fields, ignoring: matching.body.ignore)
    }

    private static func digest(of bytes: [UInt8]) -> String {
        let digest = KeyHasher(secret: (0, 0)).digest(bytes)
        return "\(bytes.count) bytes, \(digest.low) \(digest.high)"
    }

    /// Larger bodies are compared byte by byte.
    private static let readLimit = 8 << 20

    private static let conditional = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range",
    ]

    /// Whether a response of this status depends on its request's conditions or ranges.
    static func isConditional(status: Int) -> Bool { [206, 304, 412, 416].contains(status) }

    /// Whether the cache key contains all that counts of a request without body and conditions.
    static func isWithinCacheKey(_ incoming: IncomingRequest) -> Bool {
        matching(incoming, method: "GET").headers.isEmpty
    }

    private static func matching(_ incoming: IncomingRequest, method: String) -> RequestMatching {
        let rules = incoming.upstream.rules
        return rules.route(method: method, path: incoming.route, query: incoming.query, status: nil)
            .map { rules.settings.routes[$0.index].match } ?? RequestMatching()
    }

    // MARK: Spelling

    /// A path and query with sorted parameters; those of one name keep their order.
    private static func url(_ url: String, ignoring ignored: [String]) -> String {
        guard let mark = url.utf8.firstIndex(of: 0x3F) else { return url }
        let pairs = url.utf8[mark...].dropFirst().split(separator: 0x26).map { pair -> (name: String, text: String) in
            let halves = pair.split(separator: 0x3D, maxSplits: 1, omittingEmptySubsequences: false).map { half in
                // Most need no decoding, which is slow.
                half.contains { $0 == 0x25 || $0 == 0x2B }
                    ? PercentEncoding.decode(String(Substring(half)).replacing("+", with: " "))
                        ?? String(Substring(half)) : String(Substring(half))
            }
            return (halves[0], halves.joined(separator: "="))
        }
        .filter { pair in !ignored.contains { matches(pair.name, $0) } }
        .sorted { $0.name < $1.name }
        let path = url[..<mark]
        return pairs.isEmpty ? String(path) : "\(path)?\(pairs.map(\.text).joined(separator: "&"))"
    }

    /// Whether a name matches a pattern in which `*` stands for any text.
    private static func matches(_ name: String, _ pattern: String) -> Bool {
        let parts = pattern.split(separator: "*", omittingEmptySubsequences: false)
        guard parts.count > 1 else { return name == pattern }
        var rest = Substring(name)
        guard rest.hasPrefix(parts[0]) else { return false }
        rest = rest.dropFirst(parts[0].count)
        for part in parts.dropFirst().dropLast() {
            guard let range = rest.firstRange(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return rest.count >= parts.last!.count && rest.hasSuffix(parts.last!)
    }

    /// A normalised body: JSON by its values, a form by its parameters, a multipart body by its parts.
    private static func canonical(_ body: [UInt8], _ fields: Fields, ignoring pointers: [String]) -> String {
        let type = fields.text("content-type") ?? ""
        if let outline = JSONOutline(body) {
            return withoutNumbers(outline.canonical(leavingOut: Set(pointers)))
        }
        if type.lowercased().hasPrefix("application/x-www-form-urlencoded") {
            return withoutNumbers(Array(url("?" + String(decoding: body, as: UTF8.self), ignoring: []).utf8))
        }
        return withoutNumbers(withoutBoundary(body, fields))
    }

    /// A multipart body with a fixed boundary, because clients choose a new one for each request.
    private static func withoutBoundary(_ body: [UInt8], _ fields: Fields) -> [UInt8] {
        let type = fields.text("content-type") ?? ""
        guard type.lowercased().hasPrefix("multipart/"), let range = type.range(of: "boundary=") else { return body }
        let boundary = type[range.upperBound...].prefix { $0 != ";" }.filter { $0 != "\"" }
        guard !boundary.isEmpty else { return body }
        return body.replacing(Array(boundary.utf8), with: Array("boundary".utf8))
    }

    /// The text with all placeholders alike; Base64 if the bytes are not text.
    private static func withoutNumbers(_ bytes: [UInt8]) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { return Data(bytes).base64EncodedString() }
        guard text.contains("REDACTED-") else { return text }
        return text.replacing(/REDACTED-[0-9]+/, with: "REDACTED")
    }
}

/// A recorded request similar to one that was not recorded, with the differences.
package struct NearestRequest: Sendable, Equatable {
    /// Method and target, such as `GET /users/1`.
    package var request: String
    package var differences: [String]

    /// The maximum number of results.
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
        title = "\(method) \(target)"
        (self.upstream, self.method) = (upstream, method)
        (self.session, self.credential) = (session, credential)
        representation = anyRepresentation ? nil : key.representation
        body = key.body
        let parts = target.split(separator: "?", maxSplits: 1)
        segments = (parts.first ?? "").split(separator: "/")
        let pairs = (parts.dropFirst().first ?? "").split(separator: "&").map { pair in
            let halves = pair.split(separator: "=", maxSplits: 1)
            return (String(halves.first ?? ""), String(halves.dropFirst().first ?? ""))
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
