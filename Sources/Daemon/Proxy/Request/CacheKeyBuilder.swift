import Basics
import CachePolicy
import HTTPSemantics
import Mapping
import Settings
import Store

/// Builds the cache key of each request of a worker, in memory that it reuses.
///
/// The key is upstream, principal, context and URL. Without an allocation it reads nearly all requests: what takes more than
/// joining bytes is worked out once and remembered, or is rare.
struct CacheKeyBuilder {
    /// Path and query as they go upstream, spelled as the client did.
    private(set) var target: [UInt8] = []
    /// The canonical text of the request fields that select a representation.
    private(set) var context: [UInt8] = []
    /// The lines of the request fields that are neither in the key nor known to be harmless: see `OtherFields`.
    private(set) var otherLines: [UInt8] = []
    /// The values of the parameter that asks for a stream of events, which is no part of the key.
    private(set) var liveParameters: [String] = []
    private(set) var isLive = false

    /// The URL of the key, if it is not the target.
    private var canonicalURL: [UInt8] = []
    private var isTargetCanonical = true
    /// What identifies the principal, as it arrived; empty for an anonymous request.
    private var credentials: [UInt8] = []
    private var contextLines: [UInt8] = []

    private let roles = FieldRoleCache()
    /// The canonical contexts of known field lines: there are few, and each is sorted and normalised once.
    private var contexts = BoundedTable<Digest128, [UInt8]>(limit: 1_024)
    /// The URLs in the keys of known targets, if routes give several spellings of a query one key.
    ///
    /// Each takes at most 8 KiB, and rarely more than 100 bytes.
    private var urls = BoundedTable<Digest128, [UInt8]>(limit: 1_024)

    /// The URL with redacted credentials, in its canonical spelling.
    var url: [UInt8] { isTargetCanonical ? target : canonicalURL }

    /// Reads a request; throws the problem to respond with if it can have no key.
    mutating func read(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream, _ hasher: KeyHasher)
        throws(ProblemDocument)
    {
        credentials.empty()
        try readTarget(request, upstream, hasher)
        isLive = !liveParameters.isEmpty || request.has(.larderLive)
        try readFields(request, upstream)
        guard !contextLines.isEmpty else {
            if !context.isEmpty { context = [] }
            return
        }
        // A stream's `Accept` says more than the responses in its events depend on.
        if isLive { contextLines.append(0x0A) }
        context = contexts.value(for: Self.digest(contextLines, upstream, hasher)) { [isLive] in
            let fields = request.owned().fields.withoutHopByHop()
            return Array(upstream.context.canonical(isLive ? LiveMode.plain(fields) : fields).utf8)
        }
    }

    /// A digest of what identifies the principal, valid within this process; nil for an anonymous request.
    func credentialsDigest(_ upstream: ProxiedUpstream, _ hasher: KeyHasher) -> Digest128? {
        credentials.isEmpty ? nil : Self.digest(credentials, upstream, hasher)
    }

    /// The digest of the key, which is the same as that of a `CacheKey` with these parts.
    func digest(_ upstream: ProxiedUpstream, principal: PrincipalID, _ hasher: KeyHasher) -> Digest128 {
        upstream.storeKeyBytes.withUnsafeBytes { name in
            context.withUnsafeBytes { context in
                url.withUnsafeBytes { url in
                    hasher.digest(upstream: name, principal: principal, context: context, url: url)
                }
            }
        }
    }

    private static func digest(_ bytes: [UInt8], _ upstream: ProxiedUpstream, _ hasher: KeyHasher) -> Digest128 {
        bytes.withUnsafeBytes { bytes in
            upstream.rulesKeyBytes.withUnsafeBytes { hasher.digest(part: bytes, upstream: $0) }
        }
    }

    // MARK: The target

    private mutating func readTarget(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream, _ hasher: KeyHasher)
        throws(ProblemDocument)
    {
        if !liveParameters.isEmpty { liveParameters = [] }
        guard isPlain(request, upstream) else { return try readOddTarget(request, upstream) }
        let prefix = upstream.targetNormaliser.prefix.count
        target.empty()
        if !upstream.targetNormaliser.basePath.isEmpty {
            target.append(contentsOf: upstream.targetNormaliser.basePath)
        } else if prefix == request.path.count {
            target.append(0x2F)
        }
        target.append(contentsOf: UnsafeRawBufferPointer(rebasing: request.target[prefix...]))
        isTargetCanonical = !upstream.hasKeyRules || request.query == nil
        guard !isTargetCanonical else { return }
        canonicalURL = urls.value(for: Self.digest(target, upstream, hasher)) { [target] in
            upstream.keyURL(ofTarget: target)
        }
    }

    /// Whether a target needs no change but that of its prefix, and contains no credential.
    private func isPlain(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream) -> Bool {
        // A semicolon may begin a path parameter.
        guard TargetNormaliser.isPlain(request.path), !request.path.contains(0x3B),
            !upstream.targetNormaliser.hasAlias(request.path)
        else { return false }
        guard let query = request.query else { return true }
        var (start, isName, hasNameToWeigh) = (0, true, false)
        for index in 0...query.count {
            let byte = index < query.count ? query[index] : 0x26
            guard byte == 0x26 || byte == 0x3B || byte == 0x3D else {
                if byte == 0x25 || byte <= 0x20 || byte == 0x23 || byte == 0x7F { return false }
                continue
            }
            if isName, index > start {
                let name = UnsafeRawBufferPointer(rebasing: query[start..<index])
                let role = roles.role(of: name, .parameter, upstream)
                if role == .weighed { hasNameToWeigh = true } else if !role.isEmpty { return false }
            }
            isName = byte != 0x3D
            start = index + 1
        }
        return !hasNameToWeigh || upstream.principal.parameters(in: [0x3F] + Array(query)).isEmpty
    }

    private mutating func readOddTarget(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream)
        throws(ProblemDocument)
    {
        var query = request.query.map { Array($0) }
        liveParameters = LiveMode.takeParameters(from: &query)
        do {
            target = try upstream.targetNormaliser.normalise(path: Array(request.path), query: query)
        } catch { throw .badTarget(error.message) }
        (canonicalURL, isTargetCanonical) = (upstream.keyURL(ofTarget: target), false)
        // No field begins with a question mark.
        guard let parameters = upstream.principal.canonical(target: target, fields: Fields()) else { return }
        credentials += [0x3F] + parameters + [0x0A]
    }

    // MARK: The fields

    private mutating func readFields(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream)
        throws(ProblemDocument)
    {
        contextLines.empty()
        otherLines.empty()
        // Fields that `Connection` names do not go upstream, and select nothing there (RFC 9110 §7.6.1).
        let named = request.namesFieldsInConnection ? request.owned().fields.namedByConnection : []
        // Two lines form one list, in which a line may count that would not count alone.
        let takesAll = isLive || request.count(of: .accept) > 1
        // Responses to the upstream's credential belong to its principal, whoever the client is.
        let credential = upstream.credentialField
        if credential != nil { credentials.append(0x01) }
        for index in 0..<request.fieldCount {
            let field = request.field(at: index)
            if let credential, FieldSyntax.equalsIgnoringCase(field.name, credential.utf8) {
                throw .credentialRefused(upstream: upstream.name)
            }
            let role = roles.role(of: field, upstream)
            if role.isEmpty || isLive && LiveMode.isOfTheStream(field.name) { continue }
            if role.contains(.methodOverride) {
                throw .guarded(.methodOverride(String(decoding: field.name, as: UTF8.self)))
            }
            if role.contains(.principal) { OtherFields.append(field.name, field.value, to: &credentials) }
            if !named.isEmpty, named.contains(where: { FieldSyntax.equalsIgnoringCase(field.name, $0.utf8) }) {
                continue
            }
            if role.contains(.context), takesAll || upstream.context.isRelevant(field.name, field.value) {
                OtherFields.append(field.name, field.value, to: &contextLines)
            }
            if role.contains(.other) { OtherFields.append(field.name, field.value, to: &otherLines) }
        }
        // A stream's `Accept` counts without `text/event-stream` (`LiveMode.plain`), so the same lines may name another principal.
        if isLive, !credentials.isEmpty { credentials.append(0x02) }
    }
}

extension [UInt8] {
    /// Removes all bytes, but keeps the memory; costs nothing if there are none.
    fileprivate mutating func empty() { if !isEmpty { removeAll(keepingCapacity: true) } }
}

extension IncomingRequest {
    func cacheKey(of principal: PrincipalID) -> CacheKey {
        CacheKey(upstream: upstream.storeKey, principal: principal, context: context, url: url)
    }
}

extension ProxiedUpstream {
    /// The URL in the cache key of a target: credentials redacted, spelled by its route's rules.
    ///
    /// - Parameter method: GET, or POST for one that reads.
    func keyURL(ofTarget target: [UInt8], method: String = "GET") -> [UInt8] {
        let url = principal.redacted(target: TargetNormaliser.normalisingEscapes(target))
        guard hasKeyRules, url.contains(0x3F) else { return url }
        let text = String(decoding: target, as: UTF8.self)
        let match = rules.route(method: method, path: route(ofURL: text), query: Self.query(ofURL: text), status: nil)
        guard let rules = match.flatMap({ keyRules[$0.index] }) else { return url }
        return rules.applied(to: url)
    }

    /// The path, without query, under which responses to an upstream's target are stored.
    func keyPath(of target: String) -> String { redacted(path: TargetNormaliser.keyPath(of: target)) }

    /// The path for matching routes; captures of routes are stored, so it contains no credentials.
    func redactedRoute(ofURL url: String) -> String { redacted(path: route(ofURL: url)) }

    private func redacted(path: String) -> String {
        // Only a path parameter can contain a credential.
        guard path.utf8.contains(0x3B) else { return path }
        return String(decoding: principal.redacted(target: Array(path.utf8)), as: UTF8.self)
    }
}

/// A route's rules on which spellings of a query are equal (`key:` in the config).
///
/// Responses are stored under the resulting URL; the query goes upstream as the client wrote it.
struct KeyRules: Sendable, Equatable {
    private let sorts: Bool
    private let ignored: [Glob]
    /// The names of parameters that the route demands, which always count.
    private let demanded: Set<[UInt8]>

    /// Nil if the route has no rules.
    init?(_ key: CacheOverrides.Key, demanding parameters: some Sequence<String> = []) {
        guard key != CacheOverrides.Key() else { return nil }
        sorts = key.sort
        ignored = key.ignore.map { Glob($0) }
        demanded = Set(parameters.map { Array($0.utf8) })
    }

    /// The URL without the ignored parameters, and with the others in order of their names.
    ///
    /// Parameters of one name keep their order, which many servers heed. The `?` is dropped with the last parameter.
    ///
    /// - Parameter url: path and query, escapes normalised, credentials redacted.
    func applied(to url: [UInt8]) -> [UInt8] {
        guard let mark = url.firstIndex(of: 0x3F), mark + 1 < url.count else { return url }
        let pieces = url[(mark + 1)...].split(separator: 0x26, omittingEmptySubsequences: false)
        var parameters = pieces.enumerated().map { place, piece in
            (place: place, name: TargetNormaliser.unescaped(piece.prefix { $0 != 0x3D }))
        }
        if !ignored.isEmpty {
            parameters.removeAll { parameter in
                !pieces[parameter.place].isEmpty && !demanded.contains(parameter.name)
                    && ignored.contains { $0.matches(parameter.name) }
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
}
