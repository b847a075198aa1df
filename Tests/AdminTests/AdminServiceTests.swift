import Testing

@testable import Admin
@testable import HTTPSemantics
@testable import Proxy
@testable import Settings

/// The admin side as such: who may ask, which paths and methods there are, and the daemon's own state.
@Suite struct AdminServiceTests: AdminServiceFixtures {
    let daemon: AdminFixture

    init() throws { daemon = try AdminFixture() }

    // MARK: Who may

    @Test(arguments: ["/healthz", "/readyz", "/metrics"])
    func `monitors need no token`(path: String) async throws {
        #expect(try await ask("GET", path, token: nil).status == 200)
    }

    @Test(
        arguments: AdminRoute.all.filter { $0.access == .guarded }.map { "\($0.method) \($0.path)" } + [
            "GET /nothing", "DELETE /count", "OPTIONS /clean", "HEAD /count",
        ]
    )
    func `every route that is not open needs the token, and so does an unknown one`(endpoint: String) async throws {
        let parts = endpoint.split(separator: " ")
        for token in [nil, "wrong-horse-battery"] {
            let response = try await ask(String(parts[0]), String(parts[1]), token: token)
            #expect(response.status == 401)
            #expect(response.fields.all("www-authenticate").count == 1)
            #expect(response.fields.text("www-authenticate")?.hasPrefix("Bearer") == true)
            #expect(response.fields.text("content-type") == ProblemDocument.mediaType)
        }
    }

    @Test func `a request with two credentials is refused`() async throws {
        let fields = Fields([
            Field("Authorization", "Bearer \(daemon.token)"), Field("Authorization", "Bearer \(daemon.token)"),
        ])
        let request = try #require(AdminRequest(method: "GET", path: "/count", query: nil, fields: fields))
        #expect(await service.respond(request, isTrusted: false).status == 401)
    }

    @Test func `no token is needed on a Unix socket`() async throws {
        #expect(try await ask("GET", "/count", token: nil, isTrusted: true).status == 200)
    }

    @Test func `the dashboard's files need no token, load nothing from elsewhere, and are revalidated`() async throws {
        let types = [
            "/": "text/html; charset=utf-8", "/dashboard.css": "text/css; charset=utf-8",
            "/dashboard.js": "text/javascript; charset=utf-8",
        ]
        for (path, type) in types {
            let response = try await ask("GET", path, token: nil)
            #expect(response.status == 200)
            #expect(response.fields.text("content-type") == type)
            #expect(response.fields.text("cache-control") == "no-cache")
            let policy = try #require(response.fields.text("content-security-policy"))
            #expect(policy.contains("script-src 'self'; style-src 'self'") && !policy.contains("unsafe"))
            let text = String(decoding: response.body, as: UTF8.self)
            #expect(!text.contains("https://") && !text.contains("innerHTML") && !text.contains(" style="))
            let tag = try #require(response.fields.text("etag"))
            let fields = Fields([Field("If-None-Match", tag)])
            let again = try #require(AdminRequest(method: "GET", path: path, query: nil, fields: fields))
            let known = await service.respond(again, isTrusted: false)
            #expect(known.status == 304 && known.body.isEmpty)
        }
    }

    @Test(arguments: ["/healthz", "/count", "/nothing"])
    func `responses with data may be neither stored nor framed`(path: String) async throws {
        let response = try await ask("GET", path)
        #expect(response.fields.text("cache-control") == "no-store")
        #expect(response.fields.text("x-content-type-options") == "nosniff")
        #expect(response.fields.all("content-security-policy").count == 1)
        #expect(response.fields.text("content-security-policy")?.contains("frame-ancestors 'none'") == true)
    }

    // MARK: The table

    @Test func `an unknown path gets 404, and an unknown method 405 with the allowed ones`() async throws {
        #expect(try await ask("GET", "/nothing").status == 404)
        #expect(try await ask("GET", "/objects").status == 404)
        let response = try await ask("DELETE", "/mode")
        #expect(response.status == 405)
        #expect(response.fields.text("allow") == "GET, HEAD, PUT, OPTIONS")
        let options = try await ask("OPTIONS", "/clean")
        #expect(options.status == 204)
        #expect(options.fields.text("allow") == "POST, OPTIONS")
    }

    @Test(arguments: ["/count?modle=User", "/documents?limit=1&limit=2", "/objects/User?page=2", "/healthz?x"])
    func `a parameter that is unknown or given twice is refused`(target: String) async throws {
        #expect(try await ask("GET", target).status == 400)
    }

    @Test func `the OpenAPI description is served`() async throws {
        #expect(try json(await ask("GET", "/openapi.json"))["openapi"] as? String == "3.1.0")
    }

    // MARK: Life

    @Test func `while the daemon is not ready, readiness gives the reason`() async throws {
        #expect(try await ask("GET", "/readyz", token: nil).status == 200)
        daemon.core.setState { $0.unreadiness = "draining: 3 requests are still in flight" }
        let response = try await ask("GET", "/readyz", token: nil)
        #expect(response.status == 503)
        #expect(try json(response)["detail"] as? String == "draining: 3 requests are still in flight")
        #expect(try await ask("GET", "/healthz", token: nil).status == 200)
    }

    @Test func `metrics are read from daemon and store`() async throws {
        try await daemon.fill()
        daemon.core.metrics.worker(0).hits.add(3)
        let response = try await ask("GET", "/metrics", token: nil)
        let text = String(decoding: response.body, as: UTF8.self)
        #expect(response.fields.text("content-type") == "text/plain; version=0.0.4; charset=utf-8")
        #expect(text.contains("\nlarder_requests_total{outcome=\"hit\"} 3\n"))
        #expect(text.contains("\nlarder_store_objects 3\n"))
        #expect(text.contains("\nlarder_build_info{version=\"0.1-test\"} 1\n"))
    }

    @Test func `the mode can be read and changed`() async throws {
        #expect(try json(await ask("GET", "/mode"))["mode"] as? String == "auto")
        #expect(try await ask("PUT", "/mode", body: #"{"mode": "offline"}"#).status == 200)
        #expect(daemon.core.modes.current == .offline)
        #expect(try json(await ask("GET", "/mode"))["mode"] as? String == "offline")
        #expect(try await ask("PUT", "/mode?mode=online").status == 200)
        #expect(daemon.core.modes.current == .online)
    }

    @Test(arguments: [
        ("/mode", ""), ("/mode", #"{"mode": "asleep"}"#), ("/mode", #"{"mood": "offline"}"#), ("/mode", "offline"),
        ("/mode?mode=offline", #"{"mode": "offline"}"#),
    ])
    func `an invalid request for a mode changes nothing`(target: String, body: String) async throws {
        #expect(try await ask("PUT", target, body: body).status == 400)
        #expect(daemon.core.modes.current == .auto)
    }
}
