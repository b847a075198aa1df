import Foundation
import TestSupport
import Testing

/// What is served is what was received, from memory, from disk and after a restart; and no secret is on disk.
@Suite(.scripts) struct StoredSecretsTests {
    private static let secret = "s3cr3t-0f-the-upstream"
    private static let token = "t0k3n-of-the-client+1"

    /// Whether any file of the store, its log included, contains a text.
    private static func isOnDisk(_ text: String, _ larder: Larder) -> Bool {
        larder.folder.names.filter { $0 != "larder.yaml" }.contains { larder.folder.bytes($0).contains(text) }
    }

    /// The fields of a response that the upstream sent.
    private static func own(_ response: Response, _ sent: FieldLines) -> [FieldLines.Line] {
        response.fields.lines.filter { line in sent.lines.contains { $0.name == line.name } }
    }

    // MARK: Secrets of the upstream's

    /// Fields that hold a secret.
    private static let secretFields: [(name: String, value: String)] = [
        ("Location", "https://files.example.com/a?token=\(secret)"),
        ("Location", "https://u:\(secret)@files.example.com/a"),
        ("Location", "/login?return_to=https%3A%2F%2Fa.example%2F%3Faccess_token%3D\(secret)"),
        ("Location", "https://app.example.com/back?code=\(secret)&state=xyz"),
        ("Location", "https://app.example.com/back?ticket=ST-1-\(secret)"),
        ("Authentication-Info", "nextnonce=\"\(secret)\""),
        ("Location", "https://a.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=\(secret)"),
        ("Location", "https://a.blob.core.windows.net/k?sv=2024-01-01&sig=\(secret)"),
        ("Location", "https://storage.googleapis.com/k?X-Goog-Signature=\(secret)"),
        ("Location", "https://app.example.com/#access_token=\(secret)"),
        ("Link", "<https://api.example.com/x?page=2&private_token=\(secret)>; rel=\"next\", </y>; rel=\"last\""),
        ("Content-Location", "/x;jsessionid=\(secret)"), ("Refresh", "5; url=/x?api_key=\(secret)"),
        ("X-Auth-Token", secret), ("X-Api-Key", secret), ("Authorization", "Bearer \(secret)"), ("X-Secret", secret),
        ("Mcp-Session-Id", secret), ("Operation-Location", "https://a.example/jobs/1?sig=\(secret)"),
        ("X-Goog-Upload-URL", "https://a.example/upload?upload_protocol=resumable&access_token=\(secret)"),
        ("x-ms-copy-source", "https://a.blob.core.windows.net/k?se=1&sig=\(secret)"),
        ("X-Query", "page=2&access_token=\(secret)"),
        ("X-Pages", #"{"next":"https:\/\/a.example\/x?a=1\u0026token=\#(secret)"}"#),
        ("Report-To", #"{"endpoints":[{"url":"https://a.example/r?token=\#(secret)"}]}"#),
    ]

    @Test(arguments: secretFields.map { [$0.name, $0.value] })
    func `a response with a secret in a field is served unchanged, and kept in memory only`(_ field: [String]) throws {
        let sent = Fresh.hour + FieldLines([.init(name: field[0], value: field[1])])
        let origin = try Origin { _ in .json("{}", sent, status: 301) }
        let larder = try Larder(origin)
        for _ in 0..<2 { #expect(Self.own(try larder.get("/x"), sent) == sent.lines) }
        #expect(try larder.get("/x").isHit)
        #expect(origin.count() == 1)
        #expect(try larder.waitForQuiet())
        larder.terminate()
        #expect(!Self.isOnDisk(Self.secret, larder))
        try larder.start()
        #expect(Self.own(try larder.get("/x"), sent) == sent.lines)
        #expect(origin.count() == 2)
    }

    @Test(arguments: [
        ("Report-To", #"{"endpoints":[{"url":"https://nel.heroku.com/reports?ts=1&sid=1b10b0ff&s=a%2Fb"}]}"#),
        ("Content-Security-Policy", "report-uri https://sentry.io/api/1/security/?sentry_key=0123456789"),
        ("Access-Control-Allow-Credentials", "true"), ("Link", "</x?page_token=abc&country=DE&code=7>; rel=next"),
        ("Signature", "sig1=:YWJjZA==:"), ("X-Amz-Cf-Id", "9aKey-7Sig-x_Q=="), ("X-OAuth-Scopes", "repo, user"),
        ("Location", "/x?code=DE&ticket=17"), ("Location", "/x?code=DE&state=CA"),
        ("Location", "/x?ticket=17&service=a"),
        ("X-Note", "REDACTED"), ("WWW-Authenticate", #"Bearer realm="https://a.example/token?service=x""#),
    ])
    func `fields without a secret are stored unchanged`(_ name: String, _ value: String) throws {
        let sent = Fresh.hour + FieldLines([.init(name: name, value: value)])
        let origin = try Origin { _ in .json("{}", sent) }
        let larder = try Larder(origin)
        #expect(Self.own(try larder.get("/x"), sent) == sent.lines)
        #expect(try larder.waitForDocuments(1))
        try larder.restart()
        let hit = try larder.get("/x")
        #expect(hit.isHit && Self.own(hit, sent) == sent.lines)
        #expect(origin.count() == 1)
    }

    @Test func `a 304 or HEAD with a secret in its fields removes the response from disk`() throws {
        let secret: FieldLines = ["X-Auth-Token": Self.secret]
        let origin = try Origin { request in
            if request.method == "HEAD" { return .empty(200, Fresh.tagged("a") + ["Content-Length": "2"] + secret) }
            if request["If-None-Match"] != nil { return .notModified(Fresh.tagged("a") + secret) }
            return .json("{}", Fresh.tagged("a", request.path == "/stale" ? 0 : 3600))
        }
        let larder = try Larder(origin)
        for path in ["/stale", "/head"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(2))
        for _ in 0..<2 {
            let response = try larder.get("/stale")
            #expect(response.text == "{}" && response["X-Auth-Token"] == Self.secret)
        }
        // From memory, with the lifetime that the 304 gave.
        #expect(origin.count("/stale") == 2)
        #expect(try larder.request("HEAD", "/head", ["Cache-Control": "no-cache"])["X-Auth-Token"] == Self.secret)
        #expect(try larder.waitForDocuments(0))
        larder.kill()
        #expect(!Self.isOnDisk(Self.secret, larder))
        try larder.start()
        #expect(try larder.get("/stale").text == "{}")
        #expect(!Self.isOnDisk(Self.secret, larder))
    }

    @Test func `a response in memory only is validated, and stays a hit for its new lifetime`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] == nil
                ? .json("{}", Fresh.tagged("a", 0) + ["X-Auth-Token": Self.secret]) : .notModified(Fresh.tagged("a"))
        }
        let larder = try Larder(origin)
        for _ in 0..<4 {
            let response = try larder.get("/x")
            #expect(response.status == 200 && response["X-Auth-Token"] == Self.secret)
        }
        #expect(origin.count() == 2)
        #expect(try larder.waitForQuiet())
        #expect(try larder.documents() == 0)
    }

    @Test(arguments: ["/y", "/x"])
    func `a memory-only response stays although a write completes meanwhile, unless it is to the same URL`(
        _ target: String
    ) throws {
        let gate = Gate()
        let origin = try Origin { request in
            if request.method == "PATCH" { return .empty(204) }
            return .json("{}", Fresh.hour + ["X-Auth-Token": Self.secret]).after(gate)
        }
        let larder = try Larder(origin)
        let first = Background { try larder.get("/x") }
        #expect(origin.waitForRequests(1))
        #expect(try larder.request("PATCH", target, body: "{}").status == 204)
        gate.open()
        #expect(try first.value().status == 200)
        #expect(try larder.get("/x").isHit == (target == "/y"))
    }

    @Test func `a response in memory only, requested before a write, does not replace one requested after it`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            if request.method == "PATCH" { return .empty(204) }
            let response = OriginResponse.json("\(request.number)", Fresh.hour + ["X-Auth-Token": Self.secret])
            return request.number == 0 ? response.after(gate) : response
        }
        let larder = try Larder(origin)
        let first = Background { try larder.get("/x") }
        #expect(origin.waitForRequests(1))
        #expect(try larder.request("PATCH", "/y", body: "{}").status == 204)
        let second = try larder.get("/x").text
        gate.open()
        #expect(try first.value().text == "0")
        let third = try larder.get("/x")
        #expect(second != "0" && third.text != "0")
    }

    @Test func `the objects of a response with a secret field are stored, and the response shows their changes`()
        throws
    {
        let origin = try Origin { request in
            if request.path == "/users/1" { return .json(#"{"id":1,"name":"new"}"#, Fresh.hour) }
            return .json(#"[{"id":1,"name":"old"}]"#, Fresh.hour + ["X-Auth-Token": Self.secret])
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.get("/users").isHit)
        #expect(try larder.documents() == 0)
        _ = try larder.get("/users/1")
        origin.behave { _ in .json(#"[{"id":1,"name":"new"}]"#, Fresh.hour + ["X-Auth-Token": Self.secret]) }
        // Only the disk can compose.
        let response = try larder.get("/users")
        #expect(response.text.contains("new") && response["X-Auth-Token"] == Self.secret)
        larder.terminate()
        #expect(!Self.isOnDisk(Self.secret, larder))
    }

    // MARK: The request's own credential

    @Test(
        arguments: [
            ("/x?access_token=\(token)", [:], "Link", "<https://a.example/x?access_token=\(token)&page=2>; rel=next"),
            ("/x?access_token=\(token)", [:], "Location", "/y?a=1&access_token=t0k3n-of-the-client%2B1"),
            ("/x?access_token=\(token)", [:], "Operation-Location", "/login?to=%2Fx%3Faccess_token%3D\(token)%26a=1"),
            ("/x?access_token=a%2Fb", [:], "Link", "<https://a.example/x?access_token=a/b>; rel=next"),
            ("/x?token=abc", [:], "Refresh", "5; url=/x?token=abc&b=1"),
            ("/x", ["X-Api-Key": token], "X-Api-Key", token),
            ("/x", ["Authorization": "Bearer \(token)"], "Authorization", "Bearer \(token)"),
            (
                "/x", ["Authorization": "Bearer \(token)"], "X-Next",
                "https://a.example/\(token)/x?access_token=\(token)"
            ),
            ("/x;jsessionid=\(token)/y", [:], "Content-Location", "/x;jsessionid=\(token)/y"),
        ] as [(String, FieldLines, String, String)]
    )
    func `a credential that a response repeats is not on disk, and is filled in from the next request`(
        _ target: String,
        _ fields: FieldLines,
        _ name: String,
        _ value: String
    ) throws {
        let sent = Fresh.tagged("a") + FieldLines([.init(name: name, value: value)])
        let origin = try Origin { _ in .json("{}", sent, status: 301) }
        let larder = try Larder(origin)
        let first = try larder.get(target, fields)
        #expect(Self.own(first, sent) == sent.lines)
        #expect(try larder.waitForDocuments(1))
        #expect(try !larder.admin("GET", "/documents").text.contains(Self.token))
        try larder.restart()
        for _ in 0..<2 {
            let hit = try larder.get(target, fields)
            #expect(hit.isHit && hit.body == first.body && Self.own(hit, sent) == sent.lines)
        }
        #expect(origin.count() == 1)
        // Others have their own.
        #expect(try !larder.get("/x?access_token=other-token", ["X-Api-Key": "other"]).isHit)
        larder.kill()
        for secret in [Self.token, "t0k3n-of-the-client%2B1"] { #expect(!Self.isOnDisk(secret, larder), "\(secret)") }
    }

    @Test func `a repeated credential is filled in without memory, in the raw view, in an event, and after a 304`()
        throws
    {
        let target = "/x?access_token=\(Self.token)"
        let link = "<https://a.example\(target)&page=2>; rel=next"
        let origin = try Origin { request in
            let fields = Fresh.tagged("a", 0) + ["Link": link]
            return request["If-None-Match"] != nil ? .notModified(fields) : .json("{}", fields)
        }
        let larder = try Larder(config: Configs.plain(origin, top: ["memory: { maximum_size: 0 }"]))
        _ = try larder.get(target)
        #expect(try larder.waitForDocuments(1))
        for fields in [[:], ["Larder-View": "raw"]] as [FieldLines] {
            #expect(try larder.get(target, fields)["Link"] == link)
        }
        #expect(try larder.get(target, ["Larder-Live": "once"]).text.contains(Self.token))
        #expect(try larder.waitForQuiet())
        origin.stop()
        #expect(try larder.get(target, ["Cache-Control": "max-stale"])["Link"] == link)
        let number = try larder.sql("SELECT id FROM _documents").first ?? ""
        #expect(try !larder.admin("GET", "/documents/\(number)").text.contains(Self.token))
        larder.kill()
        #expect(!Self.isOnDisk(Self.token, larder))
    }

    @Test func `in a shared cache a repeated credential stays in memory`() throws {
        let fields: FieldLines = ["Cache-Control": "public, max-age=3600", "X-Next": "/x/\(Self.token)"]
        let origin = try Origin { _ in .json("{}", fields) }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["shared: true"]))
        _ = try larder.get("/x", ["Authorization": "Bearer \(Self.token)"])
        #expect(try larder.waitForQuiet())
        larder.terminate()
        #expect(!Self.isOnDisk(Self.token, larder))
    }

    @Test(
        arguments: [
            ("Authorization", #"Token token="SECRET""#), ("Authorization", #"OAuth oauth_token="SECRET""#),
            ("Authorization", #"MediaBrowser Client="a", Token="SECRET""#),
            ("Authorization", #"Digest username="u", response="SECRET""#), ("Authorization", "Bearer\tSECRET"),
            ("Sec-WebSocket-Protocol", "bearer, SECRET"), ("Sec-WebSocket-Protocol", "a, access-token.SECRET"),
            ("Referer", "https://a.example/?access_token=SECRET"), ("Referer", "https://u:SECRET@a.example/"),
            ("X-Original-URL", "/x?next=%2Fy%3Fapi_key%3DSECRET"),
        ]
    )
    func `a response that repeats a secret from any part of its request is not on disk`(_ field: (String, String))
        throws
    {
        let secret = "s3cr3t.0f-the-client"
        let gzip = gzipStored(Array(secret.utf8))
        let origin = try Origin { request in
            switch request.path {
            case "/json": .json(#"{"echo":"\#(secret)"}"#, Fresh.hour)
            case "/file": .body(gzip, Fresh.hour)
            case "/field": .json("{}", Fresh.hour + ["X-Echo": "it is \(secret)"])
            default: .json("{}", Fresh.hour)
            }
        }
        let larder = try Larder(origin)
        let fields = FieldLines([.init(name: field.0, value: field.1.replacing("SECRET", with: secret))])
        for path in ["/json", "/file", "/field"] {
            _ = try larder.get(path, fields)
            #expect(try larder.get(path, fields).isHit)
        }
        _ = try larder.get("/other", fields)
        // In a field, a keyed digest stands for a credential of the principal.
        #expect(try larder.waitForDocuments(field.0 == "Authorization" ? 2 : 1))
        larder.terminate()
        #expect(!Self.isOnDisk(secret, larder))
    }

    @Test func `a response is not on disk if its URL contains another URL with a token`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin)
        for target in ["/x?next=%2Fy%3Faccess_token%3D\(Self.secret)", "/x?next=/y?page=2"] {
            _ = try larder.get(target)
            #expect(try larder.get(target).isHit)
        }
        #expect(try larder.waitForDocuments(1))
        larder.terminate()
        #expect(!Self.isOnDisk(Self.secret, larder))
    }

    // MARK: What selects

    @Test func `a CSRF token or a cookie that Vary names is not on disk`() throws {
        let origin = try Origin { .json("{}", Fresh.hour + ["Vary": $0.path == "/csrf" ? "X-CSRF-Token" : "X-Echo"]) }
        let larder = try Larder(origin)
        for (path, name) in [("/csrf", "X-CSRF-Token"), ("/echo", "X-Echo")] {
            let token = FieldLines([.init(name: name, value: Self.secret)])
            let fields: FieldLines = ["Cookie": "a=\(Self.secret)"] + token
            _ = try larder.get(path, fields)
            #expect(try larder.get(path, fields).isHit)
        }
        _ = try larder.get("/csrf", ["X-CSRF-Token": "\(Self.secret)-of-another"])
        #expect(try larder.waitForQuiet())
        larder.terminate()
        #expect(!Self.isOnDisk(Self.secret, larder))
    }

    @Test func `a token in a field that Vary or the context names is not stored`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour + ["Vary": "X-From"]) }
        let config = Configs.plain(origin, upstream: ["context: [Accept, X-Original-URL]"])
        let larder = try Larder(config: config)
        for name in ["X-From", "X-Original-URL"] {
            let fields: FieldLines = FieldLines([.init(name: name, value: "/x?access_token=\(Self.token)")])
            _ = try larder.get("/x", fields)
            #expect(try larder.get("/x", fields).isHit)
        }
        #expect(try larder.waitForQuiet())
        larder.terminate()
        #expect(!Self.isOnDisk(Self.token, larder))
    }

    @Test func `context: separates responses that an upstream selects by a field that Vary does not name`() throws {
        let origin = try Origin { request in
            .json("\"\(request["X-Original-URL"] ?? request["X-Host"] ?? "plain")\"", Fresh.hour)
        }
        let poisoned = try Larder(origin)
        #expect(try poisoned.get("/x", ["X-Original-URL": "/admin"]).text == "\"/admin\"")
        #expect(try poisoned.get("/x").text == "\"/admin\"")

        let key = "context: [Accept, Accept-Language, \"*-Version\", Time-Zone, X-Original-URL, X-Host]"
        let larder = try Larder(config: Configs.plain(origin, upstream: [key]))
        for (fields, text) in [
            (["X-Original-URL": "/admin"], "/admin"), ([:], "plain"), (["X-Host": "evil.example"], "evil.example"),
        ] as [(FieldLines, String)] {
            #expect(try larder.get("/x", fields).text == "\"\(text)\"")
            let hit = try larder.get("/x", fields)
            #expect(hit.isHit && hit.text == "\"\(text)\"")
        }
        // These never go upstream.
        for name in ["X-Forwarded-Host", "X-Forwarded-Prefix", "Forwarded"] {
            _ = try larder.get("/\(name)", FieldLines([.init(name: name, value: "evil.example")]))
            #expect(origin.requests.last?.fields.contains(name) == false)
        }
    }

    @Test func `OAuth's and CAS's parameters are credentials, others with these names are not`() throws {
        let origin = try Origin { .json("\"\($0.target)\"", Fresh.hour) }
        let larder = try Larder(origin)
        let targets = [
            "/x?code=DE&state=CA", "/x?code=FR&state=CA", "/x?ticket=17&service=s3", "/x?ticket=18&service=s3",
        ]
        for target in targets {
            _ = try larder.get(target)
            let hit = try larder.get(target)
            #expect(hit.isHit && hit.text == "\"\(target)\"")
        }
        let secrets = ["/x?code=\(Self.secret)&state=1", "/x?service=s&ticket=\(Self.secret)", "/x?sid=\(Self.secret)"]
        for target in secrets {
            #expect(try !larder.get(target).isHit)
            #expect(try larder.get(target).isHit)
            #expect(try larder.get(target).text == "\"\(target)\"")
        }
        #expect(try larder.waitForQuiet())
        let documents = try larder.admin("GET", "/documents").text
        #expect(documents.contains("code=DE") && !documents.contains(Self.secret))
        larder.terminate()
        #expect(!Self.isOnDisk(Self.secret, larder))
    }
}
