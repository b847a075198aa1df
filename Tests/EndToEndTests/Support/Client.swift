import Foundation

/// A response as it came over the wire.
struct Response: Sendable {
    let status: Int
    let reason: String
    let fields: FieldLines
    /// The body without its framing.
    let body: [UInt8]
    /// The chunks it came in; empty when it was not chunked.
    var chunks: [[UInt8]] = []
    var trailers = FieldLines()
    /// The interim answers (1xx) before it.
    var interim: [Int] = []

    subscript(name: String) -> String? { fields[name] }

    var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as JSON; nil when it is none.
    var json: Any? { try? JSONSerialization.jsonObject(with: Data(body), options: .fragmentsAllowed) }

    /// The body as a JSON object; empty when it is none.
    var object: [String: Any] { json as? [String: Any] ?? [:] }

    /// What `Cache-Status` says about this daemon, without blanks: `larder;hit;ttl=59`.
    var cacheStatus: String { (self["Cache-Status"] ?? "").filter { $0 != " " } }

    var isHit: Bool { cacheStatus.hasPrefix("larder;hit") }

    /// Whether it is one of Larder's own errors.
    var isProblem: Bool { self["Content-Type"]?.hasPrefix("application/problem+json") == true }
}

/// One connection to a server, which sends exactly what it is told and shows exactly what came back.
final class Client {
    /// How the address is reached.
    enum Address: Sendable {
        case port(UInt16)
        case unix(String)

        var connection: Socket {
            get throws(SocketError) {
                switch self {
                case .port(let port): try Socket.connect(port: port)
                case .unix(let path): try Socket.connect(unix: path)
                }
            }
        }

        /// What stands in `Host` by default.
        var host: String {
            switch self {
            case .port(let port): "127.0.0.1:\(port)"
            case .unix: "localhost"
            }
        }
    }

    let socket: Socket
    private let host: String
    private var reader: MessageReader

    /// Connects; nothing the peer does not do within `limit` is waited for.
    init(_ address: Address, limit: Duration = .seconds(600)) throws {
        socket = try address.connection
        try socket.limit(limit)
        host = address.host
        reader = MessageReader(socket)
    }

    convenience init(port: UInt16) throws { try self.init(.port(port)) }

    // MARK: Whole exchanges

    /// Sends a request and reads its response, on this connection.
    func request(
        _ method: String,
        _ target: String,
        _ fields: FieldLines = [:],
        body: String? = nil
    ) throws -> Response {
        try send(Self.message(method, target, fields, body: body.map { Array($0.utf8) }, host: host))
        return try response(to: method)
    }

    func get(_ target: String, _ fields: FieldLines = [:]) throws -> Response { try request("GET", target, fields) }

    // MARK: Parts of them

    func send(_ bytes: [UInt8]) throws { try socket.send(bytes) }

    func send(_ text: String) throws { try socket.send(text.utf8) }

    /// Reads the next response; it depends on the request's method whether it has a body.
    func response(to method: String = "GET") throws -> Response {
        var interim: [Int] = []
        while true {
            guard let head = try reader.head() else { throw SocketError.closed }
            let parts = head.firstLine.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count >= 2, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0", let status = Int(parts[1]) else {
                throw MessageReader.Malformed(description: "a status line \"\(head.firstLine)\"")
            }
            if (100..<200).contains(status) {
                interim.append(status)
                continue
            }
            var response = try body(method, status, parts.count > 2 ? String(parts[2]) : "", head.fields)
            response.interim = interim
            return response
        }
    }

    /// Reads the next interim answer's status.
    func interim() throws -> Int? {
        guard let head = try reader.head() else { throw SocketError.closed }
        return Int(head.firstLine.split(separator: " ")[1])
    }

    /// Reads the next response's head and leaves its body.
    func head() throws -> (status: Int, fields: FieldLines) {
        guard let head = try reader.head() else { throw SocketError.closed }
        return (Int(head.firstLine.split(separator: " ")[1]) ?? 0, head.fields)
    }

    /// Exactly so many bytes, framing included.
    func bytes(_ count: Int) throws -> [UInt8] { try reader.bytes(count) }

    /// The next chunk of a chunked body; nil for the last.
    func chunk() throws -> [UInt8]? { try reader.chunk() }

    /// All that comes until the server ends the connection.
    func rest() throws -> [UInt8] { try reader.rest() }

    /// Whether the server ends the connection next, instead of saying anything.
    func isClosed() throws -> Bool {
        do { return try reader.isAtEnd() } catch SocketError.reset { return true }
    }

    private func body(_ method: String, _ status: Int, _ reason: String, _ fields: FieldLines) throws -> Response {
        if method == "HEAD" || status == 204 || status == 304 {
            return Response(status: status, reason: reason, fields: fields, body: [])
        }
        if fields["Transfer-Encoding"]?.lowercased() == "chunked" {
            let (chunks, trailers) = try reader.chunks()
            return Response(
                status: status,
                reason: reason,
                fields: fields,
                body: Array(chunks.joined()),
                chunks: chunks,
                trailers: trailers
            )
        }
        let body = try fields["Content-Length"].flatMap { Int($0) }.map { try reader.bytes($0) } ?? reader.rest()
        return Response(status: status, reason: reason, fields: fields, body: body)
    }

    /// The bytes of a request; `Host` and `Content-Length` are added where they are missing.
    static func message(
        _ method: String,
        _ target: String,
        _ fields: FieldLines = [:],
        body: [UInt8]? = nil,
        host: String
    ) -> [UInt8] {
        var all = fields.contains("Host") ? FieldLines() : ["Host": host]
        all = all + fields
        if let body, !fields.contains("Content-Length"), !fields.contains("Transfer-Encoding") {
            all.append("Content-Length", "\(body.count)")
        }
        return Array("\(method) \(target) HTTP/1.1\r\n\(all.text)\r\n".utf8) + (body ?? [])
    }
}
