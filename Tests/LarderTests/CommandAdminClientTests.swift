import ArgumentParser
import Foundation
import Glibc
import HTTPSemantics
import Synchronization
import TestSupport
import Testing

@testable import Larder
@testable import Settings

/// Answers one connection with fixed bytes, and keeps what it was asked.
private final class OneResponse: Sendable {
    let address: Address
    private let path: String
    private let request = Mutex("")

    init(_ answer: String) throws {
        path = FileManager.default.temporaryDirectory.path + "/larder-\(UUID().uuidString.prefix(8)).sock"
        address = .unix(path: path)
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { [path] in $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let bound = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
        }
        try #require(bound == 0 && listen(listener, 1) == 0)
        // A thread of its own: the client blocks the one that it is called on.
        Thread.detachNewThread { [self] in
            let connection = accept(listener, nil, nil)
            var buffer = [UInt8](repeating: 0, count: 4096)
            var asked: [UInt8] = []
            // The head, and the body where one is announced.
            while !OneResponse.isWhole(asked) {
                let count = read(connection, &buffer, buffer.count)
                if count <= 0 { break }
                asked += buffer[..<count]
            }
            request.withLock { [asked] in $0 = String(decoding: asked, as: UTF8.self) }
            _ = Array(answer.utf8).withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
            close(connection)
            close(listener)
        }
    }

    deinit { unlink(path) }

    /// What was asked; complete once the client has its response.
    var asked: String { request.withLock { $0 } }

    private static func isWhole(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.firstRange(of: "\r\n\r\n") else { return false }
        let length = text.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }.flatMap {
            Int($0.dropFirst(16))
        }
        return text[end.upperBound...].utf8.count >= length ?? 0
    }
}

private func answer(_ head: String, _ body: String) -> String { "HTTP/1.1 \(head)\r\n\r\n\(body)" }

@Suite(.scripts) struct CommandAdminClientTests {
    @Test func `a request carries the token and its body`() throws {
        let server = try OneResponse(answer("200 OK\r\nContent-Length: 2", "{}"))
        let client = AdminClient(address: server.address, token: "t0ken")
        #expect(try client.send("POST", "/clean?x=1", body: Array("{\"all\":true}".utf8)) == Array("{}".utf8))
        let asked = server.asked
        #expect(asked.hasPrefix("POST /clean?x=1 HTTP/1.1\r\nHost: localhost\r\n"))
        #expect(asked.contains("\r\nAuthorization: Bearer t0ken\r\n"))
        #expect(asked.contains("\r\nContent-Type: application/json\r\n"))
        #expect(asked.contains("\r\nContent-Length: 12\r\n"))
        #expect(asked.hasSuffix("\r\n\r\n{\"all\":true}"))
    }

    @Test(arguments: [
        answer("200 OK\r\nContent-Length: 5", "hello"),
        answer("200 OK\r\ncontent-length:5", "hello, and more"),
        answer("200 OK", "hello"),
        answer("200\r\nTransfer-Encoding: chunked", "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"),
    ])
    func `a response body is read with any framing`(_ text: String) throws {
        let server = try OneResponse(text)
        #expect(try AdminClient(address: server.address, token: nil).send("GET", "/count") == Array("hello".utf8))
    }

    @Test(arguments: [
        (answer("200 OK\r\nContent-Length: 6", "hello"), "broke"),
        (answer("200 OK\r\nTransfer-Encoding: chunked", "9\r\nhello"), "broke"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"), ("", "broke"),
        ("HTTP/1.1 abc\r\n\r\n", "does not speak HTTP"),
    ])
    func `a response that is cut short, or not HTTP, is an error`(_ text: String, _ words: String) throws {
        let server = try OneResponse(text)
        let error = #expect(throws: AdminClientError.self) {
            try AdminClient(address: server.address, token: nil).send("GET", "/count")
        }
        #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
    }

    @Test func `events are read until the stream ends, however its bytes are split`() throws {
        let events = "id: 7\nevent: a\ndata: x\n\nid: 8\n\n"
        let head = "200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked"
        let server = try OneResponse(answer(head, "\(String(events.utf8.count, radix: 16))\r\n\(events)\r\n0\r\n\r\n"))
        var found: [ReceivedEvent] = []
        let client = AdminClient(address: server.address, token: nil)
        let last = try client.listen("/changes", after: "6") { found.append($0) }
        #expect(found == [ReceivedEvent(name: "a", data: "x", lastID: "7")] && last == "8")
        #expect(server.asked.contains("\r\nLast-Event-ID: 6\r\n"))
        #expect(server.asked.contains("\r\nAccept: text/event-stream\r\n"))
    }

    @Test func `a response that is no event stream is an error, and a refusal says why`() throws {
        let other = try OneResponse(answer("200 OK\r\nContent-Length: 2", "{}"))
        #expect(throws: AdminClientError.self) {
            try AdminClient(address: other.address, token: nil).listen("/changes") { _ in }
        }
        let body = #"{"title":"Not Found","detail":"no changes are kept"}"#
        let refusing = try OneResponse(answer("404 X\r\nContent-Length: \(body.utf8.count)", body))
        #expect(throws: AdminClientError("no changes are kept")) {
            try AdminClient(address: refusing.address, token: nil).listen("/changes") { _ in }
        }
    }

    @Test func `a connection to a daemon that does not run is an error that names the address`() throws {
        let client = AdminClient(address: .unix(path: "/nonexistent/larder.sock"), token: nil)
        #expect(
            throws: AdminClientError(
                "nothing listens on unix:/nonexistent/larder.sock; is `larder serve` running with this admin address?"
            )
        ) { try client.send("GET", "/count") }
        // A port that was free a moment ago.
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(socket, $0, size)
                _ = getsockname(socket, $0, &size)
            }
        }
        let port = UInt16(bigEndian: name.sin_port)
        #expect(
            throws: AdminClientError("nothing listens on 127.0.0.1:\(port); is `larder serve` running?")
        ) { try AdminClient(address: .tcp(host: "127.0.0.1", port: port), token: nil).send("GET", "/count") }
    }

    @Test(arguments: [
        (401, false, "{}", "the daemon requires its admin token"),
        (401, true, "{}", "the admin token is not this daemon's"),
        (400, true, #"{"title":"Bad request","detail":"no such model"}"#, "no such model"),
        (409, true, #"{"type":"urn:larder:x","title":"It is busy","detail":"wait"}"#, "It is busy: wait"),
        (503, true, "<html>", "the daemon responded with status 503"),
        (403, true, #"{"title":"Forbidden","detail":"foreign origin"}"#, "foreign origin"),
    ])
    func `an error response is reported in words`(_ status: Int, _ hadToken: Bool, _ body: String, _ message: String)
        throws
    {
        let server = try OneResponse(answer("\(status) X\r\nContent-Length: \(body.utf8.count)", body))
        let error = #expect(throws: AdminClientError.self) {
            try AdminClient(address: server.address, token: hadToken ? "t" : nil).send("GET", "/count")
        }
        #expect(error?.description.hasPrefix(message) == true)
    }

    // MARK: Finding the daemon

    private func find(
        admin: Address? = nil,
        store: String? = nil,
        config: String? = nil,
        _ environment: [String: String] = [:]
    ) throws -> AdminClient {
        try DaemonFinder(admin: admin, store: store, config: config, environment: environment).client()
    }

    @Test func `the token is the one beside a named store, or else the environment's, or the usual store's`() throws {
        let temporary = TemporaryFolder()
        let folder = temporary.path
        let token = "0123456789abcdef"
        try temporary.write(token + "\n", to: "admin.token")
        let store = "\(folder)/larder.db"
        #expect(try find(store: store).token == token)
        #expect(try find(store: store, ["LARDER_ADMIN_TOKEN": "other"]).token == token)
        #expect(try find(admin: .unix(path: "/x"), store: store).token == nil)
        #expect(try find(store: "\(folder)/none/larder.db").token == nil)
        #expect(try find(["STATE_DIRECTORY": folder]).token == token)
        #expect(throws: AdminClientError.self) { try find(["LARDER_ADMIN_TOKEN": "two words"]) }
    }

    @Test func `the address is the one given, else that of the environment, of the config, or the default`() throws {
        let folder = TemporaryFolder()
        let token = "0123456789abcdef"
        for name in ["data", "larder"] { #expect(mkdir(folder.file(name), 0o700) == 0) }
        try folder.write(token, to: "data/admin.token")
        let config = try folder.write(
            "upstreams: { a: { url: http://a.example } }\nadmin: 127.0.0.1:9\nstore: { path: \(folder.path)/data/larder.db }",
            to: "larder.yaml"
        )
        #expect(try find().address == .tcp(host: "127.0.0.1", port: 8788))
        #expect(try find(config: config).address == .tcp(host: "127.0.0.1", port: 9))
        #expect(try find(config: config).token == token)
        #expect(try find(["LARDER_CONFIG": config]).address == .tcp(host: "127.0.0.1", port: 9))
        #expect(try find(["LARDER_CONFIG": config, "LARDER_ADMIN": "[::1]:7"]).address == .tcp(host: "::1", port: 7))
        #expect(try find(admin: .unix(path: "/x"), ["LARDER_ADMIN": "[::1]:7"]).address == .unix(path: "/x"))
        #expect(throws: AdminClientError.self) { try find(["LARDER_ADMIN": "nonsense"]) }
        #expect(throws: AdminClientError.self) { try find(config: "\(folder.path)/nowhere.yaml") }
        let nowhere = ["LARDER_CONFIG": "\(folder.path)/nowhere.yaml", "LARDER_ADMIN": "[::1]:7"]
        #expect(throws: AdminClientError.self) { try find(nowhere) }
        let known = try find(nowhere.merging(["LARDER_ADMIN_TOKEN": token]) { $1 })
        #expect(known.token == token, "a config that is not needed is not read")
        try folder.write("admin: 127.0.0.1:10", to: "larder/larder.yaml")
        #expect(try find(["XDG_CONFIG_HOME": folder.path]).address == .tcp(host: "127.0.0.1", port: 10))
    }

    @Test func `a Unix socket that permits the user is preferred to a port`() throws {
        let folder = TemporaryFolder()
        let config = try folder.write(
            "admin: ['127.0.0.1:9', 'unix:\(folder.path)/none.sock', 'unix:\(folder.path)/admin.sock']",
            to: "larder.yaml"
        )
        #expect(try find(config: config).address == .tcp(host: "127.0.0.1", port: 9))
        try folder.write("", to: "admin.sock")
        #expect(try find(config: config).address == .unix(path: "\(folder.path)/admin.sock"))
    }
}
