import CCurl
import HTTPSemantics

extension CurlTransfer {
    /// Sets up libcurl for a request; throws what cannot be put on the wire.
    ///
    /// - Parameters:
    ///   - bodyLength: nil without a body, else its length, `.some(nil)` for one that comes in chunks.
    ///   - waitsForMultiplexing: whether a connection being made is waited for, to share it, instead of making another.
    func prepare(
        _ request: UpstreamRequest,
        options: UpstreamOptions,
        timeouts: UpstreamTimeouts,
        bodyLength: Int??,
        waitsForMultiplexing: Bool
    ) throws(UpstreamError) {
        guard FieldSyntax.isToken(request.method.utf8) else { throw .invalidRequest("the method is not a token") }
        guard request.url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw .invalidRequest("the URL has blanks or control characters in it")
        }
        setTarget(request)
        setMethod(request.method, bodyLength: bodyLength)
        try setFields(request, options: options, bodyLength: bodyLength)
        setConnection(request, options: options, timeouts: timeouts, bodyLength: bodyLength)
        set(CURLOPT_PIPEWAIT, waitsForMultiplexing)
    }

    private func setTarget(_ request: UpstreamRequest) {
        set(CURLOPT_URL, request.url)
        set(CURLOPT_PATH_AS_IS, true)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_FOLLOWLOCATION, false)
        // HTTP/0.9 is what any garbage looks like.
        set(CURLOPT_HTTP09_ALLOWED, false)
    }

    private func setMethod(_ method: String, bodyLength: Int??) {
        if method == "HEAD" {
            set(CURLOPT_NOBODY, true)
        } else if let length = bodyLength {
            // Chooses the read callback as the body's source; the method's name is replaced.
            set(CURLOPT_UPLOAD, true)
            set(CURLOPT_INFILESIZE_LARGE, offset: length ?? -1)
            set(CURLOPT_CUSTOMREQUEST, method)
        } else {
            set(CURLOPT_HTTPGET, true)
            if method != "GET" { set(CURLOPT_CUSTOMREQUEST, method) }
        }
    }

    private func setFields(
        _ request: UpstreamRequest,
        options: UpstreamOptions,
        bodyLength: Int??
    ) throws(UpstreamError) {
        var fields = request.fields.withoutHopByHop()
        fields.remove("content-length")
        // Larder has read the client's expectation; libcurl would wait a second for an upstream that has none.
        fields.remove("expect")
        if request.decodes {
            fields.remove("accept-encoding")
            fields.append("Accept-Encoding", ContentDecoder.codings)
        }
        if let userAgent = options.userAgent, !fields.contains("user-agent") { fields.append("User-Agent", userAgent) }
        if bodyLength == nil, ["POST", "PUT", "PATCH"].contains(request.method) {
            // A server may want a length from methods that usually have a body (RFC 9110 §8.6).
            fields.append("Content-Length", "0")
        }
        for field in fields.lines { try add(field) }
        // A name without a value keeps libcurl from adding its own.
        for name in ["Accept", "Expect", "Proxy-Connection"] where !fields.contains(named: name.lowercased()) {
            add(fieldLine: Array("\(name):".utf8))
        }
        setFields()
    }

    private func add(_ field: Field) throws(UpstreamError) {
        guard FieldSyntax.isToken(field.name) else { throw .invalidRequest("a field's name is not a token") }
        guard !field.value.contains(where: { $0 == 0 || $0 == 0x0A || $0 == 0x0D }) else {
            throw .invalidRequest(
                "the value of \(String(decoding: field.name, as: UTF8.self)) has a line end or NUL in it"
            )
        }
        // libcurl's way to say "present but empty" is a semicolon (CURLOPT_HTTPHEADER).
        let rest: [UInt8] = field.value.isEmpty ? [UInt8(ascii: ";")] : Array(": ".utf8) + field.value
        add(fieldLine: field.name + rest)
    }

    private func setConnection(
        _ request: UpstreamRequest,
        options: UpstreamOptions,
        timeouts: UpstreamTimeouts,
        bodyLength: Int??
    ) {
        set(CURLOPT_NOSIGNAL, true)
        set(CURLOPT_TCP_KEEPALIVE, true)
        set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(timeouts.connect.nanoseconds / 1_000_000)))
        set(CURLOPT_HTTP_VERSION, options.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
        if !request.isSafe || bodyLength != nil {
            // libcurl also looks whether the connection has been closed meanwhile (UpstreamOptions.unsafeReuseAge).
            set(CURLOPT_MAXAGE_CONN, Int(options.unsafeReuseAge.seconds))
        }
        if let caFile = options.caFile {
            set(CURLOPT_CAINFO, caFile)
            set(CURLOPT_PROXY_CAINFO, caFile)
        }
        if let path = request.unixSocket {
            set(CURLOPT_UNIX_SOCKET_PATH, path)
            set(CURLOPT_PROXY, "")
        } else {
            switch options.proxy {
            case .environment: break
            case .none: set(CURLOPT_PROXY, "")
            case .url(let url): set(CURLOPT_PROXY, url)
            }
        }
    }
}
