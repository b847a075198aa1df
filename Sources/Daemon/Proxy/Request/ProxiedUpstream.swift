import Basics
package import CachePolicy
package import HTTPSemantics
import HTTPServer
package import Mapping
package import Settings
package import Store
import Synchronization
import Upstream

/// One upstream on the request path: its settings, compiled for quick use; immutable, shared by all threads.
///
/// A request has one from its start to its end. What is made by its rules, such as a response in memory, is for requests with the
/// same one. What is known of the upstream whatever its rules are has `storeKey`, which is the same in every configuration.
package final class ProxiedUpstream: Sendable {
    package let settings: Configuration.Upstream
    /// The daemon's own settings, without its upstreams.
    let daemon: Configuration
    /// Distinguishes it from every other of this process, also from the same upstream with other settings.
    let number = UInt32(truncatingIfNeeded: ProxiedUpstream.lastNumber.add(1, ordering: .relaxed).newValue)
    private static let lastNumber = Atomic(0)
    package let rules: CompiledUpstream
    private let origin: String
    let targetNormaliser: TargetNormaliser
    package let principal: PrincipalFields
    package let context: ContextFields
    let cors: CORS
    package let policySettings: CachePolicySettings
    package let mapper: DocumentMapper
    /// Its id, here and in the store: its name and its URL, so that no other origin's data is used.
    package let storeKey: UpstreamKey
    /// The same as bytes, for digests.
    let storeKeyBytes: [UInt8]
    /// The same with its number, for digests of what its rules are applied to; valid within this process.
    let rulesKeyBytes: [UInt8]
    private let hasOverrides: Bool
    private let hasWaitingRoutes: Bool
    /// Whether the route of some POST says that it reads; otherwise no body is looked at.
    private let hasReads: Bool
    /// The paths whose stored responses any write makes outdated, because they can show whatever the upstream has.
    let graphQLPaths: [RoutePattern]
    /// Whether any route has rules on queries; otherwise the hit path need not look.
    let hasKeyRules: Bool
    /// Each route's rules on queries, by its index; nil if it has none.
    let keyRules: [KeyRules?]
    /// The upstream's links; each request determines the address to rewrite them to.
    private let linkRewriter: LinkRewriter
    /// The names under which a proxy in front of this server serves it by HTTPS.
    private let secureHosts: [OwnHost]
    /// Fields that select no variant, because they are not sent upstream.
    private let ignoredInVary: Set<String>
    /// The names that Larder adds to `Vary` of every response, because it sends other fields to pages of other origins.
    let variesForAll: [String]
    /// Whether `Larder-View` goes upstream, which may be another Larder: no model maps anything here.
    let passesView: Bool
    /// The known fields that hold no credential in a request, and those that hold a secret in a response, by their names.
    private let harmlessInRequests: KnownFields
    private let secretInResponses: KnownFields
    /// Whether values that many messages have are free of secrets.
    private let valuesFreeOfSecrets = Memo<[UInt8], Bool>(limit: 1_024)
    /// The roles of the known request fields, by their raw values.
    let knownRoles: [FieldRole]
    /// The names of the fields in its recipe for entity tags, in lower case; nil if responses are not validated across principals.
    let tagFields: [String]?
    /// The rate-limit fields for what is served from the cache; nil if that has the fields that it was stored with.
    let newestRateLimit: NewestRateLimit?
    /// The field of the upstream's own credential, in lower case, which no client may send; nil if it has none.
    let credentialField: String?

    package var name: String { settings.name }

    init(_ rules: CompiledUpstream, of daemon: Configuration = Configuration()) {
        (self.rules, self.daemon) = (rules, daemon)
        settings = rules.settings
        let (url, prefix) = (settings.url, settings.prefix)
        origin = url.origin
        targetNormaliser = TargetNormaliser(prefix: prefix, aliases: settings.aliases, basePath: url.basePath)
        principal = PrincipalFields(settings.principal, isShared: settings.shared)
        context = ContextFields(settings.context)
        cors = CORS(origins: settings.cors)
        mapper = DocumentMapper(models: rules.models)
        storeKey = UpstreamKey(name: settings.name, url: url.canonical)
        storeKeyBytes = Array(storeKey.rawValue.utf8)
        rulesKeyBytes = storeKeyBytes + withUnsafeBytes(of: number) { Array($0) }
        keyRules = settings.routes.map { KeyRules($0.overrides.key, demanding: $0.declaration.query.keys) }
        hasKeyRules = keyRules.contains { $0 != nil }
        hasOverrides = settings.routes.contains { $0.overrides != CacheOverrides() }
        hasWaitingRoutes = settings.routes.contains { $0.patience != nil || $0.timeouts != UpstreamTimeouts.Changes() }
        hasReads = settings.routes.contains { $0.read != nil }
        graphQLPaths = settings.routes.filter { $0.read == .graphQL }
            .compactMap { try? RoutePattern($0.declaration.path) }
        linkRewriter = LinkRewriter(
            upstream: "\(url)",
            authority: "",
            prefix: prefix,
            rewritesAll: settings.rewriteLinks
        )
        secureHosts = settings.hosts.compactMap { OwnHost($0) }.filter(\.isSecure)
        let passesView = (settings.routes + settings.errors).allSatisfy { $0.body == nil }
        self.passesView = passesView
        // Larder's responses are decoded, whatever codings a client accepts; fields not sent upstream select nothing there.
        var ignored: Set = ["accept-encoding", "larder-live", "larder-position"]
        if settings.origin != .pass { ignored.insert("origin") }
        if !passesView { ignored.insert("larder-view") }
        ignoredInVary = ignored
        variesForAll = settings.cors.isEmpty ? [] : ["Origin"]
        let known = KnownField.allCases.map { (field: $0, name: Array($0.name.description.utf8)) }
        knownRoles = known.map { [principal, context] in FieldRole(of: $0.name, principal, context) }
        let harmless = known.filter { [principal] in
            principal.reason(forField: $0.name) == nil && !principal.isSecret(field: $0.name)
        }
        harmlessInRequests = KnownFields(harmless.map(\.field))
        let secret = known.filter { [principal] in principal.isSecret(responseField: $0.name) }
        secretInResponses = KnownFields(secret.map(\.field))
        tagFields = settings.validateAcross == .computed ? settings.etag.fields : nil
        // In a shared cache one principal stands for many credentials.
        newestRateLimit = settings.budget.fields == .newest && !settings.shared ? NewestRateLimit() : nil
        credentialField = settings.credential?.header.lowercased()
        var policy = CachePolicySettings()
        policy.isShared = settings.shared
        policy.addsCredential = settings.credential != nil
        policy.targets = settings.targets
        policy.storesPartialContent = true
        policy.heuristicMaximum = settings.heuristic.seconds
        policySettings = policy
    }

    // MARK: Rules

    /// The path for matching routes, from a path and query as they go upstream.
    package func route(ofURL url: String) -> String {
        // By bytes, because every miss does this, and by characters it takes ten times as long.
        String(Substring(url.beforeQuery.utf8.dropFirst(settings.url.basePath.utf8.count)))
    }

    /// The caching settings for a retrieval of this path and query.
    ///
    /// - Parameter method: GET, or POST for one that reads.
    func overrides(_ method: String = "GET", for route: String, query: String?) -> CacheOverrides {
        hasOverrides ? rules.overrides(method: method, path: route, query: query) : CacheOverrides()
    }

    /// What a request reads by, if it is a POST that may read; nil for any other.
    package func reading(_ request: IncomingRequest) -> ReadingPost? {
        guard hasReads, request.message.method == "POST" else { return nil }
        return readingPost(to: request)
    }

    /// What a POST to the target of a request reads by; nil if it is a write.
    func readingPost(to request: IncomingRequest) -> ReadingPost? {
        rules.reading(path: request.route, query: request.query)
    }

    /// The same by a path and query as they go upstream.
    package func overrides(ofURL url: String) -> CacheOverrides {
        guard hasOverrides else { return CacheOverrides() }
        return overrides(CacheKey.method(ofURL: url), for: route(ofURL: url), query: Self.query(ofURL: url))
    }

    /// How long a request waits: the client's patience, and the limits that differ from those of the upstream.
    func waiting(for request: ProxyRequest) -> (patience: Duration, timeouts: UpstreamTimeouts.Changes) {
        guard hasWaitingRoutes else { return (settings.patience, UpstreamTimeouts.Changes()) }
        let query = Self.query(ofURL: request.target)
        let route = rules.rule(method: request.sentMethod, path: request.route, query: query)
        return (route?.patience ?? settings.patience, route?.timeouts ?? UpstreamTimeouts.Changes())
    }

    /// A response's policy with the configuration applied.
    package func applying(_ policy: StoredPolicy, _ route: CacheOverrides) -> StoredPolicy {
        var policy = policy.applying(route, freshUnsaid: settings.freshUnsaid)
        if policy.staleIfError < 0, settings.staleIfError < .forever {
            policy.staleIfError = settings.staleIfError.components.seconds
        }
        return policy
    }

    func bodyMatch(_ request: ProxyRequest, status: Int, fields: @autoclosure () -> Fields)
        -> CompiledUpstream.BodyMatch?
    {
        bodyMatch(request.sentMethod, request.route, url: request.target, status: status, fields: fields())
    }

    func bodyMatch(_ method: String, _ route: String, url: String, status: Int, fields: @autoclosure () -> Fields)
        -> CompiledUpstream.BodyMatch?
    {
        if passesView { return nil }
        let (query, type) = (Self.query(ofURL: url), Self.mediaType(fields()))
        return rules.body(RouteSubject(method: method, path: route, query: query, status: status, contentType: type))
    }

    /// The mapped view of a response; nil if no route maps it.
    func mapped(_ response: CachedResponse, body: [UInt8], known: [BoundObject: [UInt8]]) -> MappedBody? {
        let (url, status, fields) = (response.key.url, response.status, response.fields)
        let method = CacheKey.method(ofURL: url)
        guard status != 206, isJSON(fields),
            let match = bodyMatch(method, route(ofURL: url), url: url, status: status, fields: fields)
        else { return nil }
        let mapped = mapper.map(body, as: match.rule, in: match.context(url: url, fields: fields), known: known)
        return mapped.isMapped ? mapped : nil
    }

    /// The names that Larder adds to `Vary` of a response: the fields by which it selects what it serves itself.
    ///
    /// The views of a response differ if a route has a model for it, or if links are rewritten.
    ///
    /// - Parameter url: path and query as they go upstream.
    func variesBy(_ method: String, url: String, status: Int, fields: @autoclosure () -> Fields) -> [String] {
        // A 304 stands for the 200 that the client has.
        let status = status == 304 ? 200 : status
        let hasViews =
            settings.rewriteLinks
            || !passesView && bodyMatch(method, route(ofURL: url), url: url, status: status, fields: fields()) != nil
        return (hasViews ? ["Larder-View"] : []) + variesForAll
    }

    /// All names that Larder may add to `Vary` of the upstream's responses.
    package var ownInVary: [String] { (settings.rewriteLinks || !passesView ? ["Larder-View"] : []) + variesForAll }

    /// The query after the question mark, if any, without the digest of a body.
    package static func query(ofURL url: String) -> String? {
        url.utf8.firstIndex(of: UInt8(ascii: "?")).map { mark in
            String(Substring(url.utf8[url.utf8.index(after: mark)...].prefix { $0 != UInt8(ascii: "#") }))
        }
    }

    /// The media type of a response, in lower case and without parameters.
    package static func mediaType(_ fields: Fields) -> String? {
        fields[.contentType].map { type in
            String(decoding: FieldSyntax.lowercased(FieldSyntax.essence(of: type)), as: UTF8.self)
        }
    }

    /// The variant of a response for its request; nil if no request will ever match.
    ///
    /// The fields in `Vary` select, except those in the key already (the principal's fields) and those not sent upstream (Larder
    /// decodes, whatever codings a client accepts). A credential that is not in the key, such as `Authorization` with `shared:
    /// true`, must not be stored for comparison (law 4), so no request matches. Its absence can be stored.
    func selection(_ policy: ResponsePolicy, isJSON: Bool, route: CacheOverrides, request: Fields) -> VarySelection? {
        // `Vary: *` means that no field selects the response; a forced route ignores that.
        let isForced = route.cache == .force && StatusFacts.takesRouteLifetime(Int(policy.stored.status))
        var selecting: [String]
        switch policy.vary {
        case .any where isForced: selecting = []
        case .any: return nil
        case .fields(let names): selecting = names
        }
        if !selecting.isEmpty {
            let ignored = ignoredInVary.union(route.vary.ignore.map { $0.lowercased() })
            selecting.removeAll { ignored.contains($0) || principal.reason(forField: Array($0.utf8)) != nil }
            guard !selecting.contains(where: { request.contains($0) && principal.isSecret(field: Array($0.utf8)) })
            else { return nil }
        }
        if policy.isForSameOtherFields { selecting.append(OtherFields.name) }
        if !isJSON, request.contains(.larderJsonOnly) { selecting.append(JSONOnly.name) }
        if policy.hasFixedCoding { selecting.append("accept-encoding") }
        if selecting.isEmpty { return VarySelection.none }
        return VarySelection(.fields(selecting.sorted()), request: request)
    }

    /// Whether bodies stay in their coding where the upstream says `no-transform`: only what is not coded can be mapped.
    var keepsFixedCodings: Bool { settings.keepsFixedCodings && settings.models.isEmpty && !settings.rewriteLinks }

    func isJSON(_ fields: Fields) -> Bool {
        guard let type = fields[.contentType], !fields.isContentCoded else { return false }
        return FieldSyntax.essence(of: type).withUnsafeBytes { essence in
            FieldSyntax.equalsIgnoringCase(essence, "application/json")
                || FieldSyntax.equalsIgnoringCase(.init(rebasing: essence.suffix(5)), "+json")
        }
    }

    // MARK: Requests

    package func url(of target: String) -> String { origin + target }

    /// Why an unsafe request is not sent; nil if it is.
    func refusesWrite(_ request: ProxyRequest) -> ProblemDocument? {
        if let credential = settings.credential, !credential.writes {
            return .writesRefused(request.message.method, upstream: name)
        }
        if Preconditions(fields: request.message.fields, now: 0).matchesOwnTag { return .ownTagInCondition }
        return nil
    }

    /// Rewrites the links in a response's fields to the address that a client used; returns whether there were any.
    @discardableResult
    func rewriteLinks(in fields: inout Fields, for base: ClientAuthority) -> Bool {
        guard linkRewriter.concerns(fields) else { return false }
        let former = fields
        linkRewriter(for: base).rewrite(&fields)
        return fields != former
    }

    func linkRewriter(for base: ClientAuthority) -> LinkRewriter {
        linkRewriter.leading(to: base.authority, by: scheme(for: base))
    }

    /// The scheme by which a client has used an address: `http`, unless a proxy serves the name by HTTPS according to `hosts:`.
    func scheme(for base: ClientAuthority) -> String {
        guard !secureHosts.isEmpty, let authority = Authority(base.authority) else { return "http" }
        return secureHosts.contains { $0.isSecure(for: authority) } ? "https" : "http"
    }

    /// Adds the fields that a page of an allowed origin needs to read the response; `variesForAll` contains `Origin`.
    func addCORS(to fields: inout Fields, for request: Fields) {
        guard request.contains(.origin), let origin = request[first: "origin"], cors.allows(origin) else { return }
        CORS.removeFields(from: &fields)
        fields.lines += cors.fields(for: origin).lines
    }
}

/// Secrets in fields. Every miss asks of all fields, so what can be known of names and frequent values is.
extension ProxiedUpstream {
    /// Whether the fields of a response hold no secret, and nothing that a digest on disk could be confused with.
    func areFreeOfSecrets(_ fields: Fields) -> Bool {
        fields.allSatisfy { line in
            let isSecret =
                line.known.map(secretInResponses.contains) ?? principal.isSecret(responseField: Array(line.name))
            return !isSecret && !line.value.contains(0) && isFreeOfSecrets(line) { principal.holdsSecret($0) }
        }
    }

    /// Whether a field of a request holds no credential.
    func isWithoutCredential(_ line: Fields.Line) -> Bool {
        guard let known = line.known, harmlessInRequests.contains(known) else { return false }
        return isFreeOfSecrets(line) { !principal.secretsOfURLs(in: $0).isEmpty }
    }

    /// Whether the value of a field whose name is harmless holds no secret.
    private func isFreeOfSecrets(_ line: Fields.Line, _ holdsSecret: (Field) -> Bool) -> Bool {
        guard line.value.contains(where: PrincipalFields.mayBeOfSecret) else { return true }
        guard line.isOne(of: Self.frequent), line.value.count <= 128 else { return !holdsSecret(line.field) }
        return valuesFreeOfSecrets.value(for: Array(line.value)) { !holdsSecret(line.field) }
    }

    /// The fields whose values many messages have; none of them may hold the address of reports.
    private static let frequent: KnownFields = [
        .cacheControl, .contentType, .accept, .acceptEncoding, .acceptLanguage, .userAgent,
    ]
}

extension CompiledUpstream.BodyMatch {
    /// What the response can show: a list shows nothing about the members that it omits.
    var kind: Observation.Kind { rule.isList ? .list : .detail }

    /// The context of the body, from which identities and properties may be taken.
    func context(url: String, fields: Fields) -> MappingContext {
        // Of several lines the first counts; a field used for identities never occurs twice.
        let values = Dictionary(fields.lines.lazy.map { ($0.lowercasedName, $0.text) }) { first, _ in first }
        return MappingContext(url: url, captures: captures, bound: bound, fields: values)
    }
}

extension StoreConfiguration {
    /// Creates the configuration of a daemon's store, whose file is at `path`.
    package init(_ settings: Configuration, path: String, _ upstreams: [ProxiedUpstream]) {
        self.init(
            path: path,
            maximumFileBytes: Int64(settings.store.maximumSize),
            batchDelay: settings.store.batchDelay,
            queueBytes: settings.store.queueSize,
            objectLimit: settings.limits.objects,
            readers: settings.store.readers,
            lag: ResponseLag().stored,
            changes: Int64(settings.store.changes),
            models: Self.models(of: upstreams)
        )
        lags = Self.lags(of: upstreams)
        group = settings.store.group
        #if DEBUG
            commitStep = CommitGate.step()
        #endif
    }

    /// The models of each upstream, by its key.
    package static func models(of upstreams: [ProxiedUpstream]) -> [UpstreamKey: Models] {
        Dictionary(uniqueKeysWithValues: upstreams.map { ($0.storeKey, $0.rules.models) })
    }

    /// How far the responses of each upstream may lag, by its key.
    static func lags(of upstreams: [ProxiedUpstream]) -> [UpstreamKey: Lag] {
        Dictionary(uniqueKeysWithValues: upstreams.map { ($0.storeKey, $0.settings.lag.stored) })
    }
}
