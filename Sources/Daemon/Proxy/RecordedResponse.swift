import CachePolicy
package import HTTPSemantics
package import HTTPServer
import Mapping
import Settings
package import Store

/// A recorded response, served like a stored one: in each view, by conditions and ranges, as an event.
package struct RecordedResponse: Sendable {
    private let ready: ReadyResponse
    private let moment: Int64

    static let cacheStatus: StaticString = "larder; hit; detail=replay"

    /// - Parameters:
    ///   - fields: as recorded, without framing.
    ///   - moment: the time of the stopped clock, in Unix seconds.
    package init(status: Int, fields: Fields, body: [UInt8], for incoming: IncomingRequest, at moment: Int64) {
        let upstream = incoming.upstream
        // The upstream's own field concerned the response as it came then.
        var fields = fields
        fields.remove("cache-status")
        let policy = upstream.policy(ofRecorded: status, fields, at: moment)
        let key = incoming.cacheKey(of: .anonymous)
        let response = CachedResponse(key: key, status: status, fields: fields, body: body, policy: policy)
        let digest = Digest128(low: 0, high: 0)
        ready = ReadyResponse(response, digest: digest, upstream: upstream, base: incoming.base, view: incoming.view)
        self.moment = moment
    }

    /// Serves it by the request's conditions and ranges, or as the only event of a stream if the request asks for events.
    package func serve(_ exchange: Exchange, _ incoming: IncomingRequest) {
        guard incoming.live == nil else { return serveEvent(exchange, incoming) }
        let content = ServedContent(of: ready, for: exchange.request, now: moment) ?? .whole
        var (status, fields, body) = content.message(from: ready)
        finish(&fields, exchange.request.fields, incoming.upstream)
        // The response to a HEAD has no body, but the length of one.
        let length = exchange.request.method == "HEAD" ? ready.response.fields.text("content-length") : nil
        guard let length else { return exchange.reply.respond(status: status, fields: fields, body: body) }
        fields.set("Content-Length", length)
        exchange.reply.start(status: status, fields: fields, framing: .none)
        exchange.reply.finish()
    }

    /// The response to keep ready for the next requests; nil if each request must be examined.
    ///
    /// - Parameter request: the one that it is served to now.
    package func ready(for request: Request, _ incoming: IncomingRequest) -> ReadyResponse? {
        let unusual = [
            "larder-session", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
            "range", "origin",
        ]
        let isPlain =
            request.method == "GET" && request.body == nil && incoming.live == nil && incoming.view == .wire
            && !unusual.contains { request.fields.contains($0) }
        // Without a Date the connection must add one, and some statuses have no body.
        guard isPlain, ready.fields.contains("date"), ![204, 205, 206, 304].contains(ready.response.status)
        else { return nil }
        return ready
    }

    private func finish(_ fields: inout Fields, _ request: Fields, _ upstream: ProxiedUpstream) {
        fields.append("Cache-Status", "\(Self.cacheStatus)")
        upstream.addCORS(to: &fields, for: request)
    }

    private func serveEvent(_ exchange: Exchange, _ incoming: IncomingRequest) {
        var fields = Fields()
        finish(&fields, exchange.request.fields, incoming.upstream)
        fields.vary(by: incoming.upstream.variesBy)
        exchange.reply.startEvents(fields)
        var event = LiveEvent(kind: .fresh)
        event.status = ready.response.status
        event.age = 0
        event.fields = ready.fields
        event.body = LiveBody(ready.body)
        let message = LiveMessage(event, id: LiveMode.endID, body: LiveEncoding(bodyOf: event))
        for piece in message.pieces { exchange.reply.write(piece) }
        exchange.reply.finish()
    }
}

// MARK: Recorded requests

extension IncomingRequest {
    /// A recorded request, as if a client had just sent it; nil if its target is not the upstream's.
    ///
    /// - Parameter target: path and query as they went upstream.
    package init?(recorded target: String, fields: Fields, credentials: [UInt8]?, _ upstream: ProxiedUpstream) {
        let bytes = Array(target.utf8)
        let base = upstream.normaliser.basePath
        let path = Array(bytes.prefix { $0 != 0x3F })
        guard path.starts(with: base) else { return nil }
        let query = bytes.count > path.count ? Array(bytes[(path.count + 1)...]) : nil
        let whole = upstream.normaliser.prefix + path.dropFirst(base.count)
        guard let normalised = try? upstream.normaliser.normalise(path: whole, query: query) else { return nil }
        (self.upstream, self.target) = (upstream, target)
        route = String(decoding: upstream.principal.redacted(target: normalised.routePath), as: UTF8.self)
        parts = CacheKeyParts(recorded: normalised, fields, credentials: credentials, upstream)
        credentialsDigest = nil
        view = .wire
        live = nil
        self.base = ClientAuthority(authority: "localhost")
    }

    /// The client's own credentials, if any.
    package var clientCredentials: [UInt8]? {
        guard let credentials = parts.credentials, let own = upstream.settings.credential
        else { return parts.credentials }
        let rest = credentials.dropFirst("credential:".utf8.count + own.value.bytes.count + 1)
        return rest.isEmpty ? nil : Array(rest)
    }

    /// Turns a response's links for the client's address back into the upstream's.
    package func withUpstreamLinks(_ fields: Fields, body: [UInt8]) -> (fields: Fields, body: [UInt8]) {
        let url = upstream.settings.url
        let back = LinkRewriter(
            upstream: "\(upstream.scheme(for: base))://\(base.authority)\(upstream.settings.prefix)",
            authority: String(url.origin.dropFirst(url.scheme.count + 3)),
            prefix: url.basePath,
            scheme: url.scheme
        )
        var fields = fields
        back.rewrite(&fields)
        guard upstream.settings.rewriteLinks, view != .raw, upstream.isJSON(fields) else { return (fields, body) }
        return (fields, back.rewritten(body: body) ?? body)
    }
}

extension PrincipalFields {
    /// Whether the values of a request field may not be recorded: credentials, and fields that the configuration names.
    package func hides(requestField name: [UInt8]) -> Bool {
        let lowercased = String(decoding: FieldSyntax.lowercased(name), as: UTF8.self)
        if ["cookie", "proxy-authorization", "authorization"].contains(lowercased) { return true }
        switch reason(forField: name) {
        case .configured, .credential, .notKnownHarmless: return true
        case .identity, nil: return NameMeaning.isSecretItself(name)
        }
    }

    /// The same for a response field; the value of `Set-Cookie` is partly secret.
    package func hides(responseField name: [UInt8]) -> Bool {
        redacted(Fields([Field(name: name, value: [0])])).lines[0].value != [0]
    }

    package static func isSecret(name: String) -> Bool { NameMeaning.isSecretItself(Array(name.utf8)) }
}

extension ResponseCache {
    /// Hands a recorded response to the store as if it had just come; returns false if its principal cannot be stored.
    ///
    /// - Parameter done: called when it is stored, or cannot be.
    package func receive(
        recorded: (status: Int, fields: Fields, body: [UInt8]),
        for incoming: IncomingRequest,
        _ principals: PrincipalResolver,
        done: @escaping @Sendable () -> Void
    ) async -> Bool {
        let (upstream, credentials) = (incoming.upstream, incoming.parts.credentials)
        guard let principal = try? await principals.identify(credentials, quick: nil, of: upstream)
        else { return false }
        let moment = now
        let fields = StoredFields.storable(recorded.fields)
        let policy = upstream.policy(ofRecorded: recorded.status, fields, at: seconds)
        let match =
            upstream.isJSON(fields) && !recorded.body.isEmpty
            ? upstream.bodyMatch("GET", incoming.route, url: incoming.target, status: recorded.status, fields: fields)
            : nil
        let document = ReceivedDocument(
            key: incoming.cacheKey(of: principal),
            variant: VarySelection.none.bytes,
            status: recorded.status,
            head: StoredHead.encode(upstream.storable(fields)),
            policy: policy.bytes,
            body: recorded.body,
            start: moment,
            end: moment,
            sent: moment,
            kind: match?.kind ?? .detail,
            rule: match?.rule,
            surroundings: match?.context(url: incoming.parts.url, fields: fields) ?? .none
        )
        store.receive(document) { _ in done() }
        return true
    }

    package static func fields(of document: StoredDocument) -> Fields { StoredHead.decode(document.head) }
}

extension ProxiedUpstream {
    /// The policy of a response to a recorded GET, at a time in seconds of the store's clock.
    fileprivate func policy(ofRecorded status: Int, _ fields: Fields, at moment: Int64) -> StoredPolicy {
        let facts = RequestFacts(method: "GET", fields: [:])
        let times = ExchangeTimes(request: moment, response: moment)
        return ResponsePolicy(request: facts, status: status, fields: fields, times: times, settings: policySettings)
            .stored
    }

    /// The fields of a request for the representation that a context describes.
    package func requestFields(ofContext context: String) -> Fields {
        Fields(
            context.split(separator: "\n").compactMap { line in
                let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
                return parts.count == 2 ? Field(parts[0], parts[1]) : nil
            }
        )
    }

    /// The canonical credentials in a recorded request, if it still contains them; nil for anonymous.
    package func credentials(target: String, fields: Fields) -> [UInt8]? {
        principal.canonical(target: Array(target.utf8), fields: fields)
    }
}

/// Intercepts requests ahead of the cache, once their upstream and principal are known: recordings and replays.
///
/// Any thread.
package protocol ExchangeInterceptor: AnyObject, Sendable {
    /// Whether it intercepts requests now; otherwise the cache serves them.
    var isActive: Bool { get }

    /// Takes a request over: serves it, or passes it on with `proxy.accept`.
    func received(_ exchange: Exchange, _ incoming: IncomingRequest, _ proxy: ProxyCore)

    /// The response to a plain GET without credentials; nil if `received` decides.
    ///
    /// - Parameter digest: of the request's cache key, as an anonymous one's.
    func ready(at digest: Digest128) -> ReadyResponse?
}

extension ExchangeInterceptor {
    package func ready(at digest: Digest128) -> ReadyResponse? { nil }
}
