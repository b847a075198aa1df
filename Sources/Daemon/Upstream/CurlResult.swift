import CCurl

/// How libcurl says that a transfer ended.
struct CurlResult {
    let code: CURLcode
    /// libcurl's own words for this very failure.
    let text: String

    var isSuccess: Bool { code == CURLE_OK }

    /// The connection failed while something was sent or received.
    var isLostConnection: Bool {
        [CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2, CURLE_HTTP2_STREAM].contains(code)
    }

    /// The failure before any request was sent.
    func errorBeforeSending() -> UpstreamError {
        switch code {
        case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .invalidRequest(text)
        case CURLE_COULDNT_RESOLVE_HOST: .couldNotResolve(text)
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxy(text)
        case CURLE_OPERATION_TIMEDOUT: .connectTimeout
        case CURLE_COULDNT_CONNECT: .refused(text)
        case _ where isTLS: .tls(text)
        // A proxy's refusal to open a tunnel arrives as a failed read.
        case _ where text.contains("CONNECT"): .proxy(text)
        default: .refused(text)
        }
    }

    /// The failure while the response's head was awaited.
    func errorBeforeHead() -> UpstreamError {
        switch code {
        // A single line over libcurl's 100 KiB ends as "out of memory".
        case CURLE_OUT_OF_MEMORY: .headTooLarge
        case _ where text.hasPrefix("Too large response headers"): .headTooLarge
        // What is no HTTP at all looks like HTTP/0.9, which is not allowed.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: .badAnswer(text)
        case CURLE_SEND_FAIL_REWIND, CURLE_ABORTED_BY_CALLBACK: .reset(afterBytes: 0)
        case CURLE_UPLOAD_FAILED, CURLE_READ_ERROR: .requestBodyFailed(text)
        case CURLE_HTTP2: .badAnswer(text)
        case _ where isTLS: .tls(text)
        default: .reset(afterBytes: 0)
        }
    }

    /// The failure while the response's body was received.
    func errorInBody(announced: Int?, received: Int) -> UpstreamError {
        switch code {
        case CURLE_PARTIAL_FILE: .truncated(expected: announced, got: received)
        // What does not fit libcurl's buffers is reported as lack of memory.
        case CURLE_WRITE_ERROR, CURLE_OUT_OF_MEMORY, CURLE_WEIRD_SERVER_REPLY: .badAnswer(text)
        case CURLE_RECV_ERROR where text.contains("chunk"): .badAnswer(text)
        case CURLE_UPLOAD_FAILED, CURLE_READ_ERROR: .requestBodyFailed(text)
        case CURLE_HTTP2, CURLE_HTTP2_STREAM: .reset(afterBytes: received)
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
