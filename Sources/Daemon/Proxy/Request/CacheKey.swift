import CachePolicy
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
import Store

/// The parts of a cache key besides the upstream: the URL, the principal's credentials, and the context.
///
/// Any request has them. For hits, `CacheKeyDigester` below digests the same key of most requests without an allocation.
package struct CacheKeyParts: Sendable {
    /// The URL with redacted credentials, in its canonical spelling.
    package let url: String
    package let context: String
    /// The text from which `PrincipalKey` makes a principal; nil for an anonymous request.
    package let credentials: [UInt8]?
    /// The request fields that are neither in the key nor known to be harmless.
    ///
    /// By their digest, `OtherFields` selects among the private responses under one key.
    let otherFields: [UInt8]
}

extension CacheKeyParts {
    /// Throws if the request has a credential of its own for an upstream that has one.
    init(_ target: TargetNormaliser.Target, _ fields: Fields, _ upstream: ProxiedUpstream) throws(ProblemDocument) {
        guard let url = String(validating: upstream.keyURL(of: target), as: UTF8.self) else { throw .notUTF8 }
        self.url = url
        // Fields that `Connection` names do not go upstream, and select nothing there (RFC 9110 §7.6.1).
        let forwarded = fields.withoutHopByHop()
        context = upstream.context.canonical(forwarded)
        otherFields = OtherFields.lines(of: forwarded, upstream)
        let own = upstream.principal.canonical(target: target.key, fields: fields)
        guard let credential = upstream.settings.credential else {
            credentials = own
            return
        }
        guard !fields.lines.contains(where: { $0.isNamed(credential.header.lowercased()) })
        else { throw .credentialRefused(upstream: upstream.name) }
        // Responses to the credential belong to its principal, whoever the client is.
        credentials = Array("credential:".utf8) + credential.value.bytes + [0] + (own ?? [])
    }

    /// The parts for a recorded request.
    init(recorded target: TargetNormaliser.Target, _ fields: Fields, credentials: [UInt8]?, _ upstream: ProxiedUpstream)
    {
        url = String(decoding: upstream.keyURL(of: target), as: UTF8.self)
        context = upstream.context.canonical(fields)
        self.credentials = credentials
        otherFields = []
    }
}

extension IncomingRequest {
    func cacheKey(of principal: PrincipalID) -> CacheKey {
        CacheKey(upstream: upstream.storeKey, principal: principal, context: parts.context, url: parts.url)
    }
}

extension ProxiedUpstream {
    /// The URL in the cache key of a normalised target: credentials redacted, spelled by its route's rules.
    func keyURL(of target: TargetNormaliser.Target) -> [UInt8] {
        let url = principal.redacted(target: target.key)
        guard hasKeyRules, url.contains(0x3F) else { return url }
        let route = String(decoding: target.routePath, as: UTF8.self)
        guard let match = rules.route(method: "GET", path: route, status: nil), let rules = keyRules[match.index]
        else { return url }
        return rules.applied(to: url)
    }

    /// The path, without query, under which responses to an upstream's target are stored.
    func keyPath(of target: String) -> String {
        let path = TargetNormaliser.keyPath(of: target)
        // Only a path parameter can contain a credential.
        guard path.utf8.contains(0x3B) else { return path }
        return String(decoding: principal.redacted(target: Array(path.utf8)), as: UTF8.self)
    }
}

/// Digests the cache keys of plain requests, in memory that a worker reuses from request to request.
///
/// It is a short cut for hits: what takes more than joining bytes is made as in `CacheKeyParts`, once, and remembered.
/// `CacheKeyTests` checks that both give the same key.
struct CacheKeyDigester {
    private var credentials: [UInt8] = []
    private var contextLines: [UInt8] = []
    private var otherLines: [UInt8] = []
    private let roles = FieldRoleCache()
    private var url: [UInt8] = []
    /// The canonical contexts of known field lines: there are few, and each is sorted and normalised once.
    private var contexts: [Digest128: [UInt8]] = [:]
    private var context: [UInt8] = []

    /// The URLs in the cache keys of known targets, if routes give several spellings of a query one key.
    private var urls: [Digest128: [UInt8]] = [:]

    private static let contextLimit = 1_024
    /// Each takes at most 8 KiB, and rarely more than 100 bytes.
    private static let urlLimit = 1_024

    /// Reads a request's credentials and context; returns false if its key takes more than concatenating bytes.
    mutating func read(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream) -> Bool {
        // A semicolon may begin a path parameter.
        guard TargetNormaliser.isPlain(request.path), !request.path.contains(0x3B) else { return false }
        if let query = request.query, !isPlain(query: query, upstream) { return false }
        credentials.removeAll(keepingCapacity: true)
        contextLines.removeAll(keepingCapacity: true)
        otherLines.removeAll(keepingCapacity: true)
        if let credential = upstream.settings.credential {
            // All requests use the upstream's credential; a request with its own is refused elsewhere.
            credentials.append(0x01)
            for index in 0..<request.fieldCount
            where FieldSyntax.equalsIgnoringCase(request.field(at: index).name, credential.header.lowercased().utf8) {
                return false
            }
        }
        for index in 0..<request.fieldCount {
            let field = request.field(at: index)
            let role = roles.role(of: field, upstream)
            if role.isEmpty { continue }
            if role.contains(.principal) { OtherFields.append(field.name, field.value, to: &credentials) }
            if role.contains(.context), upstream.context.isRelevant(field.name, field.value) {
                OtherFields.append(field.name, field.value, to: &contextLines)
            }
            if role.contains(.other) { OtherFields.append(field.name, field.value, to: &otherLines) }
        }
        // Two lines form one list, in which a line may count that would not count alone.
        return request.count(of: .accept) <= 1
    }

    /// Whether a query has neither an escape nor a parameter that identifies a principal.
    private func isPlain(query: UnsafeRawBufferPointer, _ upstream: ProxiedUpstream) -> Bool {
        var start = 0
        var isName = true
        for index in 0...query.count {
            let byte = index < query.count ? query[index] : 0x26
            guard byte == 0x26 || byte == 0x3B || byte == 0x3D else {
                if byte == 0x25 { return false }
                continue
            }
            if isName, index > start {
                let name = UnsafeRawBufferPointer(rebasing: query[start..<index])
                if !roles.role(of: name, .parameter, upstream).isEmpty { return false }
            }
            isName = byte != 0x3D
            start = index + 1
        }
        return true
    }

    /// A digest of the credentials, valid within this process; nil for an anonymous request.
    func credentialsDigest(_ upstream: ProxiedUpstream, _ hasher: KeyHasher) -> Digest128? {
        credentials.isEmpty ? nil : PrincipalResolver.digest(ofLines: credentials, upstream, hasher)
    }

    /// The digest of the fields that are neither in the key nor known to be harmless, if any.
    func otherFieldsDigest(_ hasher: KeyHasher) -> Digest128? { otherLines.isEmpty ? nil : hasher.digest(otherLines) }

    /// The digest of the request's key.
    mutating func digest(
        _ request: borrowing RequestHead,
        _ upstream: ProxiedUpstream,
        principal: PrincipalID,
        _ hasher: KeyHasher
    ) -> Digest128 {
        findContext(request, upstream, hasher)
        if upstream.hasKeyRules, request.query != nil {
            findURL(request, upstream, hasher)
            return url.withUnsafeBytes { digest(upstream, principal, $0, hasher) }
        }
        let prefix = upstream.normaliser.prefix.count
        let base = upstream.normaliser.basePath
        if prefix == 0, base.isEmpty { return digest(upstream, principal, request.target, hasher) }
        url.removeAll(keepingCapacity: true)
        url.append(contentsOf: base)
        url.append(contentsOf: UnsafeRawBufferPointer(rebasing: request.target[prefix...]))
        if prefix == request.path.count, base.isEmpty { url.insert(0x2F, at: 0) }
        return url.withUnsafeBytes { digest(upstream, principal, $0, hasher) }
    }

    private func digest(
        _ upstream: ProxiedUpstream,
        _ principal: PrincipalID,
        _ url: UnsafeRawBufferPointer,
        _ hasher: KeyHasher
    ) -> Digest128 {
        upstream.storeKeyBytes.withUnsafeBytes { name in
            context.withUnsafeBytes { context in
                hasher.digest(upstream: name, principal: principal, context: context, url: url)
            }
        }
    }

    /// Finds the URL for the key if routes may change the query; computed once for each target.
    private mutating func findURL(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream, _ hasher: KeyHasher) {
        let target = upstream.storeKeyBytes.withUnsafeBytes { name in
            hasher.digest(part: request.target, upstream: name)
        }
        if let known = urls[target] {
            url = known
            return
        }
        let path = Array(request.path)
        var query = request.query.map { Array($0) }
        // The path is plain and the query has no escapes here. Refused targets and streams get no key.
        let isLive = !LiveMode.takeParameters(from: &query).isEmpty
        let normalised = isLive ? nil : try? upstream.normaliser.normalise(path: path, query: query)
        url = normalised.map { upstream.keyURL(of: $0) } ?? []
        if urls.count >= Self.urlLimit { urls.removeAll() }
        urls[target] = url
    }

    private mutating func findContext(
        _ request: borrowing RequestHead,
        _ upstream: ProxiedUpstream,
        _ hasher: KeyHasher
    ) {
        if contextLines.isEmpty {
            context.removeAll(keepingCapacity: true)
            return
        }
        let digest = PrincipalResolver.digest(ofLines: contextLines, upstream, hasher)
        if let known = contexts[digest] {
            context = known
            return
        }
        context = Array(upstream.context.canonical(request.owned().fields).utf8)
        if contexts.count >= Self.contextLimit { contexts.removeAll() }
        contexts[digest] = context
    }
}

/// A route's rules on which spellings of a query are equal (`key:` in the config).
///
/// Responses are stored under the resulting URL; the query goes upstream as the client wrote it.
struct KeyRules: Sendable, Equatable {
    private let sorts: Bool
    private let ignored: [Glob]

    /// Nil if the route has no rules.
    init?(_ key: CacheOverrides.Key) {
        guard key != CacheOverrides.Key() else { return nil }
        sorts = key.sort
        ignored = key.ignore.map { Glob($0) }
    }

    /// The URL without the ignored parameters, and with the others in order of their names.
    ///
    /// Parameters of one name keep their order, which many servers heed. The `?` is dropped with the last parameter.
    ///
    /// - Parameter url: path and query, escapes normalised, credentials redacted.
    func applied(to url: [UInt8]) -> [UInt8] {
        guard let mark = url.firstIndex(of: 0x3F), mark + 1 < url.count else { return url }
        let pieces = url[(mark + 1)...].split(separator: 0x26, omittingEmptySubsequences: false)
        var parameters = pieces.enumerated().map { (place: $0.offset, name: Self.name(of: $0.element)) }
        if !ignored.isEmpty {
            parameters.removeAll { parameter in
                !pieces[parameter.place].isEmpty && ignored.contains { $0.matches(parameter.name) }
            }
        }
        guard !parameters.isEmpty else { return Array(url[..<mark]) }
        if sorts {
            // The standard library's sort is stable, but does not promise to be.
            parameters.sort { one, other in
                one.name == other.name ? one.place < other.place : one.name.lexicographicallyPrecedes(other.name)
            }
        }
        return Array(url[...mark]) + Array(parameters.map { pieces[$0.place] }.joined(separator: [0x26]))
    }

    private static func name(of parameter: ArraySlice<UInt8>) -> [UInt8] {
        TargetNormaliser.unescaped(parameter.prefix { $0 != 0x3D })
    }
}

/// A pattern of names in which `*` stands for any text; case matters.
struct Glob: Sendable, Equatable {
    /// The texts between the stars.
    private let pieces: [[UInt8]]

    init(_ pattern: String) {
        pieces = pattern.utf8.split(separator: 0x2A, omittingEmptySubsequences: false).map { Array($0) }
    }

    func matches(_ name: [UInt8]) -> Bool {
        guard pieces.count > 1, let first = pieces.first, let last = pieces.last else { return name == pieces.first }
        guard name.count >= first.count + last.count, name.starts(with: first),
            name.suffix(last.count).elementsEqual(last)
        else { return false }
        var rest = name[first.count..<(name.count - last.count)]
        // The leftmost match of each piece leaves most for the pieces that follow.
        for piece in pieces[1..<(pieces.count - 1)] where !piece.isEmpty {
            guard let place = rest.firstRange(of: piece) else { return false }
            rest = rest[place.upperBound...]
        }
        return true
    }
}
