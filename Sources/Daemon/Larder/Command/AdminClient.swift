import Admin
import Glibc
import HTTPSemantics
import HTTPServer
import Proxy
import Upstream

/// A client of a running daemon's admin side, for commands: one request at a time, which blocks the thread.
struct AdminClient {
    let address: Address
    let token: String?
    /// A Unix socket of the daemon that this user may not connect to.
    var socket: String?

    /// Sends a request, waits for as long as it takes, and returns the response's body; a status that is not 2xx is an error.
    func send(_ method: String, _ target: String, body: [UInt8]? = nil) throws(AdminClientError) -> [UInt8] {
        var received: [UInt8] = []
        _ = try perform(exchange(method, target, body, accept: "application/json")) { received += $1 }
        return received
    }

    /// Sends a request whose request or response body may be a large file; a status that is not 2xx is an error.
    func transfer(
        _ target: String,
        body: [UInt8] = [],
        upload: CurlExchange.Upload? = nil,
        received: (UnsafeRawBufferPointer) -> Void
    ) throws(AdminClientError) {
        var exchange = exchange("POST", target, upload == nil ? body : nil, accept: "*/*")
        exchange.upload = upload
        _ = try perform(exchange) { received($1) }
    }

    /// Seconds of silence after which the daemon counts as gone; a stream is never silent for longer than 15.
    static let patience = 60

    /// Listens to a stream of events until it ends or breaks; returns the number to resume from.
    ///
    /// A body makes it a POST. After `silence`, in seconds, the connection counts as dead.
    func listen(
        _ target: String,
        body: [UInt8]? = nil,
        after lastID: String = "",
        silence: Int? = nil,
        each: (ReceivedEvent) -> Void
    ) throws(AdminClientError) -> String {
        var exchange = exchange(body == nil ? "GET" : "POST", target, body, accept: EventStreamText.mediaType)
        exchange.silence = silence
        if !lastID.isEmpty { exchange.fields.append("Last-Event-ID", lastID) }
        var reader = EventReader(lastID: lastID)
        var hasBegun = false
        let head: UpstreamHead
        do throws(AdminClientError) {
            head = try perform(exchange) { head, bytes in
                guard head.isEventStream else { return }
                hasBegun = true
                for event in reader.take(bytes) { each(event) }
            }
        } catch {
            // A stream that breaks is over; to resume, call again with the last number.
            if hasBegun { return reader.lastID }
            throw error
        }
        guard head.isEventStream else {
            throw AdminClientError("\(address) does not send events; is it the admin side of this version of Larder?")
        }
        return reader.lastID
    }

    private func exchange(_ method: String, _ target: String, _ body: [UInt8]?, accept: String) -> CurlExchange {
        var fields = Fields([Field("Accept", accept)])
        if let token { fields.append("Authorization", "Bearer \(token)") }
        if body != nil { fields.append("Content-Type", "application/json") }
        let (host, socket): (String, String?) =
            if case .unix(let path, _, _) = address { ("localhost", path) } else { ("\(address)", nil) }
        let url = "http://\(host)\(target)"
        return CurlExchange(method: method, url: url, fields: fields, body: body, unixSocket: socket)
    }

    private func perform(_ exchange: CurlExchange, _ received: (UpstreamHead, UnsafeRawBufferPointer) -> Void)
        throws(AdminClientError) -> UpstreamHead
    {
        // A daemon that closes early must be an error here, not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        if token != nil, !address.isUnix { try checkPeer() }
        var refusal: [UInt8] = []
        let head = try result(of: exchange) { head, bytes in
            if (200..<300).contains(head.status) { received(head, bytes) } else { refusal += bytes }
        }
        guard (200..<300).contains(head.status) else {
            throw AdminClientError(status: head.status, refusal, hadToken: token != nil, socket: socket)
        }
        return head
    }

    /// Checks that the server is an admin side before it gets the token.
    ///
    /// A wrong address may be anyone's, or Larder's own data side, which would pass the token on to the API.
    private func checkPeer() throws(AdminClientError) {
        let request = CurlExchange(method: "GET", url: "http://\(address)/count", fields: Fields())
        var body: [UInt8] = []
        let head = try result(of: request) { _, bytes in body += bytes.prefix(max(0, 1024 - body.count)) }
        if head.fields.combined("cache-status")?.contains("larder") == true {
            throw AdminClientError(
                "\(address) is where Larder serves programs; name its admin address with --admin or LARDER_ADMIN"
            )
        }
        let fault = RequestFault.tooManyConnections
        if head.status == fault.status, body == fault.problem.bytes {
            throw AdminClientError(status: head.status, body, hadToken: true)
        }
        let challenge = head.fields.combined("www-authenticate") ?? ""
        guard head.status == 401, challenge.hasPrefix(AdminToken.challenge) else {
            throw AdminClientError(
                "what listens on \(address) is not Larder's admin side, so the token was not sent to it"
            )
        }
    }

    private func result(
        of exchange: CurlExchange,
        _ received: (UpstreamHead, UnsafeRawBufferPointer) -> Void
    ) throws(AdminClientError) -> UpstreamHead {
        do throws(CurlExchange.Failure) {
            return try exchange.perform(received)
        } catch { throw AdminClientError(error, address) }
    }
}
