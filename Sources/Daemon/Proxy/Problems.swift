import CachePolicy
package import HTTPSemantics
import Logging
import Store
import Upstream

/// Larder's own problem documents (RFC 9457).
///
/// Only this file maps failures to statuses.
extension ProblemDocument {
    private static func make(
        _ status: Int,
        _ type: String,
        _ title: String,
        retryAfter: Int64? = nil,
        fields: Fields = [:],
        extra: [(name: String, value: JSONText)] = [],
        _ detail: () -> String
    ) -> ProblemDocument {
        var problem = ProblemDocument(status: status, title: title, detail: detail())
        problem.type = prefix + type
        (problem.retryAfter, problem.fields, problem.extra) = (retryAfter, fields, extra)
        return problem
    }

    private static let prefix = "urn:larder:"

    /// The member of `Cache-Status` for a request that was neither served from the cache nor sent on.
    var cacheStatus: CacheStatus { .refused(String(type.dropFirst(Self.prefix.count))) }

    /// The upstream gave no usable response, and no stored one may replace it.
    ///
    /// - Parameter isValidation: whether a stored response exists that must not be used without validation; RFC 9111 §5.2.2.2
    ///   then requires 504, whatever the failure.
    static func upstreamFailed(_ error: UpstreamError, upstream: String, isValidation: Bool = false) -> ProblemDocument
    {
        // Before any response, `tooSlow` means that the client sent its request too slowly.
        let isTooSlow = if case .tooSlow = error { true } else { false }
        let title =
            isTooSlow
            ? "The request's body came too slowly"
            : error.isTimeout ? "The upstream did not respond in time" : "The upstream could not be asked"
        let status = isTooSlow ? 408 : error.isTimeout || isValidation ? 504 : 502
        return make(status, "upstream-failed", title, extra: [("error", .string(error.label))]) {
            "Upstream \"\(upstream)\": \(error.message)"
        }
    }

    /// The upstream's own refusal, repeated without asking it again.
    static func backedOff(_ pause: BackOff, seconds: Int64, upstream: String) -> ProblemDocument {
        let (word, title) =
            pause.isForLimit
            ? ("budget", "The rate limit is used up") : ("retry-after", "The upstream has asked clients to wait")
        return make(pause.status, word, title, retryAfter: seconds) {
            "Upstream \"\(upstream)\": \(pause.cause). Larder asks it again in \(seconds) s. Nothing stored may be used meanwhile."
        }
    }

    /// The upstream cannot be reached, and nothing stored may be used.
    static func unreachable(_ outage: Outage, _ method: String, upstream: String) -> ProblemDocument {
        let (title, left) = ("The upstream cannot be reached", outage.secondsLeft)
        return make(504, "unreachable", title, retryAfter: left, extra: [("error", .string(outage.error.label))]) {
            "Upstream \"\(upstream)\": \(outage.error.message). \(method) was not sent. Larder tries again in "
                + "\(left) s; in the mode `online` it sends every request."
        }
    }

    static let unknownOffline = make(504, "offline", "Not stored, and Larder is offline") {
        "No response to this URL, credential and representation is stored, and in offline mode Larder does not ask the upstream. "
            + "Switch with `larder mode auto`."
    }

    /// The same, if the object that the URL stands for is known from other responses.
    var namingMappedView: ProblemDocument {
        var problem = self
        problem.detail =
            (detail.map { $0.hasSuffix(".") ? "\($0) " : "\($0). " } ?? "")
            + "What other responses have shown of its object is served in the mapped view: send `Larder-View: mapped`."
        return problem
    }

    static func offline(_ method: String) -> ProblemDocument {
        make(504, "offline", "Larder is offline") {
            "\(method) needs the upstream, which Larder does not ask in offline mode. Switch with `larder mode auto`."
        }
    }

    /// The raw view of a document whose received bytes are gone, if the upstream cannot be asked.
    static let receivedBytesGone = make(504, "not-stored", "The bytes as received are no longer stored") {
        "The upstream failed, and only a composed response is left. Send the request without `Larder-View: raw` to get it."
    }

    /// RFC 9111 §5.2.1.7.
    static let notCached = make(504, "only-if-cached", "Nothing stored may be used") {
        "The request said `only-if-cached`, and no stored response is fresh enough for it."
    }

    static func storeFailed(_ error: StoreError) -> ProblemDocument {
        make(503, "store-failed", "The store failed") { "\(error)" }
    }

    static func credentialRefused(upstream: String) -> ProblemDocument {
        make(403, "credential-refused", "This upstream's credential is Larder's own") {
            "Upstream \"\(upstream)\" is configured with `credential:`; send requests without a credential of their own."
        }
    }

    static func writesRefused(_ method: String, upstream: String) -> ProblemDocument {
        make(403, "writes-refused", "Larder's credential is for reading") {
            "Larder does not send \(method) with its credential for upstream \"\(upstream)\"; `writes: true` beside the credential allows it."
        }
    }

    /// RFC 9110 §13.1.1: one of Larder's own tags names no state of the upstream's.
    static let ownTagInCondition = make(412, "own-tag", "The tag is Larder's own") {
        "If-Match names a tag that Larder made for a composed response, which the upstream does not know. "
            + "GET the resource again: the next response has the upstream's tag."
    }

    static func guarded(_ refusal: Guard.Refusal) -> ProblemDocument {
        make(refusal.kind.status, "guard", refusal.kind.title) { refusal.message }
    }

    static func noUpstream(path: String, prefixes: [String]) -> ProblemDocument {
        make(404, "no-upstream", "No upstream here") {
            prefixes.isEmpty
                ? "No upstream is served at this address: each has addresses of its own (`listen:`)."
                : "No upstream is configured for the path \(PrincipalFields().redacted(url: path)). Paths here begin with "
                    + "\(prefixes.joined(separator: " or "))."
        }
    }

    static func badTarget(_ reason: String) -> ProblemDocument {
        make(400, "bad-target", "The request target cannot be used") { reason }
    }

    static let notUTF8 = badTarget("It is not UTF-8; write such bytes as percent-escapes.")

    static func badView(_ value: String) -> ProblemDocument {
        make(400, "bad-view", "No such view") { "Larder-View is `wire`, `mapped` or `raw`; it was \"\(value)\"." }
    }

    // MARK: Larder-Live

    static func badLive(_ value: String) -> ProblemDocument {
        make(400, "bad-live", "No such stream") { "Larder-Live is `once` or `on`; it was \"\(value)\"." }
    }

    static let liveNeedsAccept = make(400, "live-needs-accept", "Not a request for events") {
        "The query parameter larder_live is for requests with `Accept: text/event-stream`, as EventSource sends them. "
            + "Other programs send the field Larder-Live."
    }

    static func liveNeedsGet(_ method: String) -> ProblemDocument {
        make(400, "live-needs-get", "Larder-Live goes with GET") {
            "Larder-Live sends the response to a GET without a body as events; this was \(method). "
                + "Use GET, or leave the field out."
        }
    }

    static func liveTooMany(limit: Int) -> ProblemDocument {
        make(503, "live-too-many", "Too many streams are open") {
            "Larder keeps \(limit) streams open at a time (`live.streams`). Try again later, or without Larder-Live."
        }
    }

    static let stopping = make(503, "stopping", "Larder is stopping") {
        "It opens no more streams. Try again in a moment, when it may have restarted."
    }

    static func liveEventStream(upstream: String) -> ProblemDocument {
        make(400, "live-event-stream", "The upstream sends events itself") {
            "Upstream \"\(upstream)\" responds to this URL with a stream of events. Leave Larder-Live out: the stream is passed on as it comes."
        }
    }

    static func liveTooLarge(limit: Int) -> ProblemDocument {
        make(502, "live-too-large", "The response is too large for an event") {
            "An event contains a whole response of at most \(limit) bytes (`limits.document`). Leave Larder-Live out."
        }
    }

    static let liveTooMuch = make(503, "live-too-much", "Too many responses are being sent as events") {
        "The responses that wait to be sent as events have reached their limit. Try again later, or without Larder-Live."
    }

    /// The upstream responded with an error that a stored response may replace.
    static func upstreamResponded(_ status: Int, upstream: String) -> ProblemDocument {
        make(status, "upstream-error", "The upstream responded with an error") {
            "Upstream \"\(upstream)\" responded with \(status) \(statusPhrase(status))."
        }
    }

    static func responseBrokeOff(upstream: String) -> ProblemDocument {
        make(502, "upstream-failed", "The response broke off") {
            "Upstream \"\(upstream)\" did not send all of its response."
        }
    }

    static let traceRefused = make(405, "trace", "TRACE is not passed on") {
        "It would show the request's credentials."
    }

    /// A replay has no response for a request.
    ///
    /// - Parameter nearest: the most similar recorded requests, each with the differences.
    package static func notRecorded(_ request: String, nearest: [(request: String, differences: [String])])
        -> ProblemDocument
    {
        let closest =
            nearest.first.map { known in
                " The nearest is \(([known.request] + known.differences).joined(separator: "; "))."
            } ?? ""
        let members = nearest.map { known -> JSONText in
            ["request": .string(known.request), "differences": .array(known.differences.map { .string($0) })]
        }
        return make(504, "not-recorded", "Not in the recording", extra: [("nearest", .array(members))]) {
            "\(request) is not in the recording, and a replay asks no upstream.\(closest) "
                + "Record it: larder run --record new FOLDER -- COMMAND."
        }
    }

    /// All recorded responses to a request were served, and a strict replay repeats none.
    package static func recordingExhausted(_ request: String, count: Int) -> ProblemDocument {
        make(504, "recording-exhausted", "Asked more often than recorded") {
            "\(request) was recorded \(count) time\(count == 1 ? "" : "s"), and has been asked for as often. "
                + "Without --strict the last response is repeated."
        }
    }

    package static func recordingUnreadable(_ reason: String) -> ProblemDocument {
        make(500, "recording-unreadable", "The recording cannot be read") { reason }
    }

    // MARK: Webhooks

    static func webhookUnknown(_ name: String) -> ProblemDocument {
        make(404, "webhook-unknown", "No such webhook") {
            "No webhook \"\(name.prefix(100).printable)\" is configured at this address (`webhooks:`)."
        }
    }

    static func webhookMethod(_ method: String) -> ProblemDocument {
        make(405, "webhook-method", "A webhook takes POST", fields: ["Allow": "POST"]) {
            "Deliveries are sent with POST; this was \(method.printable)."
        }
    }

    /// RFC 9110 §11.6.1 wants a challenge; no scheme is registered for what services sign deliveries with.
    static func webhookUnsigned(_ reason: String) -> ProblemDocument {
        let challenge: Fields = ["WWW-Authenticate": "Signature realm=\"webhook\""]
        return make(401, "webhook-unsigned", "The delivery is not signed as it should be", fields: challenge) { reason }
    }

    static func webhookType(_ type: String?) -> ProblemDocument {
        make(415, "webhook-type", "The delivery is not JSON by its type") {
            "A webhook takes application/json; this is \(type?.printable ?? "without a Content-Type"). "
                + "Choose application/json where the webhook is set up."
        }
    }

    static func webhookTooLarge(limit: Int) -> ProblemDocument {
        make(413, "webhook-too-large", "The delivery is too large") { "A webhook takes \(limit) bytes." }
    }

    static func webhookMalformed(_ reason: String) -> ProblemDocument {
        make(400, "webhook-malformed", "The delivery cannot be used") { reason }
    }

    static let webhookBusy = make(503, "webhook-busy", "Too much is being delivered", retryAfter: 10) {
        "The deliveries on their way have reached their limit of memory. Send it again later."
    }

    static let loop = make(508, "loop", "Larder sends requests to itself") {
        "The request has passed through Larder too often; the upstream's URL seems to lead back here."
    }
}

extension Logger {
    /// Logs a failure of the store that does not affect the client.
    ///
    /// The store itself logs once that nothing can be written, so each unstored response need not be logged.
    func storeFailed(_ message: Message, _ error: StoreError, url: String? = nil) {
        // The store has logged the cause of these itself.
        let isLogged = if case .unwritable = error { true } else if case .lockedOut = error { true } else { false }
        var metadata: Metadata = ["error": "\(error)"]
        if let url { metadata["url"] = "\(url)" }
        log(level: isLogged ? .debug : .error, message, metadata: metadata)
    }
}
