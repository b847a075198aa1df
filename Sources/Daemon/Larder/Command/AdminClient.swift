import Glibc
import Settings

/// Asks the admin side of a running daemon: one request, one connection, blocking.
struct AdminClient {
    let address: Address
    /// The admin token, if one was found.
    let token: String?
    /// Seconds without a byte after which the daemon counts as hung.
    var timeout = 60

    /// An answer as it came.
    struct Response {
        var status: Int
        var body: [UInt8]
    }

    /// Sends a request; an answer that is not 2xx is an error.
    func send(_ method: String, _ target: String, body: [UInt8]? = nil) throws(AdminClientError) -> Response {
        // A daemon that closes early must be an error here, not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        let socket = try connected()
        defer { close(socket) }
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\nAccept: application/json\r\nConnection: close\r\n"
        if let token { head += "Authorization: Bearer \(token)\r\n" }
        if let body { head += "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n" }
        try write(Array((head + "\r\n").utf8) + (body ?? []), to: socket)
        let answer = try AdminClient.parse(try readAll(from: socket))
        guard (200..<300).contains(answer.status) else {
            throw AdminClientError(refusal: answer, hadToken: token != nil)
        }
        return answer
    }

    var host: String {
        if case .unix = address { "localhost" } else { address.description }
    }

    // MARK: Sockets

    func connected() throws(AdminClientError) -> Int32 {
        switch address {
        case .unix(let path, _, _): try connect(path: path)
        case .tcp(let host, let port): try connect(host: host, port: port)
        }
    }

    private func connect(path: String) throws(AdminClientError) -> Int32 {
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        return try withUnsafePointer(to: &name) { pointer throws(AdminClientError) in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer throws(AdminClientError) in
                try open(AF_UNIX, pointer, size)
            }
        }
    }

    private func connect(host: String, port: UInt16) throws(AdminClientError) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, "\(port)", &hints, &found)
        guard code == 0, let found else {
            throw AdminClientError("\"\(host)\" has no address: \(String(cString: gai_strerror(code)))")
        }
        defer { freeaddrinfo(found) }
        var next: UnsafeMutablePointer<addrinfo>? = found
        var failure = AdminClientError("\"\(host)\" has no address")
        while let candidate = next {
            do throws(AdminClientError) {
                return try open(candidate.pointee.ai_family, candidate.pointee.ai_addr, candidate.pointee.ai_addrlen)
            } catch {
                failure = error
            }
            next = candidate.pointee.ai_next
        }
        throw failure
    }

    private func open(
        _ family: Int32,
        _ name: UnsafePointer<sockaddr>,
        _ size: socklen_t
    ) throws(AdminClientError) -> Int32 {
        let socket = Glibc.socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw AdminClientError(connecting: address, errno) }
        var limit = timeval(tv_sec: Int(timeout), tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(socket, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        while Glibc.connect(socket, name, size) != 0 {
            let code = errno
            if code == EINTR { continue }
            close(socket)
            throw AdminClientError(connecting: address, code)
        }
        return socket
    }

    func write(_ bytes: [UInt8], to socket: Int32) throws(AdminClientError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(socket, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            // A refusal may come before the whole request was taken; it is read all the same.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    private func readAll(from socket: Int32) throws(AdminClientError) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(socket, &buffer, buffer.count)
            if count > 0 { bytes += buffer[..<count] }
            if count == 0 { return bytes }
            guard count < 0, errno != EINTR else { continue }
            let code = errno
            // A reset after a whole answer is how some refusals end.
            if code == ECONNRESET, !bytes.isEmpty { return bytes }
            throw code == EAGAIN
                ? AdminClientError("\(address) has not answered for \(timeout) s")
                : AdminClientError("the connection to \(address) broke: \(systemMessage(code))")
        }
    }

    // MARK: Answers

    /// Reads a whole answer, which ends with the connection.
    static func parse(_ bytes: [UInt8]) throws(AdminClientError) -> Response {
        let notHTTP = AdminClientError("what listens there does not speak HTTP; is it Larder's admin side?")
        let end = Array("\r\n\r\n".utf8)
        guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else { throw notHTTP }
        let lines = String(decoding: bytes[..<start], as: UTF8.self).split(separator: "\r\n")
        let words = lines.first.map { $0.split(separator: " ", maxSplits: 2) } ?? []
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else { throw notHTTP }
        let body = Array(bytes[(start + end.count)...])
        let fields = lines.dropFirst().map { $0.lowercased().filter { $0 != " " } }
        if fields.contains("transfer-encoding:chunked") {
            return Response(status: status, body: try unchunked(body[...]))
        }
        if let length = fields.first(where: { $0.hasPrefix("content-length:") }).flatMap({ Int($0.dropFirst(15)) }) {
            guard body.count >= length else { throw AdminClientError("the answer was cut short") }
            return Response(status: status, body: Array(body[..<length]))
        }
        return Response(status: status, body: body)
    }

    /// Takes the chunks of a body together (RFC 9112 §7.1).
    private static func unchunked(_ bytes: ArraySlice<UInt8>) throws(AdminClientError) -> [UInt8] {
        var rest = bytes
        var body: [UInt8] = []
        while let lineEnd = rest.firstIndex(of: 0x0A) {
            let digits = rest[..<lineEnd].prefix { $0 != 0x3B && $0 != 0x0D }
            guard let size = Int(String(decoding: digits, as: UTF8.self), radix: 16) else { break }
            if size == 0 { return body }
            rest = rest[(lineEnd + 1)...]
            guard rest.count >= size + 2 else { break }
            body += rest.prefix(size)
            rest = rest.dropFirst(size + 2)
        }
        throw AdminClientError("the answer was cut short")
    }
}
