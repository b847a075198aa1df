import Basics
import CachePolicy
import HTTPSemantics
import Mapping
package import Settings
import Store
import Synchronization

/// The body of a POST that reads: such a request is served like a GET whose URL has the body's digest.
package final class ReadBody: Sendable {
    /// Empty in an explanation that has only the digest.
    let bytes: [UInt8]
    package let kind: ReadingPost
    /// Of the media type and the canonical JSON: 32 hexadecimal digits.
    let digest: String
    /// The memory of the bytes, as long as the request uses them.
    private let share: BufferedBytes.Share?

    /// The most that is read of a body; a larger one is passed on.
    package static let byteLimit = 1 << 20

    /// Examines a body; throws why its request is passed on like any other POST.
    ///
    /// - Parameters:
    ///   - fields: the request's, in which `NotReadReason` has found no reason.
    ///   - persisted: the queries that are known by their digests; this body may add one.
    init(
        _ bytes: [UInt8],
        _ kind: ReadingPost,
        _ fields: Fields,
        of upstream: UpstreamKey,
        _ persisted: PersistedQueries,
        share: BufferedBytes.Share? = nil
    ) throws(NotReadReason) {
        guard bytes.count <= Self.byteLimit else { throw .tooLarge }
        guard let outline = JSONOutline(bytes) else { throw .notJSON }
        guard let canonical = outline.unambiguous else { throw .ambiguous }
        if kind == .graphQL {
            for request in outline.elements ?? [outline] { try persisted.check(request, of: upstream) }
            if outline.elements?.isEmpty == true { throw .noDocument }
        }
        let type = FieldSyntax.lowercased(FieldSyntax.essence(of: (fields[first: "content-type"] ?? [])[...]))
        digest = Crypto.sha256([type, [0], canonical]).prefix(16).hexadecimal
        (self.bytes, self.kind, self.share) = (bytes, kind, share)
    }

    /// A body of which only the digest is known, for an explanation.
    init(digest: String, _ kind: ReadingPost) { (bytes, self.kind, self.digest, share) = ([], kind, digest, nil) }

    // MARK: URLs

    /// What precedes the digest in a URL; no request's URL has a fragment.
    private static let mark = "#body="

    /// The URL of the cache key: the mark belongs to the query, as whatever may differ between the responses of one path.
    func url(of url: String) -> String { url + (url.utf8.contains(0x3F) ? "" : "?") + Self.mark + digest }

    /// The URL of a request and the digest of its body; nil if it has none.
    static func split(_ url: String) -> (url: String, digest: String)? {
        let bytes = url.utf8
        guard let start = bytes.index(bytes.endIndex, offsetBy: -(mark.utf8.count + 32), limitedBy: bytes.startIndex),
            url[start...].hasPrefix(mark)
        else { return nil }
        let digest = url[start...].dropFirst(mark.count)
        let isDigest = digest.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }
        return isDigest ? (String(url[..<start]), String(digest)) : nil
    }
}

extension IncomingRequest {
    /// The same POST, which is a write although its route says that it may read.
    func passed(because reason: NotReadReason) -> IncomingRequest {
        var request = self
        request.notRead = reason
        return request
    }

    /// The POST as its body says that it is served.
    fileprivate func examined(
        _ bytes: [UInt8],
        _ kind: ReadingPost,
        _ persisted: PersistedQueries,
        share: BufferedBytes.Share?
    ) -> IncomingRequest {
        do throws(NotReadReason) {
            return reading(try ReadBody(bytes, kind, message.fields, of: upstream.storeKey, persisted, share: share))
        } catch { return passed(because: error) }
    }
}

extension ProxyCore {
    /// A longer body is examined on another thread: the largest takes as long as hundreds of requests.
    private static let quickLimit = 32 << 10

    /// The request as it is served: of a POST that may read, the body says whether it does.
    func knowingBody(of incoming: IncomingRequest) async throws(RequestBodyError) -> IncomingRequest {
        guard let kind = incoming.upstream.reading(incoming) else { return incoming }
        let (message, target) = (incoming.message, incoming.target)
        let declared = message.body.map { $0.declaredLength ?? 0 }
        if let reason = NotReadReason(message.fields, target: target, kind, length: declared) {
            return incoming.passed(because: reason)
        }
        guard let body = message.body else { return incoming }
        let length = body.declaredLength ?? ReadBody.byteLimit
        let share = BufferedBytes.Share(length, of: fetches.bufferedBytes)
        guard fetches.reserve(length) else { return incoming.passed(because: .noMemory) }
        guard let bytes = try await body.collectUnlessLarger(than: ReadBody.byteLimit)
        else { return incoming.passed(because: .tooLarge) }
        var incoming = incoming
        incoming.message.body = RequestBody(bytes)
        guard bytes.count > Self.quickLimit else { return incoming.examined(bytes, kind, persisted, share: share) }
        return await Task.detached { [incoming, persisted] in
            incoming.examined(bytes, kind, persisted, share: share)
        }.value
    }

    /// The same for a request that no client sent.
    ///
    /// - Parameter body: nil for none.
    package nonisolated func knowing(_ body: [UInt8]?, of incoming: IncomingRequest) -> IncomingRequest {
        incoming.knowing(body, persisted)
    }
}

extension IncomingRequest {
    /// The POST that reads, with its body; throws why there is none.
    package func reading(_ body: [UInt8]) throws(ImaginedRequestError) -> IncomingRequest {
        let request = knowing(body, PersistedQueries())
        if request.read != nil { return request }
        let reason =
            request.notRead.map(\.text)
            ?? "no route with \"read\" is for a POST to \(route), so that its body is in no key"
        throw .unreadable("such a request is a write: \(reason)")
    }

    /// The request with a body that is known already.
    func knowing(_ body: [UInt8]?, _ persisted: PersistedQueries) -> IncomingRequest {
        guard let kind = upstream.reading(self) else { return self }
        let reason = NotReadReason(message.fields, target: target, kind, length: body?.count)
        return reason.map(passed) ?? examined(body ?? [], kind, persisted, share: nil)
    }
}

/// Why a POST whose route says that it reads is passed on like any other.
enum NotReadReason: String, Error, Sendable {
    case noBody = "no-body"
    case tooLarge = "body-too-large"
    case noMemory = "no-memory"
    case notJSON = "body-not-json"
    case ambiguous = "body-ambiguous"
    case noDocument = "no-document"
    case malformed = "document-malformed"
    case mutation, subscription
    case unknownQuery = "query-unknown"
    case elsewhere = "query-elsewhere"

    /// Why nothing need be read of a body; nil if it decides.
    ///
    /// - Parameter length: of the body, 0 if it is not known; nil without a body.
    init?(_ fields: Fields, target: String, _ kind: ReadingPost, length: Int?) {
        if length == nil {
            self = .noBody
        } else if length ?? 0 > ReadBody.byteLimit {
            self = .tooLarge
        } else if fields.contains("content-encoding") || !Self.isJSON(fields) {
            self = .notJSON
        } else if kind == .graphQL, Self.namesQuery(target) {
            self = .elsewhere
        } else {
            return nil
        }
    }

    private static func isJSON(_ fields: Fields) -> Bool {
        let types = fields.all("content-type")
        guard types.count == 1 else { return false }
        let essence = FieldSyntax.lowercased(FieldSyntax.essence(of: types[0][...]))
        guard essence.elementsEqual("application/json".utf8) || essence.suffix(5).elementsEqual("+json".utf8)
        else { return false }
        // In another charset the bytes might be other text.
        let type = String(decoding: FieldSyntax.lowercased(types[0][...]), as: UTF8.self)
        let rest = type.filter { $0 != "\"" && $0 != " " }
        return !rest.contains("charset") || rest.hasSuffix(";charset=utf-8") || rest.hasSuffix(";charset=utf8")
    }

    /// Whether the URL may say what is executed; some servers prefer that to the body.
    private static func namesQuery(_ target: String) -> Bool {
        let words: Set = ["query", "operationname", "variables", "extensions", "id", "documentid", "doc_id", "queryid"]
        guard let query = ProxiedUpstream.query(ofURL: target) else { return false }
        return query.utf8.split(separator: 0x26).contains { parameter in
            let name = TargetNormaliser.unescaped(Array(parameter.prefix { $0 != 0x3D })[...])
            return words.contains(String(decoding: name, as: UTF8.self).lowercased())
        }
    }

    var text: String {
        switch self {
        case .noBody: "it has no body"
        case .tooLarge: "its body is larger than \(ReadBody.byteLimit) bytes"
        case .noMemory: "too many bodies are held in memory"
        case .notJSON: "its body is not JSON in UTF-8 without a content coding, or its Content-Type does not say so"
        case .ambiguous: "its body has a member twice, or text that is not Unicode, and may be read in several ways"
        case .noDocument: "its body has no GraphQL document"
        case .malformed: "its GraphQL document cannot be read"
        case .mutation: "its GraphQL document has a mutation"
        case .subscription: "its GraphQL document has a subscription"
        case .unknownQuery: "it names a persisted query that no request has shown yet"
        case .elsewhere: "its URL, or a member other than query, may say which GraphQL document is executed"
        }
    }
}

/// The GraphQL queries that clients have sent with their SHA-256, so that a request with this alone is known to read.
///
/// Any thread. Bounded; after a restart the next request with the whole query makes it known again.
final class PersistedQueries: Sendable {
    private struct Name: Hashable {
        let upstream: UpstreamKey
        let digest: String
    }

    private let known = Mutex(BoundedTable<Name, Bool>(limit: 4_096))

    /// The members that a request may have; another one may say which document is executed.
    private static let members: Set = ["query", "operationName", "variables", "extensions"]

    /// Throws why a request of a GraphQL body is not known to read; remembers its query, if the body names the digest.
    func check(_ request: JSONOutline, of upstream: UpstreamKey) throws(NotReadReason) {
        guard let names = request.names else { throw .noDocument }
        guard names.allSatisfy(Self.members.contains) else { throw .elsewhere }
        let name = try Self.persistedName(request).map { Name(upstream: upstream, digest: $0) }
        guard let query = request["query"], query.kind != .null else {
            guard let name else { throw .noDocument }
            guard known.withLock({ $0[name] }) == true else { throw .unknownQuery }
            return
        }
        guard let text = query.text, let document = GraphQLDocument(text.utf8) else { throw .malformed }
        if document.kinds.contains(.mutation) { throw .mutation }
        if document.kinds.contains(.subscription) { throw .subscription }
        guard document.onlyReads else { throw .malformed }
        guard let name else { return }
        guard Crypto.sha256([Array(text.utf8)]).hexadecimal == name.digest else { throw .elsewhere }
        known.withLock { $0[name] = true }
    }

    /// The SHA-256 of `extensions.persistedQuery`; nil if there is none.
    private static func persistedName(_ request: JSONOutline) throws(NotReadReason) -> String? {
        guard let extensions = request["extensions"], let names = extensions.names else { return nil }
        // Some servers read names in any case.
        let meant = names.filter { $0.lowercased().contains("persisted") }
        guard !meant.isEmpty else { return nil }
        guard meant == ["persistedQuery"], let persisted = extensions["persistedQuery"],
            persisted.names?.sorted() == ["sha256Hash", "version"], persisted["version"]?.integer == 1,
            let digest = persisted["sha256Hash"]?.text
        else { throw .elsewhere }
        return digest
    }
}
