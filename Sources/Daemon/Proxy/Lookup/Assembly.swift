import CachePolicy
import HTTPSemantics
import Logging
import Mapping
import Settings
import Store
import Upstream

/// The one object that a URL stands for, by its route: if no response to the URL is stored, and the upstream cannot be asked, the
/// mapped view can be made of what other responses have shown of the object.
struct Assembly {
    let object: BoundObject
    /// The model in whose form it is shown.
    let model: String

    /// Nil if the response may contain more than the object, or another selection of its members.
    init?(_ request: ProxyRequest) {
        guard !request.isPassed, request.overrides.cache != .never, MethodFacts.isCacheable(request.message.method),
            !request.key.url.utf8.contains(UInt8(ascii: "?"))
        else { return nil }
        let subject = RouteSubject(method: "GET", path: request.route, status: 200, contentType: "application/json")
        guard let match = request.upstream.rules.body(subject), match.rule.arity == .one, match.rule.envelope == nil,
            match.rule.also.isEmpty
        else { return nil }
        let models = request.upstream.rules.models
        let object = models.object(boundBy: match.bound, captures: match.captures, of: match.rule.model)
        guard let object else { return nil }
        (self.object, model) = (object, match.rule.model)
    }
}

extension ResponseCache {
    /// The mapped view of a request's object, made of what is known of it; nil if its state is not known.
    ///
    /// What is on its way to disk does not matter: a response shows its objects in others with its commit, not before. The upstream
    /// never sent this view, so it has no lifetime: its age is that of its oldest value, and it is stale from the start.
    func assembled(_ request: ProxyRequest) async throws(StoreError) -> ReadyResponse? {
        guard let assembly = Assembly(request) else { return nil }
        let found = try await store.assembled(
            assembly.object,
            as: assembly.model,
            under: request.key,
            dividedBy: request.dividedBy
        )
        // A write that could not be stored may have changed it.
        guard let found, !uncommittedWrites.mayBeNewer(than: found.start, of: request.upstream.storeKey)
        else { return nil }
        var fields = Fields()
        Rendering.describe(found.mapped, in: &fields)
        let policy = StoredPolicy.unsent(since: min(found.start / 1_000_000, seconds))
        var response = CachedResponse(
            key: request.key,
            status: 200,
            fields: fields,
            body: found.mapped.body,
            policy: aged(policy)
        )
        response.isAssembled = true
        if found.isInDoubt { response.doubts = [now] }
        return ReadyResponse(response, for: request)
    }
}

extension ProxyCore {
    /// The same, or nil if the store cannot be read.
    func assembled(_ request: ProxyRequest) async -> ReadyResponse? {
        do {
            return try await cache.assembled(request)
        } catch {
            log.storeFailed("an object could not be read", error, url: request.key.url)
            return nil
        }
    }
}

extension Fetches {
    /// Serves a client what is known of its object, because no response came; refuses the request if that is nothing, or if it asks
    /// for another view.
    ///
    /// - Parameter error: what became of the request; nil if it was not sent.
    func assemble(for relay: Relay, as use: CacheUse, _ problem: ProblemDocument, _ error: UpstreamError?) {
        let request = relay.request
        after({ [cache] in try? await cache.assembled(request) }) { [self] found in
            guard let found, found.maySubstitute(at: now, for: request) else { return refuse(relay, problem, error) }
            guard request.view == .mapped else { return refuse(relay, problem.namingMappedView, error) }
            serve(found, to: [relay], as: { _ in use })
        }
    }
}
