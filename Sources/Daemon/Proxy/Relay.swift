/// One client's place in a flight: what it is sent, and how far behind it is.
///
/// The upstream loop only.
final class Relay {
    let demand: Demand
    /// Where its answer goes.
    let reply: any Recipient
    /// Whether the flight began for this client; the others joined.
    let isLeader: Bool
    /// Whether it was with another flight before, whose answer was not for it; once is enough.
    var hasMoved = false
    private var isAnswered = false

    init(_ demand: Demand, _ reply: any Recipient, isLeader: Bool) {
        self.demand = demand
        self.reply = reply
        self.isLeader = isLeader
    }

    /// Bytes that the client has not taken yet.
    var backlog: Int { reply.backlog }

    /// Passes an interim answer on (RFC 9110 §15.2); nothing of it is kept.
    func inform(status: Int, fields: Fields) {
        var fields = fields
        if !isLeader { fields.remove("set-cookie") }
        reply.informational(status: status, fields: demand.interim(fields))
    }

    /// Sends the head of an answer that follows as it arrives.
    ///
    /// For an answer that others may have, Larder asked for the whole, without the client's own conditions: those are
    /// evaluated here, also where it turns out that the answer must not be stored.
    ///
    /// - Parameter terms: on which the answer will be stored; nil where it will not.
    func begin(_ head: UpstreamHead, storedOn terms: Flight.Terms?, now: Int64) {
        var fields = head.fields
        // A cookie is for the one whose request it answers.
        if !isLeader { fields.remove("set-cookie") }
        let length = fields.text("content-length").flatMap(Int.init)
        fields.remove("content-length")
        var status = CacheStatus.forwarded(demand.reason, isStored: terms != nil, isCollapsed: !isLeader)
        status.timeToLive = terms?.timeToLive
        status.detail = demand.overrides.cache == .never ? "never-by-route" : terms?.departure?.detail
        if demand.asksForItself, demand.hasCurrent(status: head.status, fields: fields, now: now) {
            isAnswered = true
            status.forwardStatus = head.status
            fields = StoredFields.notModified(fields)
            demand.decorate(&fields, with: status)
            reply.respond(status: 304, fields: fields, body: [])
            return
        }
        demand.decorate(&fields, with: status)
        reply.begin(
            status: head.status,
            // HTTP/2 has none; some clients show, or even want, one.
            reason: head.reason.isEmpty ? nil : String(decoding: head.reason, as: UTF8.self),
            fields: fields,
            framing: length.map { .length($0) } ?? .chunked,
            isKept: terms != nil
        )
    }

    func write(_ piece: [UInt8]) {
        if !isAnswered { reply.write(piece) }
    }

    /// The flight has let go of the body.
    func keptNoLonger() {
        if !isAnswered { reply.keptNoLonger() }
    }

    func finish() {
        if !isAnswered { reply.finish() }
    }

    func abort() {
        if !isAnswered { reply.abort() }
    }
}
