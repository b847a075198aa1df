/// One client's place in a flight: what it is sent, and how far behind it is. The upstream loop only.
final class Relay {
    let demand: Demand
    let reply: Reply
    /// Whether the flight began for this client; the others joined.
    let isLeader: Bool
    private var isWithoutBody = false

    init(_ demand: Demand, _ reply: Reply, isLeader: Bool) {
        self.demand = demand
        self.reply = reply
        self.isLeader = isLeader
    }

    /// Bytes that the client has not taken yet.
    var backlog: Int { reply.backlog }

    /// Sends the head of an answer that follows as it arrives.
    func begin(_ head: UpstreamHead, storing: Bool, flights: Flights) {
        var fields = head.fields
        if !isLeader { fields.remove("set-cookie") }
        let length = fields.text("content-length").flatMap(Int.init)
        fields.remove("content-length")
        let rewriter = LinkRewriter(upstream: demand.upstream, base: demand.base)
        rewriter.rewriteFields(&fields)
        flights.decorate(
            &fields,
            for: demand,
            status: CacheStatus.forwarded(
                demand.forwardReason,
                status: head.status,
                isStored: storing,
                isCollapsed: !isLeader
            )
        )
        if storing, demand.isNotModified(status: head.status, fields: fields) {
            isWithoutBody = true
            reply.respond(status: 304, fields: fields.forNotModified, body: [])
            return
        }
        reply.start(
            status: head.status,
            reason: String(decoding: head.reason, as: UTF8.self),
            fields: fields,
            framing: length.map { .length($0) } ?? .chunked
        )
    }

    func write(_ piece: [UInt8]) {
        guard !isWithoutBody else { return }
        reply.write(piece)
    }

    func finish() {
        guard !isWithoutBody else { return }
        reply.finish()
    }

    func abort() {
        guard !isWithoutBody else { return }
        reply.abort()
    }
}
