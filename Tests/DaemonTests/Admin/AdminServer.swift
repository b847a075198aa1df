import Foundation

import Glibc
import Testing

@testable import Daemon

/// An admin side that listens, and a client that speaks to it byte by byte.
final class AdminServer: Sendable {
    let daemon: AdminFixture
    private let server: HTTPServer
    private let loops: [EventLoop]
    private let address: BoundAddress

    init(isUnix: Bool = false) throws {
        let daemon = try AdminFixture()
        self.daemon = daemon
        loops = try (0..<2).map { try EventLoop(name: "worker \($0)") }
        server = HTTPServer(loops: loops) { _ in
            AdminHandler(service: AdminService(context: daemon, token: AdminToken(daemon.token)))
        }
        for loop in loops { loop.start() }
        let wanted =
            isUnix ? ListenAddress.unix(path: daemon.folder.path + "/admin.sock") : .tcp(host: "127.0.0.1", port: 0)
        address = try server.listen(on: wanted)[0]
    }

    deinit {
        for loop in loops { loop.stop() }
    }

    /// What a client puts into `Host`.
    var authority: String { "\(address)" }

    var credential: String { "Authorization: Bearer \(daemon.token)\r\n" }

    struct Answer {
        var status = 0
        var fields: [String: String] = [:]
        var body = ""
    }

    /// Sends a head without its empty line, asks to close, and reads the whole answer.
    func ask(_ head: String, body: String = "") throws -> Answer {
        let descriptor = try connect()
        defer { close(descriptor) }
        let request = Array("\(head)Connection: close\r\n\r\n\(body)".utf8)
        var sent = 0
        while sent < request.count {
            let count = request[sent...].withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            // A server that refuses a long body need not read it all.
            if count <= 0 { break }
            sent += count
        }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 { bytes += buffer[..<count] }
        return try parse(String(decoding: bytes, as: UTF8.self))
    }

    private func parse(_ text: String) throws -> Answer {
        let halves = try #require(text.range(of: "\r\n\r\n"), "no whole answer: \(text)")
        let lines = text[..<halves.lowerBound].components(separatedBy: "\r\n")
        var answer = Answer(body: String(text[halves.upperBound...]))
        answer.status = try #require(Int(lines[0].split(separator: " ")[1]))
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            answer.fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        return answer
    }

    private func connect() throws -> Int32 {
        switch address {
        case .tcp(_, let port):
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            return try connect(AF_INET, name, socklen_t(MemoryLayout<sockaddr_in>.size))
        case .unix(let path):
            let (name, length) = try #require(unixSocketName(path))
            return try connect(AF_UNIX, name, length)
        }
    }

    private func connect<Name>(_ family: Int32, _ name: Name, _ length: socklen_t) throws -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        // A server that does not answer fails the test instead of stopping it.
        var patience = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let status = withUnsafePointer(to: name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, length) }
        }
        try #require(status == 0)
        return descriptor
    }
}
