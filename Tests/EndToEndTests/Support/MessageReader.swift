/// Reads HTTP/1.1 messages off a socket, byte for byte, for either side.
struct MessageReader {
    /// The message is not HTTP/1.1.
    struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    let socket: Socket
    /// What has arrived and belongs to no message yet.
    private(set) var pending: [UInt8] = []
    private var start = 0

    init(_ socket: Socket) { self.socket = socket }

    struct Head {
        let firstLine: String
        let fields: FieldLines
        /// The head as it arrived, with the empty line that ends it.
        let bytes: [UInt8]
    }

    /// The next head; nil when the peer ended the connection between two messages.
    mutating func head() throws -> Head? {
        var bytes: [UInt8] = []
        guard let first = try line(endsQuietly: true) else { return nil }
        bytes += first + [13, 10]
        var fields = FieldLines()
        while let line = try line(), !line.isEmpty {
            bytes += line + [13, 10]
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
                throw Malformed(description: "a field without a colon: \(String(decoding: line, as: UTF8.self))")
            }
            fields.append(
                String(decoding: line[..<colon], as: UTF8.self),
                String(decoding: line[(colon + 1)...].trimmed, as: UTF8.self)
            )
        }
        return Head(firstLine: String(decoding: first, as: UTF8.self), fields: fields, bytes: bytes + [13, 10])
    }

    /// Exactly so many bytes.
    mutating func bytes(_ count: Int) throws -> [UInt8] {
        while pending.count - start < count { try fill() }
        defer { consume(count) }
        return Array(pending[start..<(start + count)])
    }

    /// All there is until the end of the connection.
    mutating func rest() throws -> [UInt8] {
        var bytes = Array(pending[start...])
        consume(bytes.count)
        while true {
            let more = try socket.receive()
            guard !more.isEmpty else { return bytes }
            bytes += more
        }
    }

    /// The next chunk of a chunked body; nil for the last, which leaves the trailers to be read.
    mutating func chunk() throws -> [UInt8]? {
        guard let line = try line() else { throw SocketError.closed }
        let size = String(decoding: line.prefix { $0 != UInt8(ascii: ";") }.trimmed, as: UTF8.self)
        guard let count = Int(size, radix: 16) else { throw Malformed(description: "a chunk size of \"\(size)\"") }
        guard count > 0 else { return nil }
        let chunk = try bytes(count)
        guard try bytes(2) == [13, 10] else { throw Malformed(description: "a chunk without its line end") }
        return chunk
    }

    /// The chunks of a chunked body, and its trailers.
    mutating func chunks() throws -> (chunks: [[UInt8]], trailers: FieldLines) {
        var chunks: [[UInt8]] = []
        while let chunk = try chunk() { chunks.append(chunk) }
        var trailers = FieldLines()
        while let line = try line(), !line.isEmpty {
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1)
            trailers.append(
                String(decoding: parts[0], as: UTF8.self),
                String(decoding: parts.count > 1 ? parts[1].trimmed : [], as: UTF8.self)
            )
        }
        return (chunks, trailers)
    }

    /// Whether the peer has ended the connection; waits for either that or a byte.
    mutating func isAtEnd() throws -> Bool {
        guard pending.count == start else { return false }
        let more = try socket.receive()
        pending += more
        return more.isEmpty
    }

    private mutating func line(endsQuietly: Bool = false) throws -> [UInt8]? {
        var searched = start
        while true {
            if let end = pending[searched...].firstIndex(of: 10) {
                guard end > start, pending[end - 1] == 13 else {
                    throw Malformed(description: "a line that ends in a bare LF")
                }
                let line = Array(pending[start..<(end - 1)])
                consume(end + 1 - start)
                return line
            }
            searched = pending.count
            let before = start
            do { try fill() } catch SocketError.closed where endsQuietly && searched == before { return nil }
            searched -= before - start
        }
    }

    private mutating func fill() throws {
        let more = try socket.receive(262_144)
        guard !more.isEmpty else { throw SocketError.closed }
        if start > 0 {
            pending.removeFirst(start)
            start = 0
        }
        pending += more
    }

    private mutating func consume(_ count: Int) { start += count }
}

extension Sequence<UInt8> {
    /// The bytes without the spaces and tabs around them.
    fileprivate var trimmed: [UInt8] {
        func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 }
        let start = Array(drop(while: isBlank))
        return Array(start.reversed().drop(while: isBlank).reversed())
    }
}
