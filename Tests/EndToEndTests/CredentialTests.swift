import Foundation
import TestSupport
import Testing

/// Credentials by any name: nobody sees what was fetched with another one, and none is stored.
@Suite(.scripts) struct CredentialTests {
    /// How twenty-odd APIs are told who asks; `@` stands for the secret.
    static let ways: [(api: String, fields: [(String, String)], query: String)] = [
        ("OpenStack", [("X-Auth-Token", "@")], ""),
        ("Azure OpenAI", [("api-key", "@")], ""),
        ("Azure API Management", [("Ocp-Apim-Subscription-Key", "@")], ""),
        ("Shopify", [("X-Shopify-Access-Token", "@")], ""),
        ("GitLab, CI job", [("JOB-TOKEN", "@")], ""),
        ("GitLab, deployment", [("Deploy-Token", "@")], ""),
        ("GitLab, in the query", [], "?private_token=@"),
        ("GitLab, on behalf", [("Sudo", "@"), ("Private-Token", "of-the-administrator")], ""),
        ("Vault", [("X-Vault-Token", "@")], ""),
        ("Google", [("X-Goog-Api-Key", "@")], ""),
        ("Google Maps", [], "?key=@"),
        ("Supabase", [("apikey", "@")], ""),
        ("Binance", [("X-MBX-APIKEY", "@")], ""),
        ("Cloudflare", [("X-Auth-Email", "me@example.org"), ("X-Auth-Key", "@")], ""),
        ("Datadog", [("DD-API-KEY", "@"), ("DD-APPLICATION-KEY", "app")], ""),
        ("Redmine", [("X-Redmine-API-Key", "@")], ""),
        ("Redmine, on behalf", [("X-Redmine-Switch-User", "@"), ("X-Redmine-API-Key", "admin")], ""),
        ("Pivotal Tracker", [("X-TrackerToken", "@")], ""),
        ("Figma", [("x-figma-token", "@")], ""),
        ("Algolia", [("X-Algolia-API-Key", "@"), ("X-Algolia-Application-Id", "A")], ""),
        ("Stripe Connect", [("Stripe-Account", "@"), ("Authorization", "Bearer sk_test_platform")], ""),
        ("Grafana Mimir", [("X-Scope-OrgID", "@")], ""),
        ("Kubernetes", [("Impersonate-User", "@"), ("Authorization", "Bearer of-the-administrator")], ""),
        ("Consul", [("X-Consul-Token", "@")], ""),
        ("Jira", [("Cookie", "JSESSIONID=@")], ""),
        ("a servlet's", [], ";jsessionid=@"),
        ("NewsAPI", [], "?q=x&apiKey=@"),
        ("Trello", [], "?key=app&token=@"),
        ("an escaped name", [], "?%61ccess_token=@"),
        ("semicolons", [], "?a=1;api_key=@"),
        ("Basic", [("authorization", "Basic @")], ""),
    ]

    private static func request(_ way: Int, _ secret: String) -> (target: String, fields: FieldLines) {
        var fields = FieldLines()
        for (name, value) in ways[way].fields { fields.append(name, value.replacing("@", with: secret)) }
        return ("/me\(ways[way].query.replacing("@", with: secret))", fields)
    }

    @Test(arguments: ways.indices)
    func `each credential gets a response of its own, and the same one again`(_ way: Int) throws {
        let origin = try Origin { .json("\"\($0.number)\"", Fresh.hour) }
        let larder = try Larder(origin)
        let (one, other) = (Self.request(way, "secret-of-ada-1815"), Self.request(way, "secret-of-bob-1936"))
        let first = try larder.get(one.target, one.fields)
        let second = try larder.get(other.target, other.fields)
        #expect(!second.isHit && first.text != second.text, "\(Self.ways[way].api)")
        for _ in 0..<2 {
            #expect(try larder.get(one.target, one.fields).text == first.text, "\(Self.ways[way].api)")
            #expect(try larder.get(other.target, other.fields).text == second.text, "\(Self.ways[way].api)")
        }
        #expect(try larder.get("/me").text != first.text)
        #expect(origin.count() == 3)
    }

    /// Secrets in all places at once, looked for in every byte that Larder keeps or tells.
    @Test func `no credential reaches a file, the log, a list or a message`() throws {
        let canary = "cAnArY-7f3a91"
        let origin = try Origin { request in
            switch request.path {
            case "/broken": return .reset
            case "/echo": return .json(#"{"next":"\#(request.target)"}"#, Fresh.hour)
            case "/echo-field":
                return .json("{}", Fresh.hour + ["X-Debug": "asked with \(request["X-Auth-Token"] ?? "")"])
            case "/users/9": return .json(#"{"id":9,"login":"\#(request["X-Auth-Token"] ?? "")"}"#, Fresh.hour)
            default:
                let links =
                    "<http://u:\(canary)-user@127.0.0.1/x?page=2&token=\(canary)-query>; rel=next"
                return .json(
                    #"[{"id":1,"login":"ada"}]"#,
                    Fresh.hour + [
                        "Link": links, "X-Auth-Token": "\(canary)-field", "Vary": "X-Auth-Token, X-Unheard-Of",
                        "Location":
                            "http://u:\(canary)-user@127.0.0.1/;session=\(canary)-matrix#access_token=\(canary)-fragment",
                        "Set-Cookie": "s=\(canary)-cookie", "ETag": "\"1\"",
                    ]
                )
            }
        }
        let larder = try Larder(origin, config: Configs.blog(origin, top: ["log: { level: debug }"]))
        let fields: FieldLines = [
            "X-Auth-Token": "\(canary)-field", "Authorization": "Basic dTpjQW5BclktN2YzYTkxLWJhc2lj",
            "Cookie": "id=\(canary)-cookie", "X-Vault-Token": "\(canary)-vault",
        ]
        let queries = ["", "?private_token=\(canary)-query&api_key=\(canary)-query", "?a;key=\(canary)-query"]
        for path in ["/users", "/users;jsessionid=\(canary)-matrix", "/broken", "/echo", "/echo-field", "/users/9"] {
            for query in queries {
                _ = try larder.get(path + query, fields)
                _ = try larder.get(path + query, ["X-Auth-Token": "\(canary)-field"])
            }
        }
        for path in ["/users/1", "/users/1;token=\(canary)-matrix", "/broken?token=\(canary)-query"] {
            _ = try larder.request("PATCH", path, fields, body: "{}")
        }
        #expect(try larder.waitForQuiet())
        var said: [String] = []
        for path in ["/documents", "/warnings", "/metrics", "/objects/User", "/count"] {
            said.append(try larder.admin("GET", path).text)
        }
        let url = "/users;session=\(canary)-matrix?private_token=\(canary)-query"
        said.append(try larder.command("explain", url, "-H", "X-Auth-Token: \(canary)-field").output)
        said.append(try larder.admin("GET", "/nowhere?token=\(canary)-query").text)
        let key = try TestProcess.run(
            Larder.binary,
            ["key", "--config", larder.folder.file("larder.yaml"), url, "-H", "X-Auth-Token: \(canary)-field"]
        )
        said.append(key)
        #expect(key.contains("x-auth-token (\"auth\" names a credential)") && key.contains("?session"))
        larder.terminate()
        said.append(larder.log)
        for name in larder.folder.names where name != "larder.yaml" {
            let bytes = larder.folder.bytes(name)
            #expect(!bytes.contains(canary), "\(name): \(bytes.around(canary))")
            #expect(!bytes.contains("dTpjQW5BclktN2YzYTkxLWJhc2lj"), "\(name)")
        }
        for text in said { #expect(!text.contains(canary), "\(Array(text.utf8).around(canary))") }
    }

    // MARK: What may not reach a second client

    @Test(arguments: ["private", "private, max-age=60", "private, no-cache", "private=\"x-a\", max-age=60"])
    func `a private response is reused only for requests whose fields are all equal`(_ control: String) throws {
        let origin = try Origin { request in
            // A tag that tells nobody apart, as those of some servers do.
            guard request["If-None-Match"] == nil else { return .notModified(["ETag": "\"same\""]) }
            return .json("\"\(request["X-Unheard-Of"] ?? "nobody")\"", ["Cache-Control": control, "ETag": "\"same\""])
        }
        let larder = try Larder(origin)
        for name in ["ada", "bob", "ada", "bob"] {
            #expect(try larder.get("/x", ["X-Unheard-Of": name]).text == "\"\(name)\"")
        }
        #expect(try larder.get("/x").text == "\"nobody\"")
        #expect(try larder.waitForDocuments(3))
        try larder.restart()
        for name in ["bob", "ada"] { #expect(try larder.get("/x", ["X-Unheard-Of": name]).text == "\"\(name)\"") }
        #expect(try larder.get("/x").text == "\"nobody\"")
    }

    @Test(arguments: ["no-cache", "max-age=0", "no-cache, max-age=60"], [("\"a\"", true), ("W/\"a\"", false)])
    func `a 304 to a strong tag, not to a weak one, lets a client with other fields get a stored response`(
        _ control: String,
        _ tag: (text: String, isStrong: Bool)
    ) throws {
        let origin = try Origin { request in
            let fields: FieldLines = ["Cache-Control": control, "ETag": tag.text]
            return request["If-None-Match"] == tag.text ? .notModified(fields) : .text("same", fields)
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x", ["X-Unheard-Of": "ada"]).text == "same")
        #expect(try larder.waitForDocuments(1))
        let other = try larder.get("/x", ["X-Unheard-Of": "bob"])
        #expect(other.status == 200 && other.text == "same")
        #expect(other.cacheStatus.contains("fwd-status=304") == tag.isStrong)
        #expect(origin.requests.last?["X-Unheard-Of"] == "bob")
        #expect(origin.requests.last?["If-None-Match"] == (tag.isStrong ? tag.text : nil))
        // Each of them has a response of its own now, whatever the tag is.
        #expect(try larder.waitForDocuments(2))
        for name in ["ada", "bob"] {
            #expect(try larder.get("/x", ["X-Unheard-Of": name]).cacheStatus.contains("fwd-status=304"))
        }
        // Without the upstream, what was never confirmed to a client is not served to it.
        origin.behave { _ in .reset }
        #expect(try larder.get("/x", ["X-Unheard-Of": "cyd"]).status == 502)
        if control == "max-age=0" { #expect(try larder.get("/x", ["X-Unheard-Of": "ada"]).text == "same") }
    }

    @Test func `a date never releases a response to a client with other fields`() throws {
        let origin = try Origin { request in
            request["If-Modified-Since"] == nil
                ? .text(
                    request["X-Unheard-Of"] ?? "",
                    ["Cache-Control": "no-cache", "Last-Modified": CacheTests.date(in: -60)]
                )
                : .notModified()
        }
        let larder = try Larder(origin)
        for name in ["ada", "bob", "ada", "bob"] { #expect(try larder.get("/x", ["X-Unheard-Of": name]).text == name) }
    }

    @Test func `a fresh response with must-revalidate is shared by clients with different fields`() throws {
        let origin = try Origin { _ in .text("same", ["Cache-Control": "max-age=60, must-revalidate"]) }
        let larder = try Larder(origin)
        #expect(try !larder.get("/x", ["X-Unheard-Of": "ada"]).isHit)
        #expect(try larder.get("/x", ["X-Unheard-Of": "bob"]).isHit)
    }

    @Test func `in a shared cache a 304 to a weak tag lets clients with different fields share a response`() throws {
        let origin = try Origin { request in
            let fields: FieldLines = ["Cache-Control": "no-cache", "ETag": "W/\"a\""]
            return request["If-None-Match"] == nil ? .text("same", fields) : .notModified(fields)
        }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["shared: true"]))
        _ = try larder.get("/x", ["X-Unheard-Of": "ada"])
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.get("/x", ["X-Unheard-Of": "bob"]).cacheStatus.contains("fwd-status=304"))
        #expect(try larder.documents() == 1)
    }

    @Test(arguments: ["private", "private, max-age=60", "no-cache", "max-age=0"])
    func `a client that waits for a private response does not get another client's`(_ control: String) throws {
        let gate = Gate()
        let origin = try Origin { request in
            OriginResponse.json("\"\(request["X-Unheard-Of"] ?? "nobody")\"", ["Cache-Control": control]).after(gate)
        }
        let larder = try Larder.patient(origin)
        let names = (0..<12).map { ["ada", "bob", "cyd"][$0 % 3] }
        let answers = Background { try together(12) { try larder.get("/x", ["X-Unheard-Of": names[$0]]).text } }
        #expect(try larder.waitForFollowers(11))
        gate.open()
        for (number, text) in try answers.value().enumerated() { #expect(text == "\"\(names[number])\"") }
    }

    @Test func `objects of a private response stay with clients that agree in all fields`() throws {
        let origin = try Origin { request in
            let name = request["X-Unheard-Of"] ?? "nobody"
            let user = #"{"id":1,"login":"ada","name":"\#(name)"}"#
            return .json(request.path == "/users" ? "[\(user)]" : user, ["Cache-Control": "private, max-age=3600"])
        }
        let larder = try Larder(config: Configs.blog(origin))
        for _ in 1...2 {
            #expect(try larder.get("/users", ["X-Unheard-Of": "one"]).text.contains("one"))
            #expect(try larder.get("/users/1", ["X-Unheard-Of": "two"]).text.contains("two"))
        }
        // A value that another's field has selected is never shown: the upstream is asked instead.
        #expect(origin.count() == 4)
    }

    @Test func `a client that always sends an unknown field sees no older value after a newer one`() throws {
        let name = Monitor("v0")
        let origin = try Origin { request in
            let user = #"{"id":1,"login":"ada","name":"\#(name.current)"}"#
            return request.path == "/users"
                ? .json("[\(user)]", Fresh.hour) : .json(user, ["Cache-Control": "private, max-age=3600"])
        }
        let larder = try Larder(config: Configs.blog(origin))
        func get(_ path: String, _ client: String?, _ more: FieldLines = [:]) throws -> Response {
            try larder.get(path, (client.map { ["X-Client": $0] } ?? [:]) + more)
        }
        for path in ["/users", "/users/1"] { #expect(try get(path, "cli").text.contains("v0")) }
        name.withLock { $0 = "v1" }
        #expect(try get("/users/1", "cli", ["Cache-Control": "no-cache"]).text.contains("v1"))
        #expect(try get("/users/1", "cli").isHit)
        // The same client sees it in the list, composed. Nobody else is shown what its field may have selected.
        let own = try get("/users", "cli")
        #expect(own.isHit && own.text.contains("v1"), "\(own.cacheStatus)")
        let before = origin.count("/users")
        let others = try get("/users", "web")
        #expect(!others.isHit && others.text.contains("v1") && origin.count("/users") == before + 1)
        // Now a response for all shows it.
        for client in ["cli", "web", nil] {
            let answer = try get("/users", client)
            #expect(answer.isHit && answer.text.contains("v1"), "\(client ?? "none")")
        }
    }

    @Test func `a value that only some clients may see does not keep others from newer values of other objects`() throws
    {
        let login = Monitor("v0")
        let origin = try Origin { request in
            let ada = #"{"id":1,"login":"\#(login.current)"}"#
            return switch request.path {
            case "/users": .json(#"[\#(ada),{"id":2,"login":"bob"}]"#, Fresh.hour)
            case "/users/1": .json(ada, Fresh.hour)
            default: .json(#"{"id":2,"login":"bob","name":"Bob"}"#, ["Cache-Control": "private, max-age=3600"])
            }
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        // Of the second user, this client alone may be shown the name.
        _ = try larder.get("/users/2", ["X-Client": "web"])
        login.withLock { $0 = "v1" }
        _ = try larder.get("/users/1")
        let list = try larder.get("/users")
        #expect(list.isHit && list.text == #"[{"id":1,"login":"v1"},{"id":2,"login":"bob"}]"#, "\(list.cacheStatus)")
    }

    @Test func `a member that only some clients may see does not keep others from newer values of the object`() throws {
        let login = Monitor("v0")
        let origin = try Origin { request in
            let ada = #"{"id":1,"login":"\#(login.current)"}"#
            return switch request.path {
            case "/users": .json("[\(ada)]", Fresh.hour)
            case "/posts": .json(#"[{"id":7,"author":\#(ada)}]"#, Fresh.hour)
            default: .json(#"{"id":1,"name":"Ada"}"#, ["Cache-Control": "private, max-age=3600"])
            }
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        // This client alone may be shown the name.
        _ = try larder.get("/users/1", ["X-Client": "web"])
        login.withLock { $0 = "v1" }
        _ = try larder.get("/posts")
        let list = try larder.get("/users")
        #expect(list.isHit && list.text == #"[{"id":1,"login":"v1"}]"#, "\(list.cacheStatus)")
    }

    @Test func `with the upstream away, an object that only some clients may see leaves the others at their newest`()
        throws
    {
        let (login, name, isDown) = (Monitor("v0"), Monitor("old"), Monitor(false))
        let origin = try Origin { request in
            guard !isDown.current else { return .reset }
            let bob = #"{"id":2,"login":"bob","name":"\#(name.current)"}"#
            guard request.path == "/users" else { return .json(bob, Fresh.hour) }
            let list = #"[{"id":1,"login":"\#(login.current)"},\#(bob)]"#
            let isOne = request["X-Client"] != nil
            return .json(list, isOne ? ["Cache-Control": "private, max-age=3600", "Age": "1000"] : Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["lag: 1h"]))
        _ = try larder.get("/users", ["X-Client": "web"])
        // The two logins cannot be ordered, and the first is for that client alone.
        login.withLock { $0 = "v1" }
        _ = try larder.get("/users")
        name.withLock { $0 = "new" }
        #expect(try larder.get("/users/2").text.contains("new"))
        #expect(try larder.get("/users/2").isHit)
        isDown.withLock { $0 = true }
        let list = try larder.get("/users")
        #expect(
            list.text == #"[{"id":1,"login":"v1"},{"id":2,"login":"bob","name":"new"}]"#,
            "\(list.cacheStatus) \(list.text)"
        )
    }

    @Test func `with the upstream away, a value that is newer for some clients only makes the older one doubtful`()
        throws
    {
        let (login, isDown) = (Monitor("v0"), Monitor(false))
        let origin = try Origin { request in
            guard !isDown.current else { return .reset }
            let ada = #"{"id":1,"login":"\#(login.current)"}"#
            return request.path == "/users"
                ? .json("[\(ada)]", Fresh.hour) : .json(ada, ["Cache-Control": "private, max-age=3600"])
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        login.withLock { $0 = "v1" }
        _ = try larder.get("/users/1", ["X-Client": "web"])
        isDown.withLock { $0 = true }
        let list = try larder.get("/users")
        #expect(list.text == #"[{"id":1,"login":"v0"}]"#)
        #expect(list.cacheStatus.contains("doubt"), "\(list.cacheStatus)")
    }

    // MARK: What splits no cache

    @Test func `fields that ordinary clients change with each request do not divide the cache`() throws {
        let origin = try Origin { _ in .json("{}", ["Cache-Control": "private, max-age=3600"]) }
        let larder = try Larder(origin)
        func get(_ number: Int) throws -> Response {
            try larder.get(
                "/x?page_token=p&sort_key=k&max_tokens=9",
                [
                    "Authorization": "Bearer sk_test_1", "Idempotency-Key": "\(number)", "X-Request-Id": "r\(number)",
                    "traceparent": "00-\(number)", "tracestate": "a=\(number)", "baggage": "n=\(number)",
                    "sentry-trace": "\(number)", "X-B3-TraceId": "\(number)", "X-Amzn-Trace-Id": "Root=\(number)",
                    "X-Datadog-Trace-Id": "\(number)", "X-Correlation-ID": "\(number)", "User-Agent": "a/\(number)",
                    "X-Stripe-Client-User-Agent": #"{"n":\#(number)}"#, "X-Stripe-Client-Telemetry": "\(number)",
                    "Date": "\(number)", "X-CSRF-Token": "\(number)", "X-CSRFToken": "\(number)", "DPoP": "\(number)",
                    "X-Stainless-Retry-Count": "\(number)", "Referer": "/\(number)", "Priority": "u=\(number)",
                    "x-ms-client-request-id": "\(number)", "Sec-CH-UA": "\(number)", "Request-Id": "\(number)",
                ]
            )
        }
        #expect(try !get(1).isHit)
        #expect(try get(2).isHit)
        #expect(try get(3).isHit)
    }

    @Test func `principal fields can be added and removed, and a plain list replaces the default`() throws {
        func hits(_ words: String, _ name: String, _ control: String = "max-age=3600") throws -> Bool {
            let origin = try Origin { _ in .json("{}", ["Cache-Control": control]) }
            let larder = try Larder(config: Configs.plain(origin, upstream: ["principal: \(words)"]))
            _ = try larder.get("/x", [name: "one-value"])
            return try larder.get("/x", [name: "another-value"]).isHit
        }
        #expect(try hits("[auto]", "X-Unheard-Of"))
        #expect(try !hits("[+X-Unheard-Of]", "X-Unheard-Of"))
        #expect(try !hits("[+X-Unheard-Of]", "Api-Key"))
        #expect(try hits("[-Api-Key]", "Api-Key", "private, max-age=3600"))
        #expect(try !hits("[all]", "X-Unheard-Of"))
        #expect(try hits("[all]", "X-Request-Id"))
        #expect(try hits("[all, -X-Unheard-Of]", "X-Unheard-Of", "private, max-age=3600"))
        #expect(try hits("[Authorization]", "Api-Key"))
        #expect(try !hits("[Authorization]", "Api-Key", "private, max-age=3600"))
        #expect(try !hits("[Authorization]", "authorization"))
        #expect(try hits("[]", "Authorization"))
    }

    @Test func `a credential that Vary names is not written to disk as a variant`() throws {
        let origin = try Origin { .json("\"\($0["Cookie"] ?? "none")\"", Fresh.hour + ["Vary": "Cookie"]) }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["principal: [-Cookie]"]))
        _ = try larder.get("/x", ["Cookie": "hidden-cookie"])
        #expect(try !larder.get("/x", ["Cookie": "hidden-cookie"]).isHit)
        #expect(try larder.get("/x").text == "\"none\"")
        #expect(try larder.get("/x").isHit)
        #expect(try larder.waitForDocuments(1))
        larder.terminate()
        #expect(!larder.storeBytes.contains("hidden-cookie"))
    }
}

extension [UInt8] {
    /// What stands around a text, for the reader of a failure.
    fileprivate func around(_ text: String) -> String {
        firstRange(of: Array(text.utf8)).map { range in
            String(
                decoding: self[Swift.max(0, range.lowerBound - 60)..<Swift.min(count, range.upperBound + 20)],
                as: UTF8.self
            )
        } ?? ""
    }
}
