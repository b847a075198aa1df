/// The reason why an upstream's response is missing or incomplete.
package enum UpstreamError: Error, Sendable, Equatable {
    // Before anything was sent.
    /// The request cannot be sent: its URL, its method or a field is malformed.
    case invalidRequest(String)
    case couldNotResolve(String)
    case refused(String)
    case connectTimeout
    /// No connection became free in time: the maximum number was busy.
    case queueTimeout
    case proxy(String)
    case tls(String)

    // After it was sent.
    case firstByteTimeout
    case stalled
    /// The connection broke; `afterBytes` of the body had been received.
    case reset(afterBytes: Int)
    /// The body ended before its announced length, or before its last chunk.
    case truncated(expected: Int?, got: Int)
    /// The response is not valid HTTP.
    case badResponse(String)
    case headTooLarge
    case decoding(String)
    /// The response ended, but nothing shows that it is whole.
    case unprovenEnd(UnprovenEnd)

    // Decided by Larder or the client.
    /// The request was so slow that it was ended for others, which waited for its slot.
    case tooSlow(bytesPerSecond: Int)
    case requestBodyFailed(String)
    case cancelled

    /// An end that a whole response and a cut one have in common.
    package enum UnprovenEnd: String, Sendable {
        /// A stream of HTTP/2, of which libcurl reports no more than that it ended.
        case stream = "it came over HTTP/2 with neither a length nor a content coding"
        /// A connection closed without TLS's closure alert (RFC 9112 §9.8).
        case closure = "it has no length, and the TLS connection ended without a closure alert"
    }

    /// A short name from a fixed set, for metrics and problem documents.
    package var label: String {
        switch self {
        case .invalidRequest: "invalid_request"
        case .couldNotResolve: "could_not_resolve"
        case .refused: "refused"
        case .connectTimeout: "connect_timeout"
        case .queueTimeout: "queue_timeout"
        case .proxy: "proxy"
        case .tls: "tls"
        case .firstByteTimeout: "first_byte_timeout"
        case .stalled: "stalled"
        case .reset: "reset"
        case .truncated: "truncated"
        case .badResponse: "bad_response"
        case .headTooLarge: "head_too_large"
        case .decoding: "decoding"
        case .unprovenEnd: "unproven_end"
        case .requestBodyFailed: "request_body_failed"
        case .tooSlow: "too_slow"
        case .cancelled: "cancelled"
        }
    }

    /// Whether the upstream may have acted on the request; if not, it may safely be sent again.
    package var requestMayHaveBeenProcessed: Bool {
        switch self {
        case .invalidRequest, .couldNotResolve, .refused, .connectTimeout, .queueTimeout, .proxy, .tls: false
        default: true
        }
    }

    /// Whether the upstream took too long, which means a 504 instead of a 502.
    package var isTimeout: Bool {
        switch self {
        case .connectTimeout, .queueTimeout, .firstByteTimeout, .stalled: true
        default: false
        }
    }
}

extension UpstreamError: CustomStringConvertible {
    /// The failure as a sentence for the person who runs Larder.
    package var message: String {
        switch self {
        case .invalidRequest(let reason): "the request cannot be sent upstream: \(reason)"
        case .couldNotResolve(let reason): "the upstream's name could not be resolved: \(reason)"
        case .refused(let reason): "no connection to the upstream: \(reason)"
        case .connectTimeout: "the upstream did not accept a connection in time"
        case .queueTimeout: "no connection to the upstream became free in time"
        case .proxy(let reason): "the proxy on the way to the upstream failed: \(reason)"
        case .tls(let reason): "no trusted TLS connection to the upstream: \(reason)"
        case .firstByteTimeout: "the upstream took the request but did not respond in time"
        case .stalled: "the upstream's response stopped"
        case .reset(afterBytes: 0): "the upstream closed the connection without a response"
        case .reset(let bytes): "the upstream's connection broke after \(bytes) bytes of the response"
        case .truncated(let expected?, let got): "the upstream's response ended after \(got) of \(expected) bytes"
        case .truncated(nil, let got): "the upstream's response ended before its last chunk, after \(got) bytes"
        case .badResponse(let reason): "the upstream's response is not valid HTTP: \(reason)"
        case .headTooLarge: "the upstream's response has more header fields than allowed (`limits.upstream_head`)"
        case .decoding(let reason): "the upstream's response could not be decompressed: \(reason)"
        case .unprovenEnd(let reason): "the upstream's response may be cut: \(reason.rawValue)"
        case .requestBodyFailed(let reason): "the request's body did not arrive whole: \(reason)"
        case .tooSlow(let pace):
            "ended: it transferred only \(pace) bytes a second while other requests were waiting "
                + "(`limits.minimum_rate`)"
        case .cancelled: "the request was given up"
        }
    }

    package var description: String { message }
}
