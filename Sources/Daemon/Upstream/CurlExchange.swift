import CCurl
import Glibc
package import HTTPSemantics

/// One HTTP exchange over libcurl that blocks its thread: for commands, which have no event loop.
///
/// It uses no proxy, and by default waits for the response without a time limit.
package struct CurlExchange {
    let method: String
    /// An absolute `http` URL.
    let url: String
    package var fields: Fields
    /// Nil for a request without a body.
    let body: [UInt8]?
    /// A file to send as the body, instead of `body`.
    package var upload: Upload?
    /// The path of a Unix socket to connect to instead of the URL's host.
    let unixSocket: String?
    /// The number of seconds without a byte after which the connection counts as dead; nil for no limit.
    package var silence: Int?

    package init(method: String, url: String, fields: Fields, body: [UInt8]? = nil, unixSocket: String? = nil) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        self.unixSocket = unixSocket
    }

    /// A file to send.
    package struct Upload {
        let descriptor: Int32
        let length: Int?
        let sent: (Int) -> Void

        /// - Parameters:
        ///   - descriptor: A descriptor open for reading until the exchange is over.
        ///   - length: The file's length; nil for what can only be read once and to its end, such as a pipe.
        ///   - sent: Called with the number of bytes sent so far.
        package init(descriptor: Int32, length: Int?, sent: @escaping (Int) -> Void) {
            (self.descriptor, self.length, self.sent) = (descriptor, length, sent)
        }
    }

    /// The reason why there is no complete response.
    package enum Failure: Error {
        /// No server accepted a connection; contains the system's error number, 0 if there is none.
        case notConnected(Int32)
        case unknownHost(String)
        case notHTTP
        case silent
        /// The connection ended or broke; contains libcurl's message.
        case broken(String)
    }

    package func perform(_ received: (UpstreamHead, UnsafeRawBufferPointer) -> Void) throws(Failure) -> UpstreamHead {
        let result = withoutActuallyEscaping(received) { received in
            BlockingTransfer(body: body ?? [], upload: upload, received: received).perform(self)
        }
        return try result.get()
    }

    fileprivate func prepare(_ curl: CurlTransfer) throws(UpstreamError) {
        var options = UpstreamOptions()
        options.proxy = .none
        let request = UpstreamRequest(method: method, url: url, fields: fields, unixSocket: unixSocket, decodes: false)
        let framing: BodyFraming =
            if let upload { .init(ofBodyWith: upload.length) } else { body.map { .length($0.count) } ?? .none }
        try curl.prepare(request, options: options, body: framing, waitsForMultiplexing: false)
        guard let silence else { return }
        curl.set(CURLOPT_LOW_SPEED_LIMIT, 1)
        curl.set(CURLOPT_LOW_SPEED_TIME, silence)
    }
}

/// Handles libcurl's callbacks during an exchange.
private final class BlockingTransfer: CurlTransfer.Owner {
    private let body: [UInt8]
    private let upload: CurlExchange.Upload?
    private var sent = 0
    private let received: (UpstreamHead, UnsafeRawBufferPointer) -> Void
    private var reader = ResponseHeadReader(limit: UpstreamOptions().maxHeadBytes, decodes: false)
    private var head: UpstreamHead?
    private var isMalformed = false

    init(
        body: [UInt8],
        upload: CurlExchange.Upload?,
        received: @escaping (UpstreamHead, UnsafeRawBufferPointer) -> Void
    ) {
        (self.body, self.upload, self.received) = (body, upload, received)
    }

    func perform(_ exchange: CurlExchange) -> Result<UpstreamHead, CurlExchange.Failure> {
        let curl = CurlTransfer(owner: self)
        do throws(UpstreamError) {
            try exchange.prepare(curl)
        } catch {
            return .failure(.broken(error.message))
        }
        let result = curl.result(curl_easy_perform(curl.handle))
        if isMalformed { return .failure(.notHTTP) }
        switch result.code {
        case CURLE_OK: return head.map { .success($0) } ?? .failure(.broken(result.text))
        case CURLE_COULDNT_CONNECT: return .failure(.notConnected(curl.systemError))
        case CURLE_COULDNT_RESOLVE_HOST: return .failure(.unknownHost(result.text))
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: return .failure(.notHTTP)
        case CURLE_OPERATION_TIMEDOUT: return .failure(curl.isConnected ? .silent : .notConnected(0))
        default: return .failure(.broken(result.text))
        }
    }

    func curlWillSend() -> Bool { true }

    func curlReceived(headLine: UnsafeRawBufferPointer) -> Bool {
        switch reader.received(headLine) {
        case .incomplete, .informational: break
        case .final(let head): self.head = head
        case .failed: isMalformed = true
        }
        return !isMalformed
    }

    func curlReceived(body bytes: UnsafeRawBufferPointer) -> CurlTransfer.Taking {
        guard let head else { return .abort }
        received(head, bytes)
        return .taken
    }

    func curlWantsBody(_ room: UnsafeMutableRawBufferPointer) -> CurlTransfer.Supply {
        if let upload {
            let count = upload.read(from: sent, into: room)
            // A file that has become shorter no longer has the announced length.
            guard count > 0 else { return count == 0 && sent == upload.length ?? sent ? .end : .abort }
            sent += count
            upload.sent(sent)
            return .bytes(count)
        }
        let piece = body[sent...].prefix(room.count)
        guard !piece.isEmpty else { return .end }
        room.copyBytes(from: piece)
        sent += piece.count
        return .bytes(piece.count)
    }

    func curlRewinds() -> Bool {
        if let upload, upload.length == nil, sent > 0 { return false }
        sent = 0
        return true
    }
}

extension CurlExchange.Upload {
    /// Reads the next bytes; 0 at the end, negative after an error.
    fileprivate func read(from position: Int, into room: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count =
                if let length {
                    pread(descriptor, room.baseAddress, min(room.count, length - position), off_t(position))
                } else {
                    Glibc.read(descriptor, room.baseAddress, room.count)
                }
            if count >= 0 || errno != EINTR { return count }
        }
    }
}
