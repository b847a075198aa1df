import Foundation
import TestSupport
import Testing

/// Localhost is not a wall: what a web page, or another program, can make a browser send.
@Suite(.scripts) struct BrowserGuardTests {
    static func origin() throws -> Origin { try Origin { _ in .json(#"{"secret":1}"#, Fresh.hour) } }

    @Test(arguments: [
        "evil.example", "evil.example:8787", "169.254.169.254", "localhost.evil.example", "0x7f000001.evil",
    ])
    func `a request for a host name that is not Larder's gets 421`(host: String) throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for answer in [
            try larder.get("/x", ["Host": host]), try larder.request("POST", "/x", ["Host": host], body: "a=1"),
            try larder.get("http://\(host)/x"), try larder.admin("GET", "/count", ["Host": host]),
            try larder.admin("GET", "/healthz", ["Host": host]),
        ] {
            #expect(answer.status == 421)
            #expect(!answer.text.contains("secret"))
        }
        #expect(origin.count() == 1)
    }

    @Test func `an authority in the target overrides Host`() throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        #expect(try larder.get("http://evil.example/x", ["Host": "localhost"]).status == 421)
        #expect(origin.count() == 0)
    }

    @Test func `this machine's own names are accepted as Host`() throws {
        let larder = try Larder(Self.origin())
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            #expect(try larder.get("/x", ["Host": "\(host):\(larder.port)"]).status == 200, "\(host)")
        }
    }

    @Test(
        arguments: [
            ["Origin": "https://evil.example"], ["Origin": "null"], ["Origin": "http://localhost:3000"],
            ["Origin": "http://127.0.0.1:9999"], ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"],
            ["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"],
            ["Origin": "https://evil.example", "Content-Type": "application/x-www-form-urlencoded"],
        ] as [FieldLines]
    )
    func `another site's page can neither read nor write`(fields: FieldLines) throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
            let answer = try larder.request(method, "/x", fields, body: method == "POST" ? "a=1" : nil)
            #expect(answer.status == 403, "\(method)")
            #expect(!answer.text.contains("secret"))
            #expect(answer["Access-Control-Allow-Origin"] == nil)
        }
        #expect(origin.count() == 1)
        #expect(try larder.admin("POST", "/clean", fields, body: #"{"all":true}"#).status == 403)
        #expect(try larder.waitForDocuments(1))
    }

    @Test func `a URL typed into a browser, and a page's request to its own origin, are served`() throws {
        let larder = try Larder(Self.origin())
        #expect(try larder.get("/x", ["Sec-Fetch-Site": "none"]).status == 200)
        #expect(try larder.get("/x", ["Sec-Fetch-Site": "same-origin"]).status == 200)
    }

    @Test func `pages of the configured origins are served, and no others`() throws {
        let origin = try Self.origin()
        let larder = try Larder(config: Configs.plain(origin, upstream: ["cors: [\"http://localhost:3000\"]"]))
        let named: FieldLines = ["Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"]
        for _ in 1...2 {
            let answer = try larder.get("/x", named)
            #expect(answer.status == 200)
            #expect(answer["Access-Control-Allow-Origin"] == "http://localhost:3000")
            #expect(answer["Vary"]?.lowercased().contains("origin") == true)
        }
        let preflight = try larder.request(
            "OPTIONS",
            "/x",
            named + ["Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "x-custom"]
        )
        #expect((200...204).contains(preflight.status))
        #expect(preflight["Access-Control-Allow-Origin"] == "http://localhost:3000")
        #expect(preflight["Access-Control-Allow-Methods"]?.contains("PATCH") == true)
        #expect(origin.count(method: "OPTIONS") == 0)
        #expect(try larder.get("/x", ["Origin": "http://localhost:3001"]).status == 403)
        #expect(try larder.get("/x", ["Origin": "null"]).status == 403)
    }

    @Test func `Forwarded and X-Forwarded fields are not sent upstream`() throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get(
            "/x",
            [
                "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "evil.example", "Forwarded": "for=1.2.3.4",
                "X_Forwarded_For": "1.2.3.4", "X-Forwarded_Proto": "https", "X-Fine": "1",
            ]
        )
        let names = origin.requests[0].fields.lines.map { $0.name.lowercased() }
        #expect(names.contains("x-fine"))
        #expect(!names.contains { $0.contains("forwarded") })
    }

    @Test(arguments: [
        "X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X_HTTP_Method_Override", "X-HTTP_METHOD",
    ])
    func `a request that names two methods is refused with a sentence`(name: String) throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for method in ["GET", "POST", "PUT", "DELETE", "HEAD"] {
            let answer = try larder.request(method, "/new", [name: "DELETE"], body: method == "POST" ? "{}" : nil)
            #expect(answer.status == 400, "\(method)")
            #expect(method == "HEAD" || answer.text.lowercased().contains(name.lowercased()), "\(answer.text)")
        }
        #expect(origin.count() == 1)
        #expect(try larder.get("/x").isHit)
        #expect(try larder.get("/x", [name: "DELETE"]).status == 400)
        // No gateway that takes `_` for `-` is before the admin side.
        guard !name.contains("_") else { return }
        #expect(try larder.admin("POST", "/clean", [name: "GET"], body: #"{"all":true}"#).status == 400)
        #expect(try larder.waitForDocuments(1))
    }

    /// Chromium prefetches what a page's speculation rules name, and says `Sec-Fetch-Site: none`.
    @Test(
        arguments: [
            [
                "Sec-Purpose": "prefetch", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate",
                "Referer": "http://evil.example/",
            ],
            ["Sec-Purpose": "prefetch;prerender"], ["sec-purpose": "Prefetch; anonymous-client-ip"],
            ["Purpose": "prefetch"],
            ["X-Moz": "prefetch"],
        ] as [FieldLines]
    )
    func `a prefetch is refused`(fields: FieldLines) throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        for target in ["/x", "/y"] {
            let answer = try larder.get(target, fields)
            #expect(answer.status == 403)
            #expect(!answer.text.contains("secret"))
        }
        #expect(try larder.admin("GET", "/count", fields).status == 403)
        #expect(try larder.admin("GET", "/healthz", fields).status == 403)
        #expect(try larder.get("/x", ["Purpose": "billing"]).isHit)
        #expect(origin.count() == 1)
    }

    private static let chromium: FieldLines = [
        "User-Agent":
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
        "Accept-Encoding": "gzip, deflate", "Accept-Language": "en-US,en;q=0.9",
    ]

    /// Browsers send no Fetch metadata over plain HTTP but to this machine's own names.
    @Test func `without Origin a page's request is recognised by Referer and other browser fields`() throws {
        let origin = try Self.origin()
        let larder = try Larder(
            config: Configs.plain(origin, upstream: ["hosts: [api.lan]", "cors: [\"http://app.lan\"]"])
        )
        let (lan, browser): (FieldLines, FieldLines) = (["Host": "api.lan:\(larder.port)"], Self.chromium)
        _ = try larder.get("/x", lan)
        let image: FieldLines = ["Accept": "image/avif,image/webp,image/*,*/*;q=0.8"]
        for fields in [
            image + ["Referer": "http://evil.example/"], image, ["Accept": "*/*"], ["Accept": "application/json"],
            ["Accept": "text/html", "Upgrade-Insecure-Requests": "1"], ["Referer": "null"],
            ["Referer": "http://api.lan.evil.example:\(larder.port)/"],
            ["Referer": "http://app.lan/", "referer": "http://evil.example/"],
        ] as [FieldLines] {
            let answer = try larder.get("/x", lan + browser + fields)
            #expect(answer.status == 403, "\(fields)")
            #expect(!answer.text.contains("secret"))
        }
        #expect(try larder.get("/x", lan + ["Referer": "http://evil.example/"]).status == 403)
        #expect(try larder.admin("GET", "/healthz", lan + ["Referer": "http://evil.example/"]).status != 200)
        #expect(origin.count() == 1)
        // Programs, the page itself, an allowed page, who says that no page asks, and this machine's own names.
        for fields in [
            ["User-Agent": "curl/8.0", "Accept": "*/*"], ["User-Agent": "Mozilla/5.0 PowerShell/7.4"],
            browser + ["Referer": "http://api.lan:\(larder.port)/page"], browser + ["Referer": "http://app.lan/"],
            browser + ["Larder-View": "wire"], browser + ["Sec-Fetch-Site": "same-origin"],
        ] as [FieldLines] {
            #expect(try larder.get("/x", lan + fields).status == 200, "\(fields)")
        }
        #expect(try larder.get("/x", browser + image).status == 200)
    }

    @Test func `Origin is sent upstream as configured`() throws {
        let origin = try Self.origin()
        let page: FieldLines = ["Origin": "http://localhost:3000"]
        for (rule, sent) in [
            ([], nil), (["origin: drop"], nil), (["origin: pass"], "http://localhost:3000"),
            (["origin: https://tracker.example"], "https://tracker.example"),
        ] as [([String], String?)] {
            origin.forget()
            let cors = ["cors: [\"http://localhost:3000\"]"]
            let larder = try Larder(config: Configs.plain(origin, upstream: cors + rule))
            _ = try larder.request("POST", "/x", page, body: "{}")
            _ = try larder.get("/x", page)
            #expect(origin.requests.map { $0["Origin"] } == [sent, sent], "\(rule)")
            // A program that sends none.
            _ = try larder.request("POST", "/x", body: "{}")
            #expect(origin.requests.last?["Origin"] == (rule == ["origin: pass"] ? nil : sent))
            #expect(try larder.get("/x", ["Origin": "http://localhost:3001"]).status == 403)
        }
    }

    @Test func `responses that vary by a forwarded Origin are stored separately`() throws {
        let origin = try Origin { request in
            .text(request["Origin"] ?? "none", Fresh.hour + ["Vary": "Origin"])
        }
        let pages = ["http://a.example", "http://b.example"]
        let larder = try Larder(
            config: Configs.plain(origin, upstream: ["origin: pass", "cors: [\"\(pages[0])\", \"\(pages[1])\"]"])
        )
        for _ in 1...2 {
            for page in pages { #expect(try larder.get("/x", ["Origin": page]).text == page) }
            #expect(try larder.get("/x").text == "none")
        }
        #expect(origin.count() == 3)
    }

    @Test func `redirects are passed on, and not followed to another origin`() throws {
        let elsewhere = try Self.origin()
        let origin = try Origin { _ in
            .empty(302, ["Location": "\(elsewhere.url)/secret", "Cache-Control": "max-age=60"])
        }
        let larder = try Larder(origin)
        for _ in 1...2 {
            let answer = try larder.get("/x")
            #expect(answer.status == 302)
            #expect(answer["Location"] == "\(elsewhere.url)/secret")
        }
        #expect(try larder.get("/x?larder_live=once", ["Accept": "text/event-stream"]).events.last?.status == 302)
        #expect(elsewhere.count() == 0)
    }

    @Test(arguments: [
        "/..;/secret", "/%252e%252e/secret", "/a/..%2f..%2fsecret", "/.;/secret", "/%2e%2e;/secret", "/..%00/secret",
        "/..%5csecret", "/%c0%ae%c0%ae/secret", "/%25252e%25252e/secret", "/a%2f%2e%2e%2f..%2fsecret", "/..\\secret",
        "/a/..%c0%afsecret", "/%25c0%25ae./secret",
    ])
    func `a segment that some servers read as a dot segment is refused`(path: String) throws {
        let origin = try Self.origin()
        let larder = try Larder(upstream: origin.url + "/api/v1")
        for method in ["GET", "HEAD", "POST"] { #expect(try larder.request(method, path).status == 400, "\(method)") }
        #expect(try larder.get("/x?next=/..;/%252e%252e/").status == 200)
        #expect(origin.requests.map(\.target) == ["/api/v1/x?next=/..;/%252e%252e/"])
    }

    @Test(arguments: ["/../secret", "/%2e%2e/secret", "/a/../../secret", "/.%2E/secret", "/a/%2e%2e/%2e%2e/secret"])
    func `no path leads above the base path`(path: String) throws {
        let origin = try Self.origin()
        let larder = try Larder(upstream: origin.url + "/api/v1")
        #expect(try larder.get(path).status == 400)
        #expect(origin.count() == 0)
        #expect(try larder.get("/a/../b").status == 200)
        #expect(origin.requests[0].path == "/api/v1/b")
    }

    @Test func `the guard refuses a request even if its response is stored`() throws {
        let origin = try Self.origin()
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.get("/x").isHit)
        #expect(try larder.get("/x", ["Origin": "null"]).status == 403)
        #expect(try larder.get("/x").isHit)
    }
}
