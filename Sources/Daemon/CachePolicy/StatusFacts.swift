package import HTTPSemantics

/// The caching rules for status codes (RFC 9110 §15).
package enum StatusFacts {
    /// Whether Larder implements the status's caching behaviour, as `must-understand` demands (RFC 9111 §5.2.2.3).
    static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200, 201, 203, 204, 205, 206, 300, 301, 302, 303, 307, 308: true
        case 400...417, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451: true
        case 500...505, 506, 507, 508, 511: true
        default: false
        }
    }

    /// Whether a response of this status may have a heuristic lifetime (RFC 9110 §15.1).
    static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether the status means absence, so that a route's `negative` lifetime applies.
    static func isNegative(_ status: Int) -> Bool {
        switch status {
        case 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether the response is valid for its own request only, whatever its lifetime: 202 means "ask again", 412 is about the
    /// request's conditions, 416 about its range.
    static func isMomentary(_ status: Int, for request: Request) -> Bool {
        switch status {
        case 202: true
        case 412: UpstreamFields.areConditional(request.fields)
        case 416: request.fields.contains("range")
        default: false
        }
    }

    /// Whether the status is invalid: its response counts as a server error, and is not stored (RFC 9110 §15).
    static func isInvalid(_ status: Int) -> Bool { status > 599 }

    /// Whether the upstream failed; an invalid status counts, too.
    package static func isServerError(_ status: Int) -> Bool { status >= 500 }

    /// Whether a response is an error that an older response may replace: a server error, or an exhausted rate limit.
    package static func isFailure(_ status: Int, _ fields: Fields) -> Bool {
        isFailureByStatus(status) || isRateLimited(status, fields)
    }

    /// The same of a response that is stored, or whose fields are not known.
    ///
    /// Only its fields distinguish a rate-limited 403 from a refusal; here it counts as a refusal.
    package static func isFailureByStatus(_ status: Int) -> Bool {
        // A 501 is a definite answer: the upstream cannot do this, and asking again will not help (RFC 9110 §15.6.2).
        status == 429 || isServerError(status) && status != 501
    }

    /// Whether a 403 or 429 means that a rate limit is exhausted, in any of the spellings in use.
    static func isRateLimited(_ status: Int, _ fields: Fields) -> Bool {
        status == 429 || status == 403 && (fields.contains("retry-after") || RateLimitFields.isExhausted(fields))
    }

    /// Whether `fresh` and `cache: force` of a route apply to this status: a success, a redirect, or an absence.
    ///
    /// A failure ends when the upstream recovers, a refusal (401, 403) when access is granted, and 202 means "ask again".
    package static func takesRouteLifetime(_ status: Int) -> Bool {
        (200..<400).contains(status) && status != 202 || status == 404 || status == 410
    }
}
