import Glibc
package import HTTPSemantics

@testable import EventLoops
@testable import HTTPServer

/// What a server answered.
package struct HTTPTestResponse: Equatable {
    package var status: Int
    package var fields: [String: String]
    package var body: [UInt8]

    package var text: String { String(decoding: body, as: UTF8.self) }
}

/// A client that writes what it is given, byte for byte, and waits for anything, longer than any test needs.
package final class HTTPTestClient: Sendable {
    package struct Failed: Error { var reason: String }

    package let descriptor: Int32

    package init(_ address: Address, receiveBuffer: Int32? = nil) throws {
        let target: SocketAddress
        switch address {
        case .unix(let path, _, _): target = SocketAddress(path: path)!
        case .tcp(let host, let port):
            var hints = addrinfo()
            hints.ai_flags = AI_NUMERICHOST
            var list: UnsafeMutablePointer<addrinfo>?
            guard getaddrinfo(host, "\(port)", &hints, &list) == 0 else { throw Failed(reason: "address") }
            defer { freeaddrinfo(list) }
            target = SocketAddress(list!.pointee.ai_addr, list!.pointee.ai_addrlen)
        }
        descriptor = socket(target.family, Int32(SOCK_STREAM.rawValue), 0)
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var patience = timeval(tv_sec: 600, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let outcome = target.withPointer { pointer, count in
            SystemCall.retried { Int(Glibc.connect(descriptor, pointer, count)) }
        }
        guard case .done = outcome else { throw Failed(reason: "connect: \(outcome)") }
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    deinit {
        close(descriptor)
    }

    /// Writes everything; false when the server does not take it.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + offset, bytes.count - offset, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            offset += count
        }
        return true
    }

    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Ends the client's side.
    package func endSending() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Reads some bytes; empty at the end, nil after a reset or when nothing came for long.
    package func read(_ max: Int = 65536) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: max)
        let count = recv(descriptor, &bytes, max, 0)
        return count < 0 ? nil : Array(bytes[..<count])
    }

    package func readToEnd() -> String {
        var all: [UInt8] = []
        while let bytes = read(), !bytes.isEmpty { all += bytes }
        return String(decoding: all, as: UTF8.self)
    }

    /// Reads exactly so many bytes.
    package func read(exactly count: Int) throws -> [UInt8] {
        var all: [UInt8] = []
        while all.count < count {
            guard let bytes = read(min(65536, count - all.count)), !bytes.isEmpty else {
                throw Failed(reason: "ended after \(all.count) of \(count) bytes")
            }
            all += bytes
        }
        return all
    }

    package func readLine() throws -> String {
        var line: [UInt8] = []
        while true {
            let byte = try read(exactly: 1)[0]
            if byte == 0x0A { break }
            line.append(byte)
        }
        return String(decoding: line.dropLast(), as: UTF8.self)
    }

    /// Reads one answer with its body.
    package func answer(toHead: Bool = false) throws -> HTTPTestResponse {
        let status = Int(try readLine().split(separator: " ")[1])!
        var fields: [String: String] = [:]
        while case let line = try readLine(), !line.isEmpty {
            let colon = line.firstIndex(of: ":")!
            fields[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        var answer = HTTPTestResponse(status: status, fields: fields, body: [])
        if toHead || status == 304 || status == 204 || status < 200 { return answer }
        if fields["transfer-encoding"] == "chunked" {
            while case let size = Int(try readLine(), radix: 16)!, size > 0 {
                answer.body += try read(exactly: size)
                _ = try readLine()
            }
            while case let line = try readLine(), !line.isEmpty { answer.fields["trailer " + line] = "" }
        } else if let length = fields["content-length"] {
            answer.body = try read(exactly: Int(length)!)
        } else {
            answer.body = Array(readToEnd().utf8)
        }
        return answer
    }
}
