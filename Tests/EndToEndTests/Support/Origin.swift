import Glibc
import TestSupport

/// A real HTTP/1.1 server whose every answer the test scripts, down to the bytes.
///
/// One thread per connection runs `handler`, which may block (on a ``Gate``, say) as long as it likes.
final class Origin: Sendable {
    /// A request as it arrived.
    struct Request: Sendable {
        let method: String
        let target: String
        let fields: FieldLines
        let body: [UInt8]
        /// Which connection it came on, counted from 0.
        let connection: Int
        /// Which request of this origin it is, counted from 0.
        let number: Int

        var path: String { String(target.prefix { $0 != "?" }) }

        subscript(name: String) -> String? { fields[name] }
    }

    typealias Handler = @Sendable (Request) -> OriginResponse

    let port: UInt16
    /// Keeps the port while it has no listener: another test would be given it.
    private let place: Socket
    private let state: Monitor<State>

    private struct State {
        var handler: Handler
        var listener: Socket?
        var connections: [Int: Socket] = [:]
        var accepted = 0
        var requests: [Request] = []
        /// What could not be read as a request, and why.
        var mistakes: [String] = []
    }

    init(_ handler: @escaping Handler) throws {
        place = try Socket.bound()
        port = place.port
        state = Monitor(State(handler: handler))
        listen(on: try Socket.listen(port: port))
    }

    /// An origin that answers every path of the table, and 404 for others.
    convenience init(_ answers: [String: OriginResponse]) throws {
        try self.init { answers[$0.target] ?? .json(#"{"message":"Not Found"}"#, status: 404) }
    }

    deinit { stop() }

    var url: String { "http://127.0.0.1:\(port)" }

    // MARK: What happened

    /// All requests so far, in the order in which their heads were complete.
    var requests: [Request] { state.current.requests }

    /// How many requests there were, for one path or for all.
    func count(_ path: String? = nil, method: String? = nil) -> Int {
        requests.count { (path == nil || $0.path == path) && (method == nil || $0.method == method) }
    }

    /// How many connections were opened.
    var connections: Int { state.current.accepted }

    var mistakes: [String] { state.current.mistakes }

    /// Waits until so many requests have come; false when they did not.
    @discardableResult
    func waitForRequests(_ count: Int, _ path: String? = nil, limit: Duration = .seconds(120)) -> Bool {
        state.wait(limit) { $0.requests.count { path == nil || $0.path == path } >= count }
    }

    // MARK: What to do

    /// Answers like this from now on.
    func behave(_ handler: @escaping Handler) { state.withLock { $0.handler = handler } }

    /// Answers this to everything from now on.
    func always(_ answer: OriginResponse) { behave { _ in answer } }

    /// Forgets the requests so far.
    func forget() { state.withLock { $0.requests = [] } }

    /// Closes everything: from here on connections are refused.
    func stop() {
        let (listener, connections) = state.withLock { state in
            defer {
                state.listener = nil
                state.connections = [:]
            }
            return (state.listener, state.connections)
        }
        listener?.shutDown()
        for connection in connections.values { connection.shutDown() }
    }

    /// Listens again, on the same port.
    func restart() throws { listen(on: try Socket.listen(port: port)) }

    /// Closes the idle connections as a server does after its keep-alive time.
    func closeConnections() {
        for connection in state.withLock({ $0.connections }).values { connection.shutDown() }
    }

    // MARK: Serving

    private func listen(on listener: Socket) {
        state.withLock { $0.listener = listener }
        startThread { [state] in
            while let socket = listener.accept() {
                let number = state.withLock { state in
                    state.accepted += 1
                    state.connections[state.accepted - 1] = socket
                    return state.accepted - 1
                }
                startThread {
                    Self.serve(socket, number, state)
                    state.withLock { $0.connections[number] = nil }
                }
            }
        }
    }

    private static func serve(_ socket: Socket, _ connection: Int, _ state: Monitor<State>) {
        var reader = MessageReader(socket)
        do {
            while let head = try reader.head() {
                let parts = head.firstLine.split(separator: " ", omittingEmptySubsequences: false)
                guard parts.count == 3 else { throw MessageReader.Malformed(description: head.firstLine) }
                if head.fields["Expect"] != nil { try socket.send("HTTP/1.1 100 Continue\r\n\r\n".utf8) }
                var body: [UInt8] = []
                if head.fields["Transfer-Encoding"]?.lowercased() == "chunked" {
                    body = Array(try reader.chunks().chunks.joined())
                } else if let length = head.fields["Content-Length"].flatMap({ Int($0) }) {
                    body = try reader.bytes(length)
                }
                let (request, handler) = state.withLock { state in
                    let request = Request(
                        method: String(parts[0]),
                        target: String(parts[1]),
                        fields: head.fields,
                        body: body,
                        connection: connection,
                        number: state.requests.count
                    )
                    state.requests.append(request)
                    return (request, state.handler)
                }
                guard try handler(request).write(to: socket, for: request) else { return }
            }
        } catch is SocketError {
            return  // The peer left; a test that cares looks at what the peer got.
        } catch {
            state.withLock { $0.mistakes.append("\(error)") }
        }
    }
}
