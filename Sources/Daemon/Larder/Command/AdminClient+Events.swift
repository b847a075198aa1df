import Glibc
import HTTPSemantics
import HTTPServer

extension AdminClient {
    /// Listens to a stream of events, blocking, until the connection ends or breaks; gives the number to come back with.
    ///
    /// - Parameters:
    ///   - body: what is asked for, as JSON; makes the request a POST.
    ///   - lastID: the number to go on after; empty: what the target says.
    ///   - each: is given each event as it comes.
    func listen(
        _ target: String,
        body: [UInt8]? = nil,
        after lastID: String = "",
        each: (ReceivedEvent) -> Void
    ) throws(AdminClientError) -> String {
        signal(SIGPIPE, SIG_IGN)
        let socket = try connected()
        defer { close(socket) }
        let method = body == nil ? "GET" : "POST"
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\nAccept: text/event-stream\r\nConnection: close\r\n"
        if let token { head += "Authorization: Bearer \(token)\r\n" }
        if !lastID.isEmpty { head += "Last-Event-ID: \(lastID)\r\n" }
        if let body { head += "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n" }
        try write(Array((head + "\r\n").utf8) + (body ?? []), to: socket)
        var received = try readHead(from: socket)
        guard received.status == 200 else {
            // A refusal is short, and ends with the connection.
            while let more = read(from: socket) { received.bytes += more }
            throw AdminClientError(refusal: try AdminClient.parse(received.bytes), hadToken: token != nil)
        }
        guard received.isEventStream else {
            throw AdminClientError("\(address) does not answer with events; is it this version's admin side?")
        }
        var reader = EventReader(lastID: lastID)
        var decoder = ChunkedDecoder(limits: HTTPLimits())
        var piece = received.rest
        while true {
            guard let body = Self.unchunk(piece, &decoder) else { return reader.lastID }
            for event in reader.take(body) { each(event) }
            guard let more = read(from: socket), !decoder.isAtEnd else { return reader.lastID }
            piece = more
        }
    }

    private struct ReceivedHead {
        var bytes: [UInt8]
        var status: Int
        var isEventStream: Bool
        /// What came behind it.
        var rest: [UInt8]
    }

    private func readHead(from socket: Int32) throws(AdminClientError) -> ReceivedHead {
        var bytes: [UInt8] = []
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let start = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) {
                let text = String(decoding: bytes[..<start], as: UTF8.self)
                let words = text.split(separator: " ", maxSplits: 2)
                let isEventStream = text.lowercased().contains("content-type: \(EventStreamText.mediaType)")
                return ReceivedHead(
                    bytes: bytes,
                    status: words.count > 1 ? Int(words[1]) ?? 0 : 0,
                    isEventStream: isEventStream,
                    rest: Array(bytes[(start + end.count)...])
                )
            }
            guard let more = read(from: socket), bytes.count < 1 << 20 else {
                throw AdminClientError("the connection to \(address) ended before an answer came")
            }
            bytes += more
        }
    }

    /// Some bytes; nil at the end, when the connection breaks, and when nothing comes for so long that it must be dead.
    private func read(from socket: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(socket, &buffer, buffer.count)
            if count > 0 { return Array(buffer[..<count]) }
            guard count < 0, errno == EINTR else { return nil }
        }
    }

    /// What a piece holds of the body; nil if it is malformed.
    private static func unchunk(_ piece: [UInt8], _ decoder: inout ChunkedDecoder) -> [UInt8]? {
        var body: [UInt8] = []
        return piece.withUnsafeBytes { bytes in
            var offset = 0
            while true {
                switch decoder.next(bytes, from: &offset) {
                case .body(let range): body += bytes[range]
                case .needsMore, .end: return body
                case .refused: return nil
                }
            }
        }
    }
}
