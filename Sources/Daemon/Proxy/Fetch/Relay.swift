import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Settings
import Upstream

/// One client of a fetch: passes the response on to it, and knows how far behind it is; the upstream loop only.
final class Relay {
    let request: ProxyRequest
    let reply: any Recipient
    /// Whether this client started the fetch; the others joined it.
    let isLeader: Bool
    /// Whether it already left another fetch whose response was not for it; that happens at most once.
    var hasMoved = false
    /// Fires when its client has waited long enough for what may be served stale.
    var patience: EventTimer?
    private var hasResponded = false
    /// The number of body bytes to pass on as they come; nil for all.
    private var bytesBeforeEnd: Int?
    /// The received part of the body after those bytes, which is withheld.
    private var end: [UInt8] = []
    /// The fields of a withheld 304, which has no body whose end could be withheld.
    private var withheldNotModified: Fields?

    init(_ request: ProxyRequest, _ reply: any Recipient, isLeader: Bool) {
        (self.request, self.reply, self.isLeader) = (request, reply, isLeader)
    }

    /// The number of bytes that the client has not taken yet.
    var backlog: Int { reply.backlog }

    /// Passes an interim response on (RFC 9110 §15.2); it is not stored.
    func inform(status: Int, fields: Fields) {
        var fields = fields
        if !isLeader { fields.remove(.setCookie) }
        reply.informational(status: status, fields: request.interim(fields))
    }

    /// Sends the head of a response whose body follows as it arrives.
    ///
    /// For a shareable response, Larder asked for the whole without the client's own conditions. They are evaluated here, even if
    /// the response turns out not to be storable.
    ///
    /// - Parameters:
    ///   - storing: the response to store when its body is whole; nil if it is not stored.
    ///   - isKept: whether it will be kept then, as far as that is known.
    ///   - withholdsEnd: whether to withhold the last byte, and so the end of the response, until `finish`.
    func begin(_ head: UpstreamHead, storing: CachedResponse?, isKept: Bool = true, withholdsEnd: Bool, now: Int64) {
        var fields = head.fields
        // A cookie is only for the client whose request was sent.
        if !isLeader { fields.remove(.setCookie) }
        let length = fields.contentLength
        fields.remove(.contentLength)
        let isStored = storing != nil && isKept
        var status = request.statusWhenForwarded(isStored: isStored, isCollapsed: !isLeader)
        if let storing {
            let policy = request.upstream.applying(storing.policy, request.overrides)
            status.timeToLive = policy.timeToLive(at: now)
            status.details += policy.overrideDetails(of: request.overrides, vary: VaryField(storing.fields))
            if !isKept { status.details.append(NotStoredReason.unwritable.rule) }
        }
        if request.asksForItself, request.hasCurrent(status: head.status, fields: fields, now: now) {
            hasResponded = true
            status.forwardStatus = head.status
            fields = StoredFields.notModified(fields)
            request.prepareForClient(&fields, of: head.status, with: status)
            withheldNotModified = fields
            if !withholdsEnd { release() }
            return
        }
        request.prepareForClient(&fields, of: head.status, with: status)
        // If the length is unknown, the response ends with framing, not with a body byte.
        if withholdsEnd, let length, length > 0 { bytesBeforeEnd = length - 1 }
        let (code, phrase) = (head.status, head.reasonPhrase)
        let framing = BodyFraming(ofBodyWith: length)
        reply.begin(status: code, reason: phrase, fields: fields, framing: framing, isKept: storing != nil)
    }

    func write(_ piece: [UInt8]) {
        guard !hasResponded else { return }
        guard let count = bytesBeforeEnd, piece.count > count else {
            bytesBeforeEnd? -= piece.count
            return reply.write(piece)
        }
        reply.write(Array(piece[..<count]))
        end += piece[count...]
        bytesBeforeEnd = 0
    }

    /// Passes on withheld bytes, because the fetch no longer buffers the body.
    func keptNoLonger() {
        release()
        if !hasResponded { reply.keptNoLonger() }
    }

    /// Records how a client's request is served; those of Larder's own do not count.
    func recordOutcome(_ outcome: Outcome) {
        if reply.isRequest { request.note?.recordOutcome(outcome) }
    }

    func finish() {
        release()
        if !hasResponded { reply.finish() }
    }

    func abort() {
        // A 304 concerns the client's own copy, not the truncated body.
        if withheldNotModified != nil { release() }
        if !hasResponded { reply.abort() }
    }

    private func release() {
        if let fields = withheldNotModified {
            withheldNotModified = nil
            return reply.respond(status: 304, fields: fields, body: [])
        }
        bytesBeforeEnd = nil
        guard !hasResponded, !end.isEmpty else { return }
        reply.write(end)
        end = []
    }
}
