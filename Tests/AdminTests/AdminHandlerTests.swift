import DaemonTestSupport
import TestSupport
import Testing

@testable import Admin
@testable import HTTPSemantics
@testable import Proxy
@testable import Settings

/// The admin side at real sockets, asked what programs and hostile pages ask.
@Suite(.scripts) struct AdminHandlerTests {
    @Test func `a monitor is answered over TCP without a token`() async throws {
        let server = try AdminServer()
        let answer = try server.ask("GET /healthz HTTP/1.1\r\nHost: \(server.authority)\r\n")
        #expect(answer.status == 200)
        #expect(answer.text == "{\"status\":\"alive\"}\n")
        #expect(answer.fields["content-type"] == "application/json")
        #expect(answer.fields["cache-control"] == "no-store")
    }

    @Test func `over TCP the right token is required`() async throws {
        let server = try AdminServer()
        #expect(try server.ask("GET /mode HTTP/1.1\r\nHost: \(server.authority)\r\n").status == 401)
        let answer = try server.ask("GET /mode HTTP/1.1\r\nHost: \(server.authority)\r\n\(server.credential)")
        #expect(answer.status == 200)
        #expect(answer.text == "{\"mode\":\"auto\"}\n")
    }

    @Test func `a Unix socket needs no token: its permissions decide`() async throws {
        let server = try AdminServer(isUnix: true)
        let answer = try server.ask("GET /mode HTTP/1.1\r\nHost: localhost\r\n")
        #expect(answer.status == 200)
    }

    @Test func `HEAD has the fields of GET and no body`() async throws {
        let server = try AdminServer()
        let get = try server.ask("GET /mode HTTP/1.1\r\nHost: \(server.authority)\r\n\(server.credential)")
        let head = try server.ask("HEAD /mode HTTP/1.1\r\nHost: \(server.authority)\r\n\(server.credential)")
        #expect(head.status == 200)
        #expect(head.body.isEmpty)
        #expect(head.fields["content-length"] == get.fields["content-length"])
    }

    @Test func `a body is read, with a length or in chunks`() async throws {
        let server = try AdminServer()
        let body = #"{"mode": "offline"}"#
        let head = "PUT /mode HTTP/1.1\r\nHost: \(server.authority)\r\n\(server.credential)"
        #expect(try server.ask(head + "Content-Length: \(body.utf8.count)\r\n", body: body).status == 200)
        #expect(server.daemon.core.modes.current == .offline)
        let chunked = "13\r\n{\"mode\": \"online\" }\r\n0\r\n\r\n"
        #expect(try server.ask(head + "Transfer-Encoding: chunked\r\n", body: chunked).status == 200)
        #expect(server.daemon.core.modes.current == .online)
    }

    @Test(arguments: ["Content-Length: 65537\r\n", "Transfer-Encoding: chunked\r\n"])
    func `a body over 64 KiB is refused`(framing: String) async throws {
        let server = try AdminServer()
        let bytes = String(repeating: " ", count: 65_537)
        let body = framing.hasPrefix("Content") ? bytes : "10001\r\n\(bytes)\r\n0\r\n\r\n"
        let answer = try server.ask(
            "PUT /mode HTTP/1.1\r\nHost: \(server.authority)\r\n\(server.credential)\(framing)",
            body: body
        )
        #expect(answer.status == 413)
        #expect(answer.fields["content-type"] == ProblemDocument.mediaType)
    }

    @Test(arguments: ["/%zz", "/count?%", "/%ff"])
    func `a broken target is refused`(target: String) async throws {
        let server = try AdminServer()
        let answer = try server.ask("GET \(target) HTTP/1.1\r\nHost: \(server.authority)\r\n\(server.credential)")
        #expect(answer.status == 400)
    }

    // MARK: Hostile pages

    @Test(arguments: ["evil.example", "evil.example:8788", "127.0.0.1:1", "localhost.evil.example"])
    func `a foreign Host gets 421, whatever the path`(host: String) async throws {
        let server = try AdminServer()
        for path in ["/healthz", "/metrics", "/count", "/"] {
            let answer = try server.ask("GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(server.credential)")
            #expect(answer.status == 421)
        }
    }

    @Test func `an absolute-form target counts as the host`() async throws {
        let server = try AdminServer()
        let answer = try server.ask("GET http://evil.example/healthz HTTP/1.1\r\nHost: \(server.authority)\r\n")
        #expect(answer.status == 421)
    }

    @Test(arguments: [
        "Origin: https://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n", "Origin: http://localhost:1\r\n",
    ])
    func `a foreign page is refused, even with the token`(field: String) async throws {
        let server = try AdminServer()
        let answer = try server.ask(
            "POST /clean?all=true HTTP/1.1\r\nHost: \(server.authority)\r\n\(server.credential)\(field)Content-Length: 0\r\n"
        )
        #expect(answer.status == 403)
        let preflight = try server.ask(
            "OPTIONS /clean HTTP/1.1\r\nHost: \(server.authority)\r\n\(field)Access-Control-Request-Method: POST\r\n"
        )
        #expect(preflight.status == 403)
        #expect(preflight.fields["access-control-allow-origin"] == nil)
    }

    @Test func `two origins in one request are refused`() async throws {
        let server = try AdminServer()
        let answer = try server.ask(
            "GET /mode HTTP/1.1\r\nHost: \(server.authority)\r\nOrigin: http://\(server.authority)\r\n"
                + "Origin: https://evil.example\r\n\(server.credential)"
        )
        #expect(answer.status == 403)
    }

    @Test func `requests of the dashboard's own page are accepted`() async throws {
        let server = try AdminServer()
        let answer = try server.ask(
            "GET /mode HTTP/1.1\r\nHost: \(server.authority)\r\nOrigin: http://\(server.authority)\r\n"
                + "Sec-Fetch-Site: same-origin\r\n\(server.credential)"
        )
        #expect(answer.status == 200)
    }

    @Test func `many clients at once are all answered`() async throws {
        let server = try AdminServer()
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<32 {
                group.addTask { try server.ask("GET /readyz HTTP/1.1\r\nHost: \(server.authority)\r\n").status }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 32))
    }
}
