import CachePolicy
import EventLoops
package import HTTPSemantics
import HTTPServer
import Logging
import Mapping
import Settings
package import Store
import Upstream

/// The entity tags that an upstream gives in response to one request, by its declared recipe (`etag:`).
struct RecipeTags: Sendable {
    /// The values of the recipe's fields as they go upstream, each followed by a colon.
    private let prefix: [UInt8]

    /// Nil if the upstream's responses are not validated across principals, or if a field occurs more than once: the upstream may
    /// join its lines in any way.
    init?(_ request: ProxyRequest) {
        guard let names = request.upstream.tagFields, request.isShareable else { return nil }
        let sent = request.upstreamRequest().fields
        var prefix: [UInt8] = []
        for name in names {
            let values = sent.all(name)
            guard values.count < 2 else { return nil }
            if let value = values.first { prefix += value + [0x3A] }
        }
        self.prefix = prefix
    }

    /// What is between the quotes of the tag for a body.
    func opaque(of body: [UInt8], _ coverage: TagCoverage) -> [UInt8] {
        Array(Crypto.sha256([prefix, coverage == .minified ? JSONLayout.compact(body) : body]).hexadecimal.utf8)
    }

    /// The form in which a tag covers a body; nil if it does not follow the recipe.
    func coverage(of body: [UInt8], by tag: EntityTag) -> TagCoverage? {
        // A digest has 64 digits.
        guard tag.opaque.count == 64 else { return nil }
        return [TagCoverage.received, .minified].first { opaque(of: body, $0) == tag.opaque }
    }
}

/// A tag that a request carries because a response is stored for another principal.
package enum TagAcrossPrincipals: Sendable {
    /// One that the upstream never gave, in place of the one for a stored response: a 304 would show that it does not compare tags.
    case wrong(EntityTag, of: DocumentID)
    /// The one that the upstream gives this request's principal for the bytes of a stored response, if they are current.
    case expected(EntityTag, of: DocumentID)

    var tag: EntityTag {
        switch self {
        case .wrong(let tag, _), .expected(let tag, _): tag
        }
    }

    /// The stored response.
    var document: DocumentID {
        switch self {
        case .wrong(_, let document), .expected(_, let document): document
        }
    }
}

/// Whether an upstream's 304s, and its entity tags, can be relied on.
struct TrustAcrossPrincipals {
    /// How long the upstream is trusted after it has distinguished a wrong tag from a right one, in ns.
    private static let trial: UInt64 = 3_600_000_000_000
    /// After how many responses in a row that do not follow the recipe it is no longer used.
    private static let misfitLimit = 3

    /// Distinguishes the upstream's settings.
    let number: UInt32
    private var trustedUntil: UInt64 = 0
    private var misfits = 0
    /// The routes on which two principals had the same body where they had the same tag.
    private var agreed: Set<String> = []
    /// Of how many 304s one is compared with the whole response, on these routes.
    private static let sample = 100
    /// Whether it is used at all.
    private(set) var isUsed = true

    init(of upstream: ProxiedUpstream) { number = upstream.number }

    /// - Parameter now: in ns of the loop's clock.
    func isProved(at now: UInt64) -> Bool { now < trustedUntil }

    /// Notes the upstream's response to a wrong tag; returns whether that ends the use of the recipe.
    mutating func tried(isNotModified: Bool, now: UInt64) -> Bool {
        if !isNotModified { trustedUntil = now + Self.trial }
        return isNotModified && end()
    }

    /// Notes whether a response followed the recipe, to a request for which another's was stored that did; returns whether that ends
    /// the use of the recipe.
    mutating func noted(fits: Bool) -> Bool {
        misfits = fits ? 0 : misfits + 1
        return misfits >= Self.misfitLimit && end()
    }

    /// Whether a response must be fetched whole although a 304 has released it.
    func mustCompare(on route: String) -> Bool {
        !agreed.contains(route) || Int.random(in: 0..<Self.sample) == 0
    }

    /// Notes whether two principals had the same body with the same tag; returns whether that ends the use of tags.
    mutating func compared(isSame: Bool, on route: String) -> Bool {
        if isSame { agreed.insert(route) }
        return !isSame && end()
    }

    private mutating func end() -> Bool {
        defer { isUsed = false }
        return isUsed
    }
}

/// Validating the responses of one principal for another.
///
/// A 304 to a principal's own request, with the tag that only the current bytes have for it, says that the bytes are its own,
/// too (law 4). Until then nothing of the other's response is used but for that tag. Where the configuration says that tags stand
/// for content, whoever asks, whole responses show it: the first of each route, and then one of a hundred.
extension Fetches {
    /// Whether responses of an upstream are validated across principals.
    func validatesAcross(_ upstream: ProxiedUpstream) -> Bool {
        upstream.settings.validateAcross != .off && trust(in: upstream).isUsed
    }

    private func trust(in upstream: ProxiedUpstream) -> TrustAcrossPrincipals {
        if let known = acrossTrust[upstream.storeKey], known.number == upstream.number { return known }
        return TrustAcrossPrincipals(of: upstream)
    }

    /// The tag for a request that asks for a document as another principal has it; nil for none.
    ///
    /// - Parameter isAlone: whether nothing else is validated, so that every 304 is one to this tag.
    func acrossTag(_ expected: EntityTag, of document: DocumentID, for request: ProxyRequest, isAlone: Bool)
        -> TagAcrossPrincipals?
    {
        guard validatesAcross(request.upstream) else { return nil }
        if trust(in: request.upstream).isProved(at: loop.now) { return .expected(expected, of: document) }
        let wrong = Crypto.sha256([(0..<32).map { _ in UInt8.random(in: .min ... .max) }]).hexadecimal
        return isAlone ? EntityTag([0x22] + wrong.utf8 + [0x22]).map { .wrong($0, of: document) } : nil
    }

    /// Draws conclusions from the head of a response to a request with such a tag.
    func judgeAcross(_ head: UpstreamHead, _ fetch: RunningFetch) {
        guard let across = fetch.validation.across else { return }
        switch (across, head.status) {
        case (.wrong, 200), (.wrong, 304):
            change(fetch.request.upstream, "the upstream sends a 304 for an entity tag that it never gave") {
                $0.tried(isNotModified: head.status == 304, now: loop.now)
            }
        case (.expected, 304) where fetch.request.group == nil && !fetch.validation.isAnswered(by: head.fields):
            noteTag(fits: false, of: fetch.request.upstream)
        default: break
        }
    }

    /// Whether the response that a 304 has released is fetched whole nonetheless, because its tag must prove itself first.
    func mustCompare(_ fetch: RunningFetch) -> Bool {
        let request = fetch.request
        return request.group != nil && trust(in: request.upstream).mustCompare(on: request.routePath)
    }

    /// Compares a whole response with the one of another principal that a 304 has released.
    func compare(_ response: CachedResponse, in fetch: RunningFetch) {
        guard let document = fetch.released else { return }
        fetch.released = nil
        let (request, tag) = (fetch.request, response.validators.entityTag)
        after({ [cache] in await cache.covered(document) }) { [self] in
            guard let found = $0, let tag, tag == found.fields[first: "etag"].flatMap({ EntityTag($0) }) else { return }
            change(request.upstream, "two principals got different bodies with the same entity tag") {
                $0.compared(isSame: found.body == response.body, on: request.routePath)
            }
        }
    }

    /// Notes whether the tag of a response followed the recipe, where another principal's did.
    func noteTag(fits: Bool, of upstream: ProxiedUpstream) {
        change(upstream, "the upstream's entity tags no longer follow the recipe") { $0.noted(fits: fits) }
    }

    private func change(_ upstream: ProxiedUpstream, _ reason: String, _ change: (inout TrustAcrossPrincipals) -> Bool)
    {
        var trust = trust(in: upstream)
        let isEnd = change(&trust)
        acrossTrust[upstream.storeKey] = trust
        guard isEnd else { return }
        log.warning(
            "responses are no longer validated across principals, until the config is changed or Larder restarted",
            metadata: ["upstream": "\(upstream.name)", "reason": "\(reason)"]
        )
    }

    /// Finds out off the loop, once a response's body is in the store's hands, whether its tag covers it.
    func coverage(of response: CachedResponse, in fetch: RunningFetch) -> (@Sendable ([UInt8]) -> TagCoverage?)? {
        let upstream = fetch.request.upstream
        guard response.status == 200, validatesAcross(upstream) else { return nil }
        let tag = response.validators.entityTag
        let isCoded = response.fields.isContentCoded
        if let group = fetch.request.group {
            return { _ in tag?.isWeak == false && !isCoded ? .content(group: group) : nil }
        }
        guard let tags = RecipeTags(fetch.request) else { return nil }
        let proxy = fetch.validation.across == nil ? nil : proxy
        return { body in
            let coverage = isCoded ? nil : tag.flatMap { tags.coverage(of: body, by: $0) }
            proxy?.enqueue { $0.fetches.noteTag(fits: coverage != nil, of: upstream) }
            return coverage
        }
    }
}

/// A document whose entity tag covers its body, whoever's it is, with the bytes that were received.
private typealias CoveredResponse = (fields: Fields, body: [UInt8], coverage: TagCoverage)

extension ResponseCache {
    /// The latest response stored under a request's URL and context for whomever, of which a 304 may say that it is the request's,
    /// and the tag that the upstream then gives for it; nil if there is none.
    ///
    /// Never one that is in memory only, as every response with a secret is, and never one that repeats a credential. It may be the
    /// request's own, whose tag is sent in any case.
    func latestOfAnyone(for request: ProxyRequest) async throws(StoreError) -> (tag: EntityTag, document: DocumentID)? {
        let (key, recipe) = (request.key, RecipeTags(request))
        guard recipe != nil || request.group != nil else { return nil }
        return try await store.firstCovered(ofURL: key.url, context: key.context, upstream: key.upstream) {
            [self] document in
            guard let found = current(document), let former = found.fields[first: "etag"].flatMap({ EntityTag($0) }),
                !request.credentials.areRepeated(inBody: found.body, found.fields)
            else { return nil }
            let tag: EntityTag? =
                switch found.coverage {
                case .content(let group): group == request.group ? former : nil
                case .received, .minified:
                    recipe.flatMap { EntityTag(former.spelled(with: $0.opaque(of: found.body, found.coverage))) }
                }
            return tag.map { ($0, document.stored.id) }
        }
    }

    /// A covered document as it is by now; nil if it is gone, cannot be read, or repeats a credential.
    ///
    /// Whether it may be outdated does not matter: it counts only if the upstream says that it is not.
    fileprivate func covered(_ id: DocumentID) async -> CoveredResponse? {
        guard let found = try? await store.covered(id) else { return nil }
        return current(found)
    }

    private func current(_ found: CoveredDocument) -> CoveredResponse? {
        guard let document = current(found.stored), let fields = FieldsOnDisk.withoutDigests(document.head)
        else { return nil }
        return (fields, document.body, found.coverage)
    }

    /// The response that a 304 has released to another principal: its body, and the fields of that principal's own.
    ///
    /// These are the fields of the 304, and those that describe the body. Nil if the document is gone, or if the 304 lacks a field
    /// that the other's response had and that is each principal's own.
    func released(_ document: DocumentID, by update: Fields) async -> (fields: Fields, body: [UInt8])? {
        guard let found = await covered(document),
            ["link", "vary"].allSatisfy({ update.contains($0) || !found.fields.contains($0) })
        else { return nil }
        let isExact = found.coverage != .minified
        return (Freshening.released(found.fields, by: update, isExact: isExact), found.body)
    }
}

extension Entrance {
    /// The number of the clients that use this address, the same after a restart.
    var group: Int64 {
        let digest = Crypto.sha256([Array("\((configured ?? address).description)".utf8)])
        return digest.prefix(4).reduce(0) { $0 << 8 | Int64($1) }
    }
}

extension ProxyRequest {
    /// The path of its route in the configuration; empty for none.
    fileprivate var routePath: String {
        let query = ProxiedUpstream.query(ofURL: target)
        return upstream.routePath(method: sentMethod, path: route, query: query) ?? ""
    }
}

extension EntityTag {
    /// A tag as strong or weak as this one.
    fileprivate func spelled(with opaque: [UInt8]) -> [UInt8] {
        (isWeak ? [0x57, 0x2F] : []) + [0x22] + opaque + [0x22]
    }
}
