import Glibc
import Settings
import TestSupport
import Testing

@testable import Fleet

/// The connection, against a real server and against ones that are none.
@Suite(.scripts) struct RedisConnectionTests {
    private let limit: Duration = .seconds(20)

    init() { signal(SIGPIPE, SIG_IGN) }

    @Test(.enabled(if: RedisServer.isAvailable)) func `commands are sent together, and replied to in order`() throws {
        let server = try RedisServer()
        let connection = try RedisConnection(FleetServer(server.url), password: nil, within: limit)
        #expect(connection.runID.count == 40 && connection.version.hasPrefix("7.") || connection.version.count > 2)
        let replies = try connection.send(
            [
                RedisCommand("SET", "k", "v\r\n$9"), RedisCommand("GET", "k"), RedisCommand("INCR", "n"),
                RedisCommand("GET", "none"),
                RedisCommand("KEYS", "k"), RedisCommand("NONSENSE"),
            ],
            within: limit
        )
        #expect(replies[0] == .bytes(Array("OK".utf8)) && replies[1] == .bytes(Array("v\r\n$9".utf8)))
        #expect(replies[2] == .integer(1) && replies[3] == .nothing && replies[4] == .array([.bytes([0x6B])]))
        guard case .error(let message) = replies[5] else {
            Issue.record("no error: \(replies[5])")
            return
        }
        #expect(message.contains("unknown command"))
        #expect(throws: RedisError.self) { try connection.single(RedisCommand("NONSENSE"), within: limit) }
        // A large value arrives whole.
        let large = [UInt8](repeating: 0x61, count: 3 << 20)
        _ = try connection.single(RedisCommand([Array("SET".utf8), Array("l".utf8), large]), within: limit)
        #expect(try connection.single(RedisCommand("GET", "l"), within: limit).bytes == large)
    }

    @Test(.enabled(if: RedisServer.isAvailable)) func `a password is given, and a wrong one is an error that says so`()
        throws
    {
        let server = try RedisServer()
        try server.command("CONFIG", "SET", "requirepass", "open")
        let named = try FleetServer(server.url)
        _ = try RedisConnection(named, password: Array("open".utf8), within: limit)
        #expect(throws: RedisError.self) { try RedisConnection(named, password: Array("shut".utf8), within: limit) }
        let error = #expect(throws: RedisError.self) { try RedisConnection(named, password: nil, within: limit) }
        #expect(error?.description.contains("NOAUTH") == true)
    }

    @Test func `a server that cannot be connected to is an error with the reason`() throws {
        let folder = TemporaryFolder()
        let server = try FleetServer("unix:\(folder.file("none"))")
        let error = #expect(throws: RedisError.self) { try RedisConnection(server, password: nil, within: limit) }
        #expect(error?.description.contains("No such file") == true, "\(String(describing: error))")
        #expect(throws: RedisError.self) {
            try RedisConnection(FleetServer("redis://127.0.0.1:1"), password: nil, within: limit)
        }
    }

    @Test(
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "*2000000000\r\n", "$-7\r\n",
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
            "+OK\r\n", "*0\r\n", ":1\r\n", "$5\r\nhel",
        ]
    )
    func `garbage is an error, and costs no memory`(text: String) throws {
        let folder = TemporaryFolder()
        let socket = try FalseServer(at: folder.file("s"), says: text)
        defer { socket.stop() }
        let server = try FleetServer("unix:\(folder.file("s"))")
        #expect(throws: RedisError.self) { try RedisConnection(server, password: nil, within: .seconds(2)) }
    }
}

/// A server that says the same to everybody, then closes the connection.
private final class FalseServer: Sendable {
    private let descriptor: Int32

    init(at path: String, says text: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(bound == 0 && listen(descriptor, 5) == 0)
        startThread { [descriptor] in
            while true {
                let client = accept(descriptor, nil, nil)
                guard client >= 0 else { return }
                var request = [UInt8](repeating: 0, count: 4096)
                _ = read(client, &request, request.count)
                let bytes = Array(text.utf8)
                _ = write(client, bytes, bytes.count)
                close(client)
            }
        }
    }

    func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }
}
