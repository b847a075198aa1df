package import HTTPSemantics

/// What is known of a status code for the purposes of a cache (RFC 9110 §15).
package enum StatusFacts {
    /// Whether its caching behaviour is implemented here, which `must-understand` asks for (RFC 9111 §5.2.2.3).
    static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200, 201, 203, 204, 205, 206, 300, 301, 302, 303, 307, 308: true
        case 400...417, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451: true
        case 500...505, 506, 507, 508, 511: true
        default: false
        }
    }

    /// Whether a response of this status may be given a lifetime without saying one (RFC 9110 §15.1).
    static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether the response is one of absence, to which a route's `negative` lifetime applies.
    static func isNegative(_ status: Int) -> Bool {
        switch status {
        case 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether the response holds for its own request only, whatever lifetime it names: 202 says "ask again", 412 is about the
    /// request's conditions, 416 of its range.
    static func isMomentary(_ status: Int, for request: RequestFacts) -> Bool {
        switch status {
        case 202: true
        case 412: request.isConditional
        case 416: request.hasRange
        default: false
        }
    }

    /// Whether it is no status: it counts as a server error, and is not stored (RFC 9110 §15).
    static func isInvalid(_ status: Int) -> Bool { status > 599 }

    /// Whether the response is a failure worth going stale for: a server error, or too many requests.
    ///
    /// A rate-limited 403 can be distinguished from a refusal only by its fields: see `isRateLimited`.
    package static func isFailure(_ status: Int) -> Bool {
        status == 429 || status >= 500 && status != 501
    }

    /// Whether a 403 or 429 says that a rate limit is used up, in any of the spellings in use.
    package static func isRateLimited(_ status: Int, _ fields: Fields) -> Bool {
        guard status == 429 || status == 403 else { return false }
        if status == 429 || fields.contains("retry-after") { return true }
        return fields.text("x-ratelimit-remaining") == "0" || fields.text("ratelimit-remaining") == "0"
            || fields.text("x-rate-limit-remaining") == "0"
    }

    /// Whether `fresh` and `cache: force` of a route give a response of this status its lifetime: what was asked for, a
    /// redirect to it, or its absence.
    ///
    /// A failure is gone as soon as the upstream is well again, a refusal (401, 403) as soon as it has been granted, and 202
    /// says "ask again".
    package static func takesRouteLifetime(_ status: Int) -> Bool {
        (200..<400).contains(status) && status != 202 || status == 404 || status == 410
    }
}
