import CCurl
import HTTPSemantics

/// One easy handle of libcurl with all that it points to: field lists, the error buffer, its owner.
///
/// Used on the loop's thread only. All callbacks run while libcurl is on the stack, so they return a result and must not
/// call libcurl.
final class CurlTransfer {
    /// The result of offering a piece of the response body.
    enum Taking {
        case taken
        /// The piece was not accepted; libcurl offers it again once receiving resumes.
        case pause
        case abort
    }

    /// The result of asking for more of the request body.
    enum Supply {
        case bytes(Int)
        case end
        /// Nothing is available yet; libcurl asks again once sending resumes.
        case pause
        case abort
    }

    protocol Owner: AnyObject {
        /// The request is about to be sent on a connection; false forbids it. Called again if libcurl wants to repeat it.
        func curlWillSend() -> Bool
        /// A line of the response's head with its line end, including the final empty one; false aborts.
        func curlReceived(headLine: UnsafeRawBufferPointer) -> Bool
        /// A piece of the response body, still in its content coding.
        func curlReceived(body: UnsafeRawBufferPointer) -> Taking
        /// Fills `room` with the next bytes of the request body.
        func curlWantsBody(_ room: UnsafeMutableRawBufferPointer) -> Supply
        /// Rewinds the request body to its first byte; false if some of it is gone.
        func curlRewinds() -> Bool
    }

    /// The owner keeps this object alive, not the other way round; only `reuse` changes it.
    private(set) unowned var owner: any Owner
    let handle: UnsafeMutableRawPointer

    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var fieldList: UnsafeMutablePointer<curl_slist>?
    /// The fields of the GET for which that list was made; nil if there is none.
    private var listed: (fields: Fields, decodes: Bool)?
    /// Whether only URL and fields are to be set for another GET of the same options.
    private(set) var isReusable = false

    init(owner: any Owner) {
        precondition(CurlLibrary.isReady, "libcurl could not be initialised")
        guard let handle = curl_easy_init() else { preconditionFailure("out of memory for libcurl") }
        self.owner = owner
        self.handle = handle
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        setCallbacks()
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(fieldList)
        errorText.deallocate()
    }

    /// Gives a handle that is reusable, and whose transfer is over, to the next one.
    func reuse(for owner: any Owner) {
        self.owner = owner
        errorText[0] = 0
    }

    // MARK: Options

    func set(_ option: CURLoption, _ value: Int) { larder_easy_set_long(handle, option, value) }
    func set(_ option: CURLoption, _ value: Bool) { larder_easy_set_long(handle, option, value ? 1 : 0) }
    func set(_ option: CURLoption, offset value: Int) { larder_easy_set_offset(handle, option, value) }

    /// Sets a text, which libcurl copies.
    func set(_ option: CURLoption, _ value: String) { larder_easy_set_string(handle, option, value) }

    /// Adds a field line to the request; it must not contain a line end, and ends with its first NUL.
    private func add(fieldLine line: UnsafePointer<CChar>) {
        guard let longer = curl_slist_append(fieldList, line) else { preconditionFailure("out of memory for a field") }
        fieldList = longer
    }

    private func setCallbacks() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        larder_easy_set_pointer(handle, CURLOPT_PRIVATE, context)
        larder_easy_set_pointer(handle, CURLOPT_ERRORBUFFER, errorText)

        larder_easy_set_data_callback(handle, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return CurlTransfer.from(context).owner.curlReceived(headLine: line)
                ? line.count : Int(CURL_WRITEFUNC_ERROR)
        }
        larder_easy_set_pointer(handle, CURLOPT_HEADERDATA, context)

        larder_easy_set_data_callback(handle, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return switch CurlTransfer.from(context).owner.curlReceived(body: piece) {
            case .taken: piece.count
            case .pause: Int(CURL_WRITEFUNC_PAUSE)
            case .abort: Int(CURL_WRITEFUNC_ERROR)
            }
        }
        larder_easy_set_pointer(handle, CURLOPT_WRITEDATA, context)

        larder_easy_set_data_callback(handle, CURLOPT_READFUNCTION) { bytes, size, count, context in
            let room = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
            return switch CurlTransfer.from(context).owner.curlWantsBody(room) {
            case .bytes(let count): count
            case .end: 0
            case .pause: Int(CURL_READFUNC_PAUSE)
            case .abort: Int(CURL_READFUNC_ABORT)
            }
        }
        larder_easy_set_pointer(handle, CURLOPT_READDATA, context)

        larder_easy_set_seek_callback(handle, CURLOPT_SEEKFUNCTION) { context, offset, origin in
            // libcurl only ever rewinds to the beginning (CURLOPT_SEEKFUNCTION).
            guard offset == 0, origin == 0 else { return CURL_SEEKFUNC_FAIL }
            return CurlTransfer.from(context).owner.curlRewinds() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
        }
        larder_easy_set_pointer(handle, CURLOPT_SEEKDATA, context)

        larder_easy_set_prereq_callback(handle, CURLOPT_PREREQFUNCTION) { context, _, _, _, _ in
            CurlTransfer.from(context).owner.curlWillSend() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        larder_easy_set_pointer(handle, CURLOPT_PREREQDATA, context)
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> CurlTransfer {
        Unmanaged<CurlTransfer>.fromOpaque(context!).takeUnretainedValue()
    }

    /// The transfer that an easy handle belongs to; nil for handles that libcurl makes for itself.
    static func of(_ easy: UnsafeMutableRawPointer?) -> CurlTransfer? {
        var context: UnsafeMutableRawPointer?
        guard let easy, larder_easy_get_pointer(easy, CURLINFO_PRIVATE, &context) == CURLE_OK, context != nil
        else { return nil }
        return from(context)
    }

    // MARK: Facts

    /// The number of body bytes received over the wire, without framing.
    var receivedBytes: Int { offset(CURLINFO_SIZE_DOWNLOAD_T) }

    /// The response's `Content-Length`; nil if absent.
    var announcedBytes: Int? {
        let length = offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        return length < 0 ? nil : length
    }

    var madeConnections: Int { long(CURLINFO_NUM_CONNECTS) }

    /// The error number of the system call that failed last; 0 if none did.
    var systemError: Int32 { Int32(truncatingIfNeeded: long(CURLINFO_OS_ERRNO)) }
    var isConnected: Bool { offset(CURLINFO_CONNECT_TIME_T) > 0 }

    /// Watches how the connection ends, from within a callback; nil without TLS.
    func watchingClosure() -> CurlClosure? { CurlClosure.watching(handle) }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        larder_easy_get_long(handle, info, &value)
        return value
    }

    private func offset(_ info: CURLINFO) -> Int {
        var value: curl_off_t = 0
        larder_easy_get_offset(handle, info, &value)
        return value
    }

    /// The result of the transfer, with libcurl's message if it has failed.
    func result(_ code: CURLcode) -> CurlResult {
        if code == CURLE_OK { return CurlResult(code: code, text: "") }
        let text = String(cString: errorText)
        return CurlResult(code: code, text: text.isEmpty ? String(cString: curl_easy_strerror(code)) : text)
    }
}

/// The linked libcurl: its one-time initialisation and its version.
package enum CurlLibrary {
    /// Initialises libcurl once for the process; must be read before a handle is made.
    static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// The version of libcurl, with those of the libraries that it uses.
    package static var version: String { String(cString: curl_version()) }
}

extension CurlTransfer {
    /// Sets up libcurl for a request; throws if the request cannot be sent.
    ///
    /// - Parameters:
    ///   - waitsForMultiplexing: Whether to wait for a connection in the making, to share it, instead of making another.
    func prepare(
        _ request: UpstreamRequest,
        options: UpstreamOptions,
        body: BodyFraming,
        waitsForMultiplexing: Bool
    )
        throws(UpstreamError)
    {
        guard FieldSyntax.isToken(request.method.utf8) else { throw .invalidRequest("the method is not a token") }
        guard request.url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F })
        else { throw .invalidRequest("the URL has blanks or control characters in it") }
        let isPlain =
            request.method == "GET" && body == .none && request.unixSocket == nil && request.timeouts == .init()
        if isPlain, isReusable {
            set(CURLOPT_URL, request.url)
        } else {
            setTarget(request)
            setMethod(request.method, body: body)
            setConnection(request, options: options, body: body)
        }
        isReusable = isPlain
        try setFields(request, options: options, body: body)
        set(CURLOPT_PIPEWAIT, waitsForMultiplexing)
    }

    private func setTarget(_ request: UpstreamRequest) {
        set(CURLOPT_URL, request.url)
        set(CURLOPT_PATH_AS_IS, true)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_FOLLOWLOCATION, false)
        // Any garbage looks like HTTP/0.9.
        set(CURLOPT_HTTP09_ALLOWED, false)
    }

    private func setMethod(_ method: String, body: BodyFraming) {
        if method == "HEAD" {
            set(CURLOPT_NOBODY, true)
        } else if body != .none {
            // Selects the read callback as the body's source; the method's name is replaced below.
            set(CURLOPT_UPLOAD, true)
            let length = if case .length(let length) = body { length } else { -1 }
            set(CURLOPT_INFILESIZE_LARGE, offset: length)
            set(CURLOPT_CUSTOMREQUEST, method)
        } else {
            set(CURLOPT_HTTPGET, true)
            if method != "GET" { set(CURLOPT_CUSTOMREQUEST, method) }
        }
    }

    private func setFields(_ request: UpstreamRequest, options: UpstreamOptions, body: BodyFraming)
        throws(UpstreamError)
    {
        // Most requests have the fields of the last one.
        if let listed, listed.decodes == request.decodes, listed.fields == request.fields { return }
        var fields = request.fields.withoutHopByHop()
        // Larder has handled the client's expectation; libcurl would wait a second for an upstream that ignores it.
        fields.removeAll { $0.isOne(of: Self.ownFields) }
        if request.decodes {
            fields.remove(.acceptEncoding)
            fields.append("Accept-Encoding", ContentDecoder.codings)
        }
        if body == .none, ["POST", "PUT", "PATCH"].contains(request.method) {
            // A server may want a length from methods that usually have a body (RFC 9110 §8.6).
            fields.append("Content-Length", "0")
        }
        larder_easy_set_list(handle, CURLOPT_HTTPHEADER, nil)
        curl_slist_free_all(fieldList)
        (fieldList, listed) = (nil, nil)
        for line in fields { try add(line) }
        // A name without a value prevents libcurl from adding the field.
        if !fields.contains(.accept) { add(fieldLine: "Accept:") }
        if body != .none { add(fieldLine: "Expect:") }
        if Self.mayUseProxy(options) { add(fieldLine: "Proxy-Connection:") }
        larder_easy_set_list(handle, CURLOPT_HTTPHEADER, fieldList)
        if request.method == "GET", body == .none { listed = (request.fields, request.decodes) }
    }

    private static func mayUseProxy(_ options: UpstreamOptions) -> Bool {
        switch options.proxy {
        case .environment: Destination.hasProxy
        case .none: false
        case .url: true
        }
    }

    private static let ownFields: KnownFields = [.contentLength, .expect]

    private func add(_ line: Fields.Line) throws(UpstreamError) {
        let (name, value) = (line.name, line.value)
        guard FieldSyntax.isToken(name) else { throw .invalidRequest("a field's name is not a token") }
        guard !value.contains(where: { $0 == 0 || $0 == 0x0A || $0 == 0x0D }) else {
            let name = String(decoding: name, as: UTF8.self)
            throw .invalidRequest("the value of \(name) has a line end or NUL in it")
        }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: name.count + value.count + 3) { room in
            var end = room.update(fromContentsOf: name)
            // libcurl marks a field that is present but empty with a semicolon (CURLOPT_HTTPHEADER).
            end = room[end...].update(fromContentsOf: value.isEmpty ? [0x3B] : [0x3A, 0x20])
            end = room[end...].update(fromContentsOf: value)
            room[end] = 0
            room.withMemoryRebound(to: CChar.self) { add(fieldLine: $0.baseAddress!) }
        }
    }

    private func setConnection(_ request: UpstreamRequest, options: UpstreamOptions, body: BodyFraming) {
        let timeouts = options.timeouts.applying(request.timeouts)
        set(CURLOPT_NOSIGNAL, true)
        set(CURLOPT_TCP_KEEPALIVE, true)
        set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(timeouts.connect.nanoseconds / 1_000_000)))
        set(CURLOPT_HTTP_VERSION, options.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
        // libcurl 7.88 forgets the rest of a head in HTTP/2 that is larger than its buffer, and takes none over 128 KiB.
        if options.http2 { set(CURLOPT_BUFFERSIZE, 128 << 10) }
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
        if !request.isSafe || body != .none {
            // libcurl also checks whether the connection has been closed meanwhile (UpstreamOptions.unsafeReuseAge).
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
            case .environment:
                if !Destination.hasProxy {
                    set(CURLOPT_PROXY, "")
                } else if let list = Destination.noProxy, Destination(request.url)?.isNamed(inNoProxy: list) == true {
                    set(CURLOPT_PROXY, "")
                }
            case .none: set(CURLOPT_PROXY, "")
            case .url(let url): set(CURLOPT_PROXY, url)
            }
        }
    }
}
