import Glibc

extension RawServer {
    /// One accepted connection, for the script's thread.
    final class Connection {
        /// The how-manieth connection of the server this is, from 0.
        let number: Int
        private let descriptor: Int32
        private let server: RawServer
        private var buffer: [UInt8] = []
        private var isOpen = true

        init(number: Int, descriptor: Int32, server: RawServer) {
            self.number = number
            self.descriptor = descriptor
            self.server = server
        }

        /// Reads some bytes; empty at the end or after an error.
        func read() -> [UInt8] {
            var room = [UInt8](repeating: 0, count: 65536)
            let count = recv(descriptor, &room, room.count, 0)
            return count > 0 ? Array(room[..<count]) : []
        }

        /// Waits until the client has sent something, or left, and leaves it unread.
        func waitUntilReadable() {
            var events = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            poll(&events, 1, -1)
        }

        /// Reads a request's head; nil when the client is gone.
        func readHead() -> String? {
            while true {
                if let end = buffer.firstRange(of: Array("\r\n\r\n".utf8)) {
                    let head = String(decoding: buffer[..<end.upperBound], as: UTF8.self)
                    buffer.removeSubrange(..<end.upperBound)
                    server.note(head)
                    return head
                }
                let more = read()
                if more.isEmpty { return nil }
                buffer += more
            }
        }

        /// Reads this much of a body.
        func readBody(_ count: Int) -> [UInt8] {
            while buffer.count < count {
                let more = read()
                if more.isEmpty { break }
                buffer += more
            }
            let body = Array(buffer.prefix(count))
            buffer.removeFirst(body.count)
            return body
        }

        /// Reads a chunked body up to its end.
        func readChunkedBody() -> [UInt8] {
            var body: [UInt8] = []
            while let line = readLine(), let size = Int(line, radix: 16) {
                if size == 0 {
                    _ = readLine()
                    break
                }
                body += readBody(size)
                _ = readLine()
            }
            return body
        }

        private func readLine() -> String? {
            while true {
                if let end = buffer.firstRange(of: [13, 10]) {
                    let line = String(decoding: buffer[..<end.lowerBound], as: UTF8.self)
                    buffer.removeSubrange(..<end.upperBound)
                    return line
                }
                let more = read()
                if more.isEmpty { return nil }
                buffer += more
            }
        }

        /// Writes all of it; false when the client is gone.
        @discardableResult
        func write(_ bytes: [UInt8]) -> Bool {
            bytes.withUnsafeBytes { bytes in
                var sent = 0
                while sent < bytes.count {
                    let count = send(descriptor, bytes.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
                    if count <= 0 { return false }
                    sent += count
                }
                return true
            }
        }

        @discardableResult
        func write(_ text: String) -> Bool {
            write(Array(text.utf8))
        }

        /// Writes a body, in one chunk or as it is.
        func write(_ body: [UInt8], isChunked: Bool) {
            guard isChunked else { return _ = write(body) }
            write("\(String(body.count, radix: 16))\r\n")
            write(body)
            write("\r\n0\r\n\r\n")
        }

        /// A plain answer with a length.
        @discardableResult
        func answer(_ body: String, status: String = "200 OK", fields: String = "") -> Bool {
            write("HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        }

        /// Waits until the client closes, throwing away what it sends.
        func waitForClose() {
            while !read().isEmpty {}
        }

        func close() {
            guard isOpen else { return }
            isOpen = false
            server.closed(descriptor)
        }

        /// Closes so that the client gets a reset.
        func reset() {
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
            close()
        }
    }
}
