import Store

/// Memory in which a worker lines up the parts of a request's key, kept from request to request.
struct RequestScratch {
    private var credentials: [UInt8] = []
    private var contextLines: [UInt8] = []
    private var url: [UInt8] = []
    /// The canonical contexts of field lines met before: there are few, and they are sorted and normalised once.
    private var contexts: [Digest128: [UInt8]] = [:]
    private var context: [UInt8] = []

    /// The URLs that targets met before are known by, where routes take several spellings of a query for one.
    private var urls: [Digest128: [UInt8]] = [:]

    private static let contextLimit = 1_024
    /// At most 8 KiB each, and rarely more than 100 bytes.
    private static let urlLimit = 1_024

    /// Finds the credentials and the context of a request; false where its key takes more than putting bytes together.
    mutating func read(_ request: borrowing RequestHead, _ upstream: Upstream) -> Bool {
        guard TargetNormaliser.isPlain(request.path) else { return false }
        if let query = request.query {
            if query.contains(0x25) || upstream.principal.mayHaveParameter(in: query) { return false }
        }
        credentials.removeAll(keepingCapacity: true)
        contextLines.removeAll(keepingCapacity: true)
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
            if upstream.principal.has(field: field.name) { Self.append(field, to: &credentials) }
            if upstream.context.isRelevant(field.name, field.value) { Self.append(field, to: &contextLines) }
        }
        // Two lines are one list, in which one that counts as none alone may count.
        return request.count(of: .accept) <= 1
    }

    private static func append(_ field: FieldView, to lines: inout [UInt8]) {
        for byte in field.name { lines.append(asciiLowercased(byte)) }
        lines.append(0x3A)
        lines.append(contentsOf: field.value)
        lines.append(0x0A)
    }

    /// A digest of the credentials that is good within this process; nil for an anonymous request.
    func credentialsDigest(_ upstream: Upstream, _ hasher: KeyHasher) -> Digest128? {
        credentials.isEmpty ? nil : Principals.quickDigest(credentials, upstream, hasher)
    }

    /// The digest of the request's key.
    mutating func digest(
        _ request: borrowing RequestHead,
        _ upstream: Upstream,
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
        _ upstream: Upstream,
        _ principal: PrincipalID,
        _ url: UnsafeRawBufferPointer,
        _ hasher: KeyHasher
    ) -> Digest128 {
        upstream.nameBytes.withUnsafeBytes { name in
            context.withUnsafeBytes { context in
                hasher.digest(upstream: name, principal: principal, context: context, url: url)
            }
        }
    }

    /// The URL under a route that may have a word on its query: worked out once for each target.
    private mutating func findURL(_ request: borrowing RequestHead, _ upstream: Upstream, _ hasher: KeyHasher) {
        let target = upstream.nameBytes.withUnsafeBytes { name in
            hasher.digest(
                upstream: name,
                principal: -2,
                context: UnsafeRawBufferPointer(start: nil, count: 0),
                url: request.target
            )
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

    private mutating func findContext(_ request: borrowing RequestHead, _ upstream: Upstream, _ hasher: KeyHasher) {
        if contextLines.isEmpty {
            context.removeAll(keepingCapacity: true)
            return
        }
        let digest = Principals.quickDigest(contextLines, upstream, hasher)
        if let known = contexts[digest] {
            context = known
            return
        }
        context = Array(upstream.context.canonical(request.owned().fields).utf8)
        if contexts.count >= Self.contextLimit { contexts.removeAll() }
        contexts[digest] = context
    }
}
