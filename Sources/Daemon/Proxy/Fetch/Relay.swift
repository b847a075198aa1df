import CachePolicy
import HTTPSemantics
import HTTPServer
import Upstream

/// One client's place in a fetch: what it is sent, and how far behind it is.
///
/// The upstream loop only.
final class Relay {
    let request: ProxyRequest
    /// Where its response goes.
    let reply: any Recipient
    /// Whether the fetch began for this client; the others joined.
    let isLeader: Bool
    /// Whether it was with another fetch before, whose response was not for it; once is enough.
    var hasMoved = false
    private var isAnswered = false
    /// How many bytes of the body go as they come; nil: all.
    private var bytesBeforeEnd: Int?
    /// What has come of the body behind them.
    private var end: [UInt8] = []
    /// The fields of a 304, which is all of the response, and so its end.
    private var withheldNotModified: Fields?

    init(_ request: ProxyRequest, _ reply: any Recipient, isLeader: Bool) {
        self.request = request
        self.reply = reply
        self.isLeader = isLeader
    }

    /// Bytes that the client has not taken yet.
    var backlog: Int { reply.backlog }

    /// Passes an interim response on (RFC 9110 §15.2); nothing of it is kept.
    func inform(status: Int, fields: Fields) {
        var fields = fields
        if !isLeader { fields.remove("set-cookie") }
        reply.informational(status: status, fields: request.interim(fields))
    }

    /// Sends the head of a response that follows as it arrives.
    ///
    /// For a response that others may have, Larder asked for the whole, without the client's own conditions: those are
    /// evaluated here, also where it turns out that the response must not be stored.
    ///
    /// - Parameters:
    ///   - terms: on which the response will be stored; nil where it will not.
    ///   - withholdsEnd: whether the client is to have the last byte, and with it the response, no sooner than `finish`.
    func begin(_ head: UpstreamHead, storedOn terms: StorageTerms?, withholdsEnd: Bool, now: Int64) {
        var fields = head.fields
        // A cookie is for the one whose request it answers.
        if !isLeader { fields.remove("set-cookie") }
        let length = fields.text("content-length").flatMap(Int.init)
        fields.remove("content-length")
        var status = CacheStatus.forwarded(request.reason, isStored: terms != nil, isCollapsed: !isLeader)
        status.timeToLive = terms?.timeToLive
        status.detail = request.overrides.cache == .never ? "never-by-route" : terms?.overrideDetail?.detail
        if request.asksForItself, request.hasCurrent(status: head.status, fields: fields, now: now) {
            isAnswered = true
            status.forwardStatus = head.status
            fields = StoredFields.notModified(fields)
            request.decorate(&fields, with: status)
            withheldNotModified = fields
            if !withholdsEnd { release() }
            return
        }
        request.decorate(&fields, with: status)
        // Where the length is not known, what ends the response is not a part of the body.
        if withholdsEnd, let length, length > 0 { bytesBeforeEnd = length - 1 }
        reply.begin(
            status: head.status,
            reason: head.reasonPhrase,
            fields: fields,
            framing: length.map { .length($0) } ?? .chunked,
            isKept: terms != nil
        )
    }

    func write(_ piece: [UInt8]) {
        guard !isAnswered else { return }
        guard let count = bytesBeforeEnd, piece.count > count else {
            bytesBeforeEnd? -= piece.count
            return reply.write(piece)
        }
        reply.write(Array(piece[..<count]))
        end += piece[count...]
        bytesBeforeEnd = 0
    }

    /// The fetch has let go of the body: nothing is withheld for its sake any more.
    func keptNoLonger() {
        release()
        if !isAnswered { reply.keptNoLonger() }
    }

    func finish() {
        release()
        if !isAnswered { reply.finish() }
    }

    func abort() {
        // A 304 is about what the client has, not about the body that broke off.
        if withheldNotModified != nil { release() }
        if !isAnswered { reply.abort() }
    }

    /// Passes on what was withheld.
    private func release() {
        if let fields = withheldNotModified {
            withheldNotModified = nil
            return reply.respond(status: 304, fields: fields, body: [])
        }
        bytesBeforeEnd = nil
        guard !isAnswered, !end.isEmpty else { return }
        reply.write(end)
        end = []
    }
}
