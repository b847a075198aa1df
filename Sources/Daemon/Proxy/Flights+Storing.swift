import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Store
import Upstream

/// What of an answer may be stored, and what it is then.
extension Flights {
    /// What to store of an answer whose head has come; throws why nothing is.
    func storage(of head: UpstreamHead, in flight: Flight) throws(Unstored) -> Flight.Storing {
        let demand = flight.demand
        if let refusal = Unstored.refusal(of: demand) { throw refusal }
        if flight.storesNothing { throw .invalidated }
        // A stream of events has no end to wait for, and no use as a document.
        if head.isEventStream { throw .eventStream }
        if head.isGarbled { throw .garbled }
        let part = part(in: head, of: flight)
        // An answer to a request for a part is kept where it is the part, or the whole instead.
        if part == nil, head.status == 206 || flight.asksForRange && (head.status != 200 || head.fields.isContentCoded)
        {
            throw .part
        }
        let policy = policy(of: head, in: flight)
        if case .no(let reason) = policy.storability { throw Unstored(reason, head.fields, of: demand) }
        // An error, cacheable as it may be, never takes the place of a good answer.
        let isFailure = head.status >= 500 || isFailure(head, in: flight)
        if isFailure, let stored = flight.stored, stored.answer.status < 500 { throw .olderIsBetter }
        if let length = head.fields.text("content-length").flatMap(Int.init), length > settings.limits.document {
            throw .tooLarge(limit: settings.limits.document)
        }
        let (route, request) = (demand.overrides, demand.request.fields)
        guard let selection = demand.upstream.selection(policy, route: route, request: request) else {
            throw Unstored(
                "vary",
                .upstream,
                "the upstream said Vary: \(head.fields.combined("vary")?.prefix(200) ?? "")"
            )
        }
        let fields = StoredFields.storable(
            head.fields,
            leavingOut: policy.fieldsNotStored + policy.fieldsNotReused,
            replaysCookies: demand.upstream.settings.cookies == .replay
        )
        // Parts of a body that is served otherwise than it came would not fit the whole.
        if part != nil, isServedTransformed(head, in: flight) { throw .part }
        let dated = StoredFields.dated(fields, at: wall)
        return Flight.Storing(policy: policy.answer, fields: dated, selection: selection, part: part)
    }

    /// Remembers why a response was not stored.
    func note(_ unstored: Unstored, of head: UpstreamHead, in flight: Flight) {
        self.unstored.note(unstored, status: head.status, of: flight.demand, at: now)
    }

    /// The reading of an answer whose head has come.
    func policy(of head: UpstreamHead, in flight: Flight) -> ResponsePolicy {
        flight.demand.policy(
            status: head.status,
            fields: head.fields,
            requestTime: flight.requestTime,
            responseTime: now,
            wall: wall
        )
    }

    /// Whether an answer's body is served otherwise than it came.
    func isServedTransformed(_ head: UpstreamHead, in flight: Flight) -> Bool {
        flight.demand.upstream.settings.rewriteLinks && flight.demand.upstream.isJSON(head.fields)
    }

    /// Makes an answer ready that has come whole and is not stored.
    func unkept(_ head: UpstreamHead, body: [UInt8], from flight: Flight) -> ReadyResponse {
        let demand = flight.demand
        let answer = CachedResponse(
            key: demand.key,
            document: nil,
            status: head.status,
            fields: StoredFields.storable(head.fields),
            body: body,
            policy: policy(of: head, in: flight).answer,
            selection: .none,
            form: .received,
            objects: []
        )
        return ReadyResponse(answer, digest: demand.digest, upstream: demand.upstream, base: demand.base)
    }

    /// Keeps what a POST has made of its target, once what that invalidated is gone.
    func keep(_ posted: PostedResponse, of demand: Demand) {
        let ready = ReadyResponse(posted.answer, digest: demand.digest, upstream: demand.upstream, base: demand.base)
        let reading = demand.upstream.reading(
            demand,
            method: "GET",
            status: posted.answer.status,
            fields: posted.answer.fields
        )
        // A write's answer is as new as its completion (law 3).
        cache.keep(
            ready,
            sent: cache.now,
            age: 0,
            reading: reading,
            overtakenAt: nil,
            isSecret: demand.isRepeated(in: posted.answer.body, posted.answer.fields)
        )
    }
}
