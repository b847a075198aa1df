import CCurl

/// libcurl's result of a transfer.
struct CurlResult {
    let code: CURLcode
    /// libcurl's message for this failure.
    let text: String

    var isSuccess: Bool { code == CURLE_OK }

    /// Whether the connection failed while sending or receiving.
    var isLostConnection: Bool {
        [CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2, CURLE_HTTP2_STREAM].contains(code)
    }

    /// Whether the connection's HTTP/2 session ended, for whatever reason, before this request was done.
    var isEndOfSession: Bool { code == CURLE_HTTP2 || code == CURLE_RECV_ERROR && text.contains("nghttp2") }

    /// The error for a failure before any request was sent.
    func errorBeforeSending(to destination: Destination? = nil) -> UpstreamError {
        switch code {
        case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .invalidRequest(text)
        case CURLE_COULDNT_RESOLVE_HOST: .couldNotResolve(text)
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxy(text)
        case CURLE_OPERATION_TIMEDOUT: .connectTimeout
        case CURLE_COULDNT_CONNECT where text.hasPrefix("Failed to connect") && destination?.isNamed(by: text) == false:
            .proxy(text)
        case CURLE_COULDNT_CONNECT: .refused(text)
        case _ where isTLS: .tls(text)
        // A proxy's refusal to open a tunnel arrives as a failed read.
        case _ where text.contains("CONNECT"): .proxy(text)
        default: .refused(text)
        }
    }

    /// The error for a failure while waiting for the response's head.
    func errorBeforeHead() -> UpstreamError {
        switch code {
        // A single line over libcurl's 100 KiB ends as "out of memory".
        case CURLE_OUT_OF_MEMORY: .headTooLarge
        case _ where text.hasPrefix("Too large response headers"): .headTooLarge
        // A response that is not HTTP looks like HTTP/0.9, which is not allowed.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: .badResponse(text)
        case CURLE_UPLOAD_FAILED, CURLE_READ_ERROR: .requestBodyFailed(text)
        case CURLE_HTTP2: .badResponse(text)
        // A faulty frame, or a head over libcurl's 128 KiB.
        case CURLE_RECV_ERROR where text.contains("nghttp2"): .badResponse(text)
        case _ where isTLS: .tls(text)
        default: .reset(afterBytes: 0)
        }
    }

    /// The error for a failure while receiving the response's body.
    func errorInBody(announced: Int?, received: Int) -> UpstreamError {
        switch code {
        case CURLE_PARTIAL_FILE: .truncated(expected: announced, got: received)
        // Data that exceeds libcurl's buffers is reported as lack of memory.
        case CURLE_WRITE_ERROR, CURLE_OUT_OF_MEMORY, CURLE_WEIRD_SERVER_REPLY: .badResponse(text)
        case CURLE_RECV_ERROR where text.contains("chunk"): .badResponse(text)
        case CURLE_UPLOAD_FAILED, CURLE_READ_ERROR: .requestBodyFailed(text)
        default: .reset(afterBytes: received)
        }
    }

    private var isTLS: Bool {
        [
            CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
            CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_SHUTDOWN_FAILED,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT,
            CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_USE_SSL_FAILED,
        ].contains(code)
    }
}
