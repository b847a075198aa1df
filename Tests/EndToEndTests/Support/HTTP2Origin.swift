import Glibc
import TestSupport

/// A real server of HTTP/2 over TLS that sends the frames that the test scripts, well-formed or not.
///
/// It does not read what a request asks for, which Huffman codes conceal: a test tells requests apart by their order. It acknowledges
/// SETTINGS and PING, and ends a connection when its peer does (GOAWAY), as servers do.
final class HTTP2Origin: Sendable {
    /// A request that has come as a whole.
    struct Request: Sendable {
        let stream: UInt32
        /// Which connection it came on, counted from 0.
        let connection: Int
        /// Which request of this origin it is, counted from 0.
        let number: Int
    }

    /// What happens next on the connection.
    enum Step: Sendable {
        case send([UInt8])
        case wait(Gate)
        /// Ends the connection in order, with TLS's closure alert.
        case close
    }

    typealias Handler = @Sendable (Request) -> [Step]

    private let listener: Socket
    let front: TLSFront
    private let state: Monitor<State>

    private struct State {
        var connections = 0
        var requests: [Request] = []
        var handler: Handler
    }

    init(_ handler: @escaping Handler) throws {
        listener = try Socket.listen()
        front = try TLSFront(of: listener.port, protocols: ["h2"])
        state = Monitor(State(handler: handler))
        startThread { [listener, state] in
            while let socket = listener.accept() {
                let number = state.withLock { state in
                    state.connections += 1
                    return state.connections - 1
                }
                startThread { Connection(socket, number, state).serve() }
            }
        }
    }

    deinit { listener.shutDown() }

    /// Behaves like this from now on.
    func behave(_ handler: @escaping Handler) { state.withLock { $0.handler = handler } }

    var requests: [Request] { state.current.requests }
    var connections: Int { state.current.connections }

    /// A config with this origin as an upstream, over HTTP/2.
    var config: String { front.config("http2: true") }

    private final class Connection: Sendable {
        let socket: Socket
        let number: Int
        let state: Monitor<State>
        /// Held while bytes are sent: several streams send.
        let sending = Monitor(false)

        init(_ socket: Socket, _ number: Int, _ state: Monitor<State>) {
            (self.socket, self.number, self.state) = (socket, number, state)
        }

        func send(_ bytes: [UInt8]) throws { try sending.withLock { _ in try socket.send(bytes) } }

        func serve() {
            var reader = MessageReader(socket)
            defer { socket.shutDown() }
            do {
                // The preface.
                _ = try reader.bytes(24)
                try send(HTTP2.frame(.settings))
                while true {
                    let head = try reader.bytes(9)
                    let payload = try reader.bytes(head[0..<3].reduce(0) { $0 << 8 | Int($1) })
                    let stream = head[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                    let isEnd = head[4] & 1 == 1
                    switch HTTP2.FrameType(rawValue: head[3]) {
                    case .settings where !isEnd: try send(HTTP2.frame(.settings, flags: 1))
                    case .ping where !isEnd: try send(HTTP2.frame(.ping, flags: 1, payload))
                    case .goAway: return
                    case .headers where isEnd, .data where isEnd: respond(on: stream)
                    default: break
                    }
                }
            } catch {}  // The peer left; a test that cares looks at what it got.
        }

        private func respond(on stream: UInt32) {
            let (request, handler) = state.withLock { state in
                let request = Request(stream: stream, connection: number, number: state.requests.count)
                state.requests.append(request)
                return (request, state.handler)
            }
            startThread { [self] in
                for step in handler(request) {
                    switch step {
                    case .send(let bytes): try? send(bytes)
                    case .wait(let gate): gate.wait()
                    case .close: socket.shutDown()
                    }
                }
            }
        }
    }
}

/// The frames of HTTP/2 (RFC 9113 §6), and the fields in them (RFC 7541), as plain as they may be.
enum HTTP2 {
    enum FrameType: UInt8 {
        case data = 0
        case headers, priority, resetStream, settings, pushPromise, ping, goAway, windowUpdate, continuation
    }

    static func frame(_ type: FrameType, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        Array(bigEndian(UInt32(payload.count)).dropFirst()) + [type.rawValue, flags] + bigEndian(stream) + payload
    }

    /// The head of a response.
    static func head(_ stream: UInt32, status: Int = 200, _ fields: FieldLines, ends: Bool = false) -> [UInt8] {
        block(stream, field(":status", "\(status)") + self.fields(fields), ends: ends)
    }

    /// Fields after the body.
    static func trailers(_ stream: UInt32, _ fields: FieldLines) -> [UInt8] {
        block(stream, self.fields(fields), ends: true)
    }

    static func data(_ stream: UInt32, _ bytes: some Sequence<UInt8>, ends: Bool = false) -> [UInt8] {
        frame(.data, flags: ends ? 1 : 0, stream: stream, Array(bytes))
    }

    /// Ends a stream; the code 0 is NO_ERROR.
    static func resetStream(_ stream: UInt32, code: UInt32 = 0) -> [UInt8] {
        frame(.resetStream, stream: stream, bigEndian(code))
    }

    /// Ends a connection; requests on later streams were not processed.
    static func goAway(last stream: UInt32, code: UInt32 = 0) -> [UInt8] {
        frame(.goAway, bigEndian(stream) + bigEndian(code))
    }

    static func bigEndian(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    /// A block of fields in as many frames as it takes.
    private static func block(_ stream: UInt32, _ bytes: [UInt8], ends: Bool) -> [UInt8] {
        let size = 16_384
        let pieces = stride(from: 0, to: max(1, bytes.count), by: size).map { Array(bytes[$0...].prefix(size)) }
        return pieces.enumerated().flatMap { index, piece in
            let flags: UInt8 = index == pieces.count - 1 ? 4 : 0
            let isFirst = index == 0
            return frame(
                isFirst ? .headers : .continuation,
                flags: flags | (isFirst && ends ? 1 : 0),
                stream: stream,
                piece
            )
        }
    }

    private static func fields(_ fields: FieldLines) -> [UInt8] {
        fields.lines.flatMap { field($0.name.lowercased(), $0.value) }
    }

    /// A literal field without indexing and without Huffman codes.
    private static func field(_ name: String, _ value: String) -> [UInt8] { [0] + text(name) + text(value) }

    private static func text(_ text: String) -> [UInt8] {
        var rest = text.utf8.count
        guard rest >= 127 else { return [UInt8(rest)] + text.utf8 }
        var length: [UInt8] = [127]
        rest -= 127
        while rest >= 128 {
            length.append(UInt8(rest % 128 + 128))
            rest /= 128
        }
        return length + [UInt8(rest)] + text.utf8
    }
}
