package import CachePolicy
package import HTTPSemantics
import HTTPServer
package import Mapping
package import Settings
import Store
import Upstream

/// One upstream as the request path needs it: its settings compiled into things that can be asked quickly.
///
/// Immutable, shared by all threads.
package final class ProxiedUpstream: Sendable {
    let index: Int
    package let settings: Configuration.Upstream
    package let rules: CompiledUpstream
    let normaliser: TargetNormaliser
    package let principal: PrincipalFields
    let context: ContextFields
    package let cors: CORS
    package let policySettings: CachePolicySettings
    package let mapper: DocumentMapper
    /// How the store names it, so that nothing of another origin is ever taken for its own.
    package let storeKey: String
    /// The same as bytes, for digests.
    let storeKeyBytes: [UInt8]
    /// Whether any route says something about caching.
    private let hasOverrides: Bool
    /// Whether any route takes some spellings of a query for one; where none does, the hit path need not look.
    let hasKeyRules: Bool
    /// What each route says of the spelling of queries, by its index; nil where it says nothing.
    private let keyRules: [KeyRules?]
    /// Links as they lead to the upstream; where they shall lead instead is the request's to say.
    private let links: LinkRewriter
    /// The names under which a proxy in front of this server serves it by HTTPS.
    private let secureHosts: [OwnHost]
    /// Fields that select no variant, because the upstream is not sent them.
    private let ignoredInVary: Set<String>
    /// The fields by which Larder itself chooses what it sends, for `Vary`.
    package let variesBy: [String]
    /// Whether `Larder-View` goes upstream, where it means something if the upstream is a Larder: nothing here maps anything.
    let passesView: Bool
    /// The roles of the known request fields, by their raw values.
    let knownRoles: [FieldRole]

    package var name: String { settings.name }

    package init(index: Int, _ rules: CompiledUpstream) {
        self.index = index
        self.rules = rules
        settings = rules.settings
        normaliser = TargetNormaliser(prefix: settings.prefix, basePath: settings.url.basePath)
        principal = PrincipalFields(settings.principal, isShared: settings.shared)
        context = ContextFields(settings.context)
        cors = CORS(origins: settings.cors)
        mapper = DocumentMapper(models: rules.models)
        storeKey = settings.storeKey
        storeKeyBytes = Array(storeKey.utf8)
        keyRules = settings.routes.map { KeyRules($0.overrides.key) }
        hasKeyRules = keyRules.contains { $0 != nil }
        hasOverrides = settings.routes.contains { $0.overrides != CacheOverrides() }
        links = LinkRewriter(upstream: settings.url.description, authority: "", prefix: settings.prefix)
        secureHosts = settings.hosts.compactMap { OwnHost($0) }.filter(\.isSecure)
        let passesView = (settings.routes + settings.errors).allSatisfy { $0.body == nil }
        self.passesView = passesView
        // What Larder answers is decoded, whatever codings a client takes; what does not go upstream selects nothing there.
        var ignored: Set = ["accept-encoding", "larder-live"]
        if settings.origin != .pass { ignored.insert("origin") }
        if !passesView { ignored.insert("larder-view") }
        ignoredInVary = ignored
        variesBy = ["Larder-View", "Larder-Live"] + (settings.cors.isEmpty ? [] : ["Origin"])
        knownRoles = FieldRole.known(principal, context)
        var policy = CachePolicySettings()
        policy.isShared = settings.shared
        policy.addsCredential = settings.credential != nil
        policy.targets = settings.targets
        policy.storesPartialContent = true
        policy.heuristicMaximum = settings.heuristic.seconds
        policySettings = policy
    }

    // MARK: Rules

    /// The path that routes are matched against, from a path and query as they go upstream.
    package func route(ofURL url: String) -> String {
        // By bytes: every miss asks, and by characters it takes ten times as long.
        String(Substring(url.beforeQuery.utf8.dropFirst(settings.url.basePath.utf8.count)))
    }

    /// What the configuration says about the caching of responses to a retrieval of this path and query.
    func overrides(for route: String, query: String?) -> CacheOverrides {
        hasOverrides ? rules.overrides(method: "GET", path: route, query: query) : CacheOverrides()
    }

    /// The URL in the cache key of a normalised target: credentials redacted, spelled as its route says.
    func keyURL(of target: TargetNormaliser.Target) -> [UInt8] {
        let url = principal.redacted(target: target.key)
        guard hasKeyRules, url.contains(0x3F) else { return url }
        let route = String(decoding: target.routePath, as: UTF8.self)
        guard let match = rules.route(method: "GET", path: route, status: nil), let rules = keyRules[match.index] else {
            return url
        }
        return rules.applied(to: url)
    }

    /// The path, without query, by which the responses to a target at the upstream are stored.
    func keyPath(of target: String) -> String {
        let path = TargetNormaliser.keyPath(of: target)
        // Only a parameter of the path can hold anything to hide.
        guard path.utf8.contains(0x3B) else { return path }
        return String(decoding: principal.redacted(target: Array(path.utf8)), as: UTF8.self)
    }

    /// The same for a path and query as they go upstream.
    package func overrides(ofURL url: String) -> CacheOverrides {
        hasOverrides ? overrides(for: route(ofURL: url), query: Self.query(ofURL: url)) : CacheOverrides()
    }

    /// The upstream's word on a response, with the configuration laid over it.
    package func applying(_ policy: StoredPolicy, _ route: CacheOverrides) -> StoredPolicy {
        var policy = policy.applying(route)
        if policy.staleIfError < 0, settings.staleIfError < .forever {
            policy.staleIfError = settings.staleIfError.components.seconds
        }
        return policy
    }

    /// What the routes say of the body of a response to a request; nil where they say nothing.
    func bodyMatch(_ request: ProxyRequest, status: Int, fields: Fields) -> CompiledUpstream.BodyMatch? {
        bodyMatch(request.message.method, request.route, url: request.target, status: status, fields: fields)
    }

    /// What the routes say of a response's body.
    ///
    /// - Parameters:
    ///   - route: the path that routes are matched against.
    ///   - url: path and query.
    func bodyMatch(
        _ method: String,
        _ route: String,
        url: String,
        status: Int,
        fields: Fields
    ) -> CompiledUpstream.BodyMatch? {
        rules.body(
            RouteSubject(
                method: method,
                path: route,
                query: Self.query(ofURL: url),
                status: status,
                contentType: Self.mediaType(fields)
            )
        )
    }

    /// The mapped view of a response; nil where no route maps it.
    ///
    /// - Parameter known: what is shown in the place of bare identities.
    func mapped(_ response: CachedResponse, body: [UInt8], known: [ObjectName: [UInt8]]) -> MappedBody? {
        let (url, fields) = (response.key.url, response.fields)
        guard response.status != 206, isJSON(fields),
            let match = bodyMatch("GET", route(ofURL: url), url: url, status: response.status, fields: fields)
        else { return nil }
        let mapped = mapper.map(body, as: match.rule, in: match.context(url: url, fields: fields), known: known)
        return mapped.isMapped ? mapped : nil
    }

    /// What follows the question mark; nil without one.
    package static func query(ofURL url: String) -> String? {
        url.utf8.firstIndex(of: UInt8(ascii: "?")).map { String(url[url.utf8.index(after: $0)...]) }
    }

    /// The media type of a response, in lower case and without parameters.
    static func mediaType(_ fields: Fields) -> String? {
        fields[first: "content-type"].map { type in
            String(decoding: FieldSyntax.lowercased(FieldSyntax.essence(of: type[...])), as: UTF8.self)
        }
    }

    /// The variant that a response is for its request; nil where no request will ever match.
    ///
    /// What `Vary` names selects, but for what the key has already (the principal's fields) and what the upstream is not sent
    /// (Larder decodes, whatever codings a client takes). A credential that is not in the key, as `Authorization` in the shared
    /// reading, may not be noted down to compare others with (law 4): no request matches. That there was none can be noted.
    func selection(_ policy: ResponsePolicy, route: CacheOverrides, request: Fields) -> VarySelection? {
        // `Vary: *` says that nothing selects it; a route that forces it says that nothing needs to.
        let isForced = route.cache == .force && StatusFacts.takesRouteLifetime(Int(policy.stored.status))
        var selecting: [String]
        switch policy.vary {
        case .any where isForced: selecting = []
        case .any: return nil
        case .fields(let names): selecting = names
        }
        let ignored = ignoredInVary.union(route.vary.ignore.map { $0.lowercased() })
        selecting.removeAll { ignored.contains($0) || principal.reason(forField: $0.utf8) != nil }
        guard !selecting.contains(where: { principal.isSecret(field: $0.utf8) && request.contains(named: $0) }) else {
            return nil
        }
        if policy.isForAgreeing { selecting.append(OtherFields.name) }
        return VarySelection(.fields(selecting.sorted()), request: request)
    }

    /// Whether a response is an error that something older may stand in for.
    func isFailure(status: Int, fields: Fields) -> Bool {
        StatusFacts.isFailure(status) || StatusFacts.isRateLimited(status, fields)
    }

    func isJSON(_ fields: Fields) -> Bool {
        guard let type = fields[first: "content-type"], !fields.isContentCoded else { return false }
        let essence = FieldSyntax.lowercased(FieldSyntax.essence(of: type[...]))
        return essence.elementsEqual("application/json".utf8) || essence.suffix(5).elementsEqual("+json".utf8)
    }

    /// The fields as they may lie on disk: without the credentials that links and cookies carry (law 4).
    ///
    /// With `cookies: replay` the person has asked for cookies to be kept.
    func storable(_ fields: Fields) -> Fields {
        let redacted = principal.redacted(fields)
        guard settings.cookies == .replay else { return redacted }
        return Fields(zip(fields.lines, redacted.lines).map { $0.isNamed("set-cookie") ? $0 : $1 })
    }

    // MARK: Requests

    /// The absolute URL of a target at the upstream.
    package func url(of target: String) -> String { settings.url.origin + target }

    /// Why an unsafe request is not sent; nil when it is.
    package func refusesWrite(_ request: ProxyRequest) -> ProblemDocument? {
        if let credential = settings.credential, !credential.writes {
            return .writesRefused(request.message.method, upstream: name)
        }
        if Preconditions(fields: request.message.fields, now: 0).matchesOwnTag { return .ownTagInCondition }
        return nil
    }

    /// Links that lead back to the address that a client used.
    func links(for base: ClientAuthority) -> LinkRewriter {
        links.leading(to: base.authority, by: scheme(for: base))
    }

    /// The scheme by which a client has used an address: `http`, unless `hosts:` says that a proxy serves the name by HTTPS.
    func scheme(for base: ClientAuthority) -> String {
        guard !secureHosts.isEmpty, let authority = Authority(base.authority) else { return "http" }
        return secureHosts.contains { $0.isSecure(for: authority) } ? "https" : "http"
    }

    /// Adds what a page of an allowed origin needs to see the response; `variesBy` says that this depends on its origin.
    func addCORS(to fields: inout Fields, for request: Fields) {
        guard let origin = request[first: "origin"], cors.allows(origin) else { return }
        CORS.removeFields(from: &fields)
        fields.lines += cors.fields(for: origin).lines
    }
}

extension CompiledUpstream.BodyMatch {
    /// How far the response may be believed: a list says nothing of what it leaves out.
    var kind: Observation.Kind { rule.isList ? .list : .detail }

    /// What surrounds the body: identities and properties may be made of it.
    func context(url: String, fields: Fields) -> MappingContext {
        var values: [String: String] = [:]
        for line in fields.lines {
            let name = line.lowercasedName
            // Of several lines the first counts; no field that an identity is made of comes twice.
            if values[name] == nil { values[name] = line.text }
        }
        return MappingContext(url: url, captures: captures, bound: bound, fields: values)
    }
}

/// What the routes say of writes.
extension ProxiedUpstream {
    /// The object that a request's path names: by the route of its own method, else by that of retrievals.
    func bound(_ request: ProxyRequest) -> BoundObject? {
        for method in [request.message.method, "GET"] {
            let subject = RouteSubject(method: method, path: request.route, query: Self.query(ofURL: request.target))
            guard let match = rules.body(subject), match.rule.shape == .one else { continue }
            let object = rules.models.object(boundBy: match.bound, captures: match.captures, of: match.rule.model)
            if let object { return object }
        }
        return nil
    }

    /// Whether a DELETE has deleted its target, as far as its response says that it was carried out.
    func deletes(_ request: ProxyRequest, status: Int) -> Bool {
        rules.deletes(
            path: request.route,
            query: Self.query(ofURL: request.target),
            status: (200..<300).contains(status) ? status : nil
        )
    }

    /// What else a write of this path invalidates, as its route says: paths, and patterns where there are many.
    ///
    /// - Parameter status: of its response; nil before it, or where it never came.
    func invalidated(by request: ProxyRequest, status: Int?) -> (paths: [String], patterns: [InvalidationPattern]) {
        var (paths, patterns): ([String], [InvalidationPattern]) = ([], [])
        let base = settings.url.basePath
        for pattern in rules.invalidated(
            method: request.message.method,
            path: request.route,
            query: Self.query(ofURL: request.target),
            status: status.flatMap { (200..<300).contains($0) ? $0 : nil }
        ) {
            if let path = pattern.onlyPath {
                paths += [base + path] + (path == "/" ? [] : ["\(base)\(path)/"])
            } else {
                patterns.append(InvalidationPattern(upstream: storeKey, base: base, pattern: pattern))
            }
        }
        return (paths, patterns)
    }
}

/// The upstreams that are reached at one address, and who may ask for them there.
///
/// A class, because every request asks one: a value would be copied for each.
final class Site {
    /// Longest prefix first.
    let upstreams: [ProxiedUpstream]
    private let guards: [Guard]

    init(_ entrance: Entrance, upstreams all: [ProxiedUpstream]) {
        let owners = all.filter { $0.owns(entrance) }
        upstreams = (owners.isEmpty ? all.filter(\.settings.listen.isEmpty) : owners)
            .sorted { $0.settings.prefix.utf8.count > $1.settings.prefix.utf8.count }
        let listener: Guard.Listener =
            switch entrance.address {
            case .tcp(let host, let port): .tcp(host: host, port: port)
            case .unix: .unix
            }
        guards = upstreams.map { Guard(listeners: [listener], hosts: $0.settings.hosts, cors: $0.cors) }
    }

    /// Where the upstream stands whose prefix a path has; nil where none has.
    func position(for path: UnsafeRawBufferPointer) -> Int? {
        upstreams.firstIndex { upstream in
            let prefix = upstream.normaliser.prefix
            guard !prefix.isEmpty else { return true }
            guard path.count >= prefix.count, path.count == prefix.count || path[prefix.count] == 0x2F else {
                return false
            }
            return path.prefix(prefix.count).elementsEqual(prefix)
        }
    }

    /// Whether a request may be answered at all; where no upstream is meant, any one's guard says whether the host is ours.
    func check(_ request: borrowing RequestHead, at position: Int?) -> Guard.Verdict {
        guards[position ?? 0].check(Guard.Facts(request, authority: request.authority))
    }

    func cors(at position: Int?) -> CORS { guards[position ?? 0].cors }
}

extension ProxiedUpstream {
    /// Whether an address is one of its own.
    fileprivate func owns(_ entrance: Entrance) -> Bool {
        settings.listen.contains { ListenAddress($0) == entrance.configured }
    }
}
