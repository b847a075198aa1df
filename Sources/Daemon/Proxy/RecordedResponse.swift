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

    static let cacheStatus = CacheStatus.hit(details: ["replay"])
    /// The fields after a ready response's head, with the end of the fields.
    static let variableFields = Array("Cache-Status: \(cacheStatus.text)\r\n\r\n".utf8)

    /// - Parameters:
    ///   - fields: as recorded, without framing.
    ///   - moment: the time of the stopped clock, in Unix seconds.
    package init(status: Int, fields: Fields, body: [UInt8], for incoming: IncomingRequest, at moment: Int64) {
        let upstream = incoming.upstream
        // The upstream's own field concerned the response as it came then.
        var fields = fields
        fields.remove("cache-status")
        let policy = incoming.policy(ofRecorded: status, fields, at: moment)
        let key = incoming.cacheKey(of: .anonymous)
        let response = CachedResponse(key: key, status: status, fields: fields, body: body, policy: policy)
        let digest = Digest128(low: 0, high: 0)
        ready = ReadyResponse(response, digest: digest, upstream: upstream, base: incoming.base, view: incoming.view)
        self.moment = moment
    }

    /// Serves it by the request's conditions and ranges, or as the only event of a stream if the request asks for events.
    package func serve(_ incoming: IncomingRequest, _ reply: Reply) {
        guard incoming.live == nil else { return serveEvent(incoming, reply) }
        let content = ServedContent(of: ready, for: incoming.message, now: moment) ?? .whole
        var (status, fields, body) = content.message(from: ready)
        finish(&fields, incoming)
        // The response to a HEAD has no body, but the length of one.
        let length = incoming.message.method == "HEAD" ? ready.response.fields.text("content-length") : nil
        guard let length else { return reply.respond(status: status, fields: fields, body: body) }
        fields.set("Content-Length", length)
        reply.start(status: status, fields: fields, framing: .none)
        reply.finish()
    }

    /// The response to keep ready for the next requests; nil if each request must be examined.
    ///
    /// - Parameter incoming: the request that it is served to now.
    package func ready(for incoming: IncomingRequest) -> ReadyResponse? {
        let request = incoming.message
        let unusual: KnownFields = [
            .larderSession, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange, .range, .origin,
        ]
        let isPlain =
            request.method == "GET" && request.body == nil && incoming.live == nil && incoming.view == .wire
            && !request.fields.contains(oneOf: unusual)
        // Without a Date the connection must add one, and some statuses have no body.
        let isServable = ready.fields.contains("date") && ![204, 205, 206, 304].contains(ready.response.status)
        return isPlain && isServable ? ready : nil
    }

    private func finish(_ fields: inout Fields, _ incoming: IncomingRequest) {
        Self.cacheStatus.append(to: &fields)
        incoming.note?.served(as: Self.cacheStatus)
        incoming.upstream.addCORS(to: &fields, for: incoming.message.fields)
    }

    private func serveEvent(_ incoming: IncomingRequest, _ reply: Reply) {
        var fields = Fields()
        finish(&fields, incoming)
        fields.vary(by: incoming.upstream.variesForAll)
        reply.start(status: 200, fields: EventStreamText.head(fields), framing: .chunked)
        var event = LiveEvent(kind: .fresh)
        event.status = ready.response.status
        event.age = 0
        event.fields = ready.fields
        event.body = LiveBody(ready.body)
        let message = LiveMessage(event, id: LiveMode.endID, body: LiveEncoding(bodyOf: event))
        for piece in message.pieces { reply.write(piece) }
        reply.finish()
    }
}

extension ResponseCache {
    /// Hands a recorded response to the store as if it had just come; returns false if its principal cannot be stored.
    ///
    /// - Parameter done: called when it is stored, or cannot be.
    package func receive(
        recorded: (status: Int, fields: Fields, body: [UInt8]),
        for incoming: IncomingRequest,
        credentials: [UInt8]?,
        _ principals: PrincipalResolver,
        done: @escaping @Sendable () -> Void
    ) async -> Bool {
        let upstream = incoming.upstream
        guard let principal = try? await principals.identify(credentials, of: upstream) else { return false }
        let moment = now
        let fields = StoredFields.storable(recorded.fields)
        let policy = incoming.policy(ofRecorded: recorded.status, fields, at: seconds)
        let (method, route, url, status) = (incoming.sentMethod, incoming.route, incoming.target, recorded.status)
        let match =
            upstream.isJSON(fields) && !recorded.body.isEmpty
            ? upstream.bodyMatch(method, route, url: url, status: status, fields: fields) : nil
        let document = ReceivedDocument(
            key: incoming.cacheKey(of: principal),
            variant: VarySelection.none.bytes,
            status: status,
            head: upstream.principal.redacted(fields).encoded,
            policy: policy.bytes,
            body: recorded.body,
            start: moment,
            end: moment,
            sent: moment,
            kind: match?.kind ?? .detail,
            rule: match?.rule,
            mappingContext: match?.context(url: incoming.url, fields: fields) ?? .none
        )
        store.receive(document) { _ in done() }
        return true
    }

    /// The fields of a document for people, without credentials.
    package static func fields(of document: StoredDocument) -> Fields {
        Fields(encoded: FieldsOnDisk.shown(document.head) ?? [])
    }
}

extension IncomingRequest {
    /// The policy of a recorded response, as to a plain GET of its target, at a time in seconds of the store's clock.
    fileprivate func policy(ofRecorded status: Int, _ fields: Fields, at moment: Int64) -> StoredPolicy {
        ResponsePolicy(
            request: Request(method: "GET", target: target),
            status: status,
            fields: fields,
            times: ExchangeTimes(request: moment, response: moment),
            settings: upstream.policySettings
        ).stored
    }
}
