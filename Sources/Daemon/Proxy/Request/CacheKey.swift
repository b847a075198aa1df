import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Store

/// What the cache key of a request is made of, besides the upstream: the URL, the principal's credentials, and the context.
///
/// Any request has them. `CacheKeyBuilder`, below, makes the same key of most requests without an allocation, for hits.
package struct CacheKeyParts: Sendable {
    /// Credentials in it are redacted, and what means the same is spelled the same.
    package let url: String
    package let context: String
    /// The text that `PrincipalKey` makes a principal of; nil for an anonymous request.
    package let credentials: [UInt8]?
    /// The lines that `OtherFields` makes a digest of, by which private responses are told apart; empty for none.
    let otherFields: [UInt8]
}

extension CacheKeyParts {
    /// Throws where the request brings a credential of its own to an upstream that has one.
    init(_ target: TargetNormaliser.Target, _ fields: Fields, _ upstream: ProxiedUpstream) throws(ProblemDocument) {
        guard let url = String(validating: upstream.keyURL(of: target), as: UTF8.self) else { throw .notUTF8 }
        self.url = url
        // What `Connection` names does not go upstream, and selects nothing there (RFC 9110 §7.6.1).
        let forwarded = fields.withoutHopByHop()
        context = upstream.context.canonical(forwarded)
        otherFields = OtherFields.lines(of: forwarded, upstream)
        let own = upstream.principal.canonical(target: target.key, fields: fields)
        guard let credential = upstream.settings.credential else {
            credentials = own
            return
        }
        guard !fields.lines.contains(where: { $0.isNamed(credential.header.lowercased()) }) else {
            throw .credentialRefused(upstream: upstream.name)
        }
        // What the credential shows belongs to it, whoever asks.
        credentials = Array("credential:".utf8) + credential.value.bytes + [0] + (own ?? [])
    }

    /// Those of a recorded request.
    init(recorded target: TargetNormaliser.Target, _ fields: Fields, credentials: [UInt8]?, _ upstream: ProxiedUpstream)
    {
        url = String(decoding: upstream.keyURL(of: target), as: UTF8.self)
        context = upstream.context.canonical(fields)
        self.credentials = credentials
        otherFields = []
    }
}

extension IncomingRequest {
    /// The cache key, once it is known whose request it is.
    func cacheKey(of principal: PrincipalID) -> DocumentKey {
        DocumentKey(upstream: upstream.storeKey, principal: principal, context: parts.context, url: parts.url)
    }
}

/// Builds cache keys for hits, in memory that a worker keeps from request to request.
///
/// It takes plain requests only. For those it makes the key that `CacheKeyParts` makes: `CacheKeyTests` compares them.
struct CacheKeyBuilder {
    private var credentials: [UInt8] = []
    private var contextLines: [UInt8] = []
    private var otherLines: [UInt8] = []
    private let roles = FieldRoleCache()
    private var url: [UInt8] = []
    /// The canonical contexts of field lines met before: there are few, and they are sorted and normalised once.
    private var contexts: [Digest128: [UInt8]] = [:]
    private var context: [UInt8] = []

    /// The URLs in the cache keys of targets met before, where routes take several spellings of a query for one.
    private var urls: [Digest128: [UInt8]] = [:]

    private static let contextLimit = 1_024
    /// At most 8 KiB each, and rarely more than 100 bytes.
    private static let urlLimit = 1_024

    /// Finds the credentials and the context of a request; false where its key takes more than putting bytes together.
    mutating func read(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream) -> Bool {
        // A semicolon may begin a parameter of the path.
        guard TargetNormaliser.isPlain(request.path), !request.path.contains(0x3B) else { return false }
        if let query = request.query, !isPlain(query: query, upstream) { return false }
        credentials.removeAll(keepingCapacity: true)
        contextLines.removeAll(keepingCapacity: true)
        otherLines.removeAll(keepingCapacity: true)
        if let credential = upstream.settings.credential {
            // All requests are the credential's; one that brings its own is refused elsewhere.
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
        // Two lines are one list, in which one that counts as none alone may count.
        return request.count(of: .accept) <= 1
    }

    /// Whether a query has neither an escape nor a parameter that says whose data is asked for.
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

    /// A digest of the credentials that is good within this process; nil for an anonymous request.
    func credentialsDigest(_ upstream: ProxiedUpstream, _ hasher: KeyHasher) -> Digest128? {
        credentials.isEmpty ? nil : PrincipalResolver.quickDigest(credentials, upstream, hasher)
    }

    /// The digest of the fields that are neither in the key nor known to be harmless; nil for none.
    func otherFieldsDigest(_ hasher: KeyHasher) -> Digest128? {
        otherLines.isEmpty ? nil : hasher.digest(otherLines)
    }

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
        if prefix == 0, base.isEmpty {
            return digest(upstream, principal, request.target, hasher)
        }
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

    /// The URL under a route that may have a word on its query: worked out once for each target.
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
        // A path is plain here, and a query has no escapes; what is refused all the same is nobody's, and so is a stream.
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
        let digest = PrincipalResolver.quickDigest(contextLines, upstream, hasher)
        if let known = contexts[digest] {
            context = known
            return
        }
        context = Array(upstream.context.canonical(request.owned().fields).utf8)
        if contexts.count >= Self.contextLimit { contexts.removeAll() }
        contexts[digest] = context
    }
}

/// What a route says of the spellings of a query: which of them are one (`key:` in the config).
///
/// Responses are stored under the URL that this makes; upstream goes what the client wrote.
struct KeyRules: Sendable, Equatable {
    private let sorts: Bool
    private let ignored: [Glob]

    /// Nil where the route says nothing.
    init?(_ key: CacheOverrides.Key) {
        guard key != CacheOverrides.Key() else { return nil }
        sorts = key.sort
        ignored = key.ignore.map { Glob($0) }
    }

    /// The URL with the ignored parameters gone and the others in the order of their names.
    ///
    /// Parameters of one name keep their order, which many servers heed. With the last parameter the `?` goes too.
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
            // The sort of the standard library keeps the order of equals, but does not promise to.
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
    /// What stands between the stars.
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
        // The leftmost place for each piece leaves most for those that follow.
        for piece in pieces[1..<(pieces.count - 1)] where !piece.isEmpty {
            guard let place = rest.firstRange(of: piece) else { return false }
            rest = rest[place.upperBound...]
        }
        return true
    }
}
