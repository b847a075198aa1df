import Foundation
import TestSupport
import Testing

/// `GET /explain` and `larder explain`: why a response is what it is.
@Suite(.scripts) struct ExplainTests {
    static func explain(_ larder: Larder, _ url: String, _ fields: [String] = [], more: String = "") throws -> [String:
        Any]
    {
        let headers = fields.map { "&header=\(escaped($0))" }.joined()
        let answer = try larder.admin("GET", "/explain?url=\(escaped(url))\(headers)\(more)")
        #expect(answer.status == 200, "\(answer.text)")
        return answer.object
    }

    static func escaped(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    @Test func `what explain says of a stream is what its client gets`() throws {
        let origin = try Origin { request in
            request.path == "/limited"
                ? .json("{}", ["Retry-After": "60", "Cache-Control": "no-store"], status: 429)
                : .json(#"{"id":1}"#, Fresh.hour)
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/a").status == 200)
        #expect(try larder.waitForDocuments(1))
        let cases: [(path: String, fields: FieldLines, reason: String)] = [
            ("/a", [:], "then what the upstream says"),
            ("/a", ["Cache-Control": "only-if-cached"], "the upstream is not asked"),
            ("/none", ["Cache-Control": "only-if-cached"], "`error`"),
            ("/a", ["Last-Event-ID": "end"], "stay away"),
        ]
        func check(_ path: String, _ fields: FieldLines, _ reason: String) throws {
            let fields = fields + ["Larder-Live": "once"]
            let foretold = try Self.explain(larder, path, fields.lines.map { "\($0.name): \($0.value)" })
            let online = try #require(foretold["online"] as? [String: Any])
            let response = try larder.get(path, fields)
            #expect(online["action"] as? String == "events" && online["status"] as? Int == response.status, "\(path)")
            #expect((online["reason"] as? String)?.contains(reason) == true, "\(online)")
            let status = (online["cache_status"] as? String)?.filter { $0 != " " } ?? ""
            // How long it is fresh may have changed by a second.
            #expect(response.cacheStatus.prefix(10) == status.prefix(10), "\(response.cacheStatus) \(status)")
            let events = try response.events
            #expect(reason.contains("error") == (events.first?.name == "error"), "\(path): \(events)")
        }
        for (path, fields, reason) in cases { try check(path, fields, reason) }
        #expect(try larder.get("/limited").status == 429)
        let asked = origin.count()
        try check("/limited", [:], "`error`")
        #expect(origin.count() == asked)
    }

    @Test func `a POST that may read is foretold with the reason why it does not`() throws {
        let origin = try Origin { _ in .json("{}") }
        let config = Configs.plain(origin) + "\nroutes: [{ path: search, method: POST, read: true }]"
        let larder = try Larder(config: config)
        let foretold = try Self.explain(larder, "/search", ["Content-Type: text/plain"], more: "&method=POST&data=x")
        let online = try #require(foretold["online"] as? [String: Any])
        let response = try larder.request("POST", "/search", ["Content-Type": "text/plain"], body: "x")
        #expect((online["cache_status"] as? String)?.filter { $0 != " " } == response.cacheStatus, "\(online)")
        #expect(response.cacheStatus.contains("detail="))
    }

    private func member(_ path: String, of explanation: [String: Any]) -> Any? {
        path.split(separator: ".").reduce(explanation as Any?) { value, name in
            (value as? [String: Any])?[String(name)]
        }
    }

    private func term(_ name: String, of explanation: [String: Any]) -> (Int, String)? {
        let terms = member("freshness.terms", of: explanation) as? [[String: Any]] ?? []
        let found = terms.first { $0["name"] as? String == name }
        return found.map { ($0["seconds"] as? Int ?? -1, $0["source"] as? String ?? "") }
    }

    @Test func `explain fetches nothing, stores nothing, and creates no principal`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin)
        let before = try larder.sql("SELECT count(*) FROM _principals")
        let explanation = try Self.explain(larder, "/x?access_token=secret", ["Authorization: Bearer hush"])
        #expect(member("online.action", of: explanation) as? String == "fetch")
        #expect(member("online.cache_status", of: explanation) as? String == "larder; fwd=uri-miss")
        #expect(member("offline.action", of: explanation) as? String == "refuse")
        #expect(member("request.principal.is_known", of: explanation) as? Bool == false)
        #expect(member("request.principal.fields", of: explanation) as? [String] == ["authorization", "?access_token"])
        #expect(member("request.sent", of: explanation) as? String == "\(origin.url)/x?access_token=REDACTED")
        #expect("\(explanation)".contains("hush") == false && "\(explanation)".contains("secret") == false)
        #expect(origin.count() == 0)
        #expect(try larder.documents() == 0)
        #expect(try larder.sql("SELECT count(*) FROM _principals") == before)
    }

    @Test func `explain says that a request would be collapsed into one under way`() throws {
        let gate = Gate()
        let origin = try Origin { _ in .json("{}", Fresh.hour).after(gate) }
        let larder = try Larder.patient(origin)
        let first = Background { try larder.get("/x") }
        #expect(origin.waitForRequests(1))
        let expected = "larder; fwd=uri-miss; collapsed"
        #expect(member("online.cache_status", of: try Self.explain(larder, "/x")) as? String == expected)
        let other = member("online.cache_status", of: try Self.explain(larder, "/y")) as? String
        #expect(other == "larder; fwd=uri-miss")
        gate.open()
        _ = try first.value()
    }

    @Test func `explain says whether the stored parts contain a range`() throws {
        let origin = try Origin { _ in
            let fields: FieldLines = ["Content-Range": "bytes 0-3/8"] + Fresh.tagged("a")
            return .text("abcd", fields, status: 206)
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x", ["Range": "bytes=0-3"]).status == 206)
        for _ in 0..<2 {
            #expect(try larder.waitForDocuments(1))
            let within = try Self.explain(larder, "/x", ["Range: bytes=1-2"])
            #expect(member("online.action", of: within) as? String == "serve")
            #expect(member("online.status", of: within) as? Int == 206)
            #expect(member("offline.action", of: within) as? String == "serve")
            let beyond = try Self.explain(larder, "/x", ["Range: bytes=2-5"])
            #expect(member("online.cache_status", of: beyond) as? String == "larder; fwd=partial")
            #expect(try larder.get("/x", ["Range": "bytes=1-2"]).text == "bc")
            // From the store the same.
            try larder.restart()
        }
        #expect(origin.count() == 1)
    }

    /// Nearly every client sends an `Accept` of its own, and who explains mostly gives none.
    @Test func `explain shows what is stored for other requests, and how they differ`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin)
        let accept = "application/vnd.github+json"
        _ = try larder.get("/x", ["Accept": accept, "Accept-Language": "de"])
        _ = try larder.get("/x", ["Authorization": "Bearer hush"])
        #expect(try larder.waitForDocuments(2))
        let explanation = try Self.explain(larder, "/x")
        #expect((explanation["variants"] as? [Any])?.isEmpty == true)
        let others = try #require(explanation["others"] as? [[String: Any]])
        let differences = others.compactMap { $0["differences"] as? [String] }.sorted { $0.count > $1.count }
        #expect(differences.count == 2)
        #expect(differences.first == ["accept: \(accept) instead of none", "accept-language: de instead of none"])
        #expect(differences.last?.first?.hasPrefix("another credential (p-") == true)
        #expect(others.allSatisfy { $0["status"] as? Int == 200 && $0["time_to_live"] as? Int ?? 0 > 3_000 })
        let asked = try Self.explain(larder, "/x", ["Accept: \(accept)", "Accept-Language: de"])
        #expect((asked["variants"] as? [Any])?.count == 1)
        #expect((asked["others"] as? [Any])?.count == 1)
        let text = try larder.command("explain", "/x").output
        #expect(text.contains("accept: \(accept) instead of none"), "\(text)")
        #expect(text.contains("name its fields with -H"), "\(text)")
        #expect(!text.contains("hush"))
    }

    @Test(
        arguments: [
            ("/no-store", [:], "no-store", "upstream", "Cache-Control: no-store, max-age=9"),
            ("/vary", [:], "vary-any", "upstream", "Vary: *"),
            ("/bare", [:], "no-explicit-freshness", "standard", "no lifetime"),
            ("/accepted", [:], "momentary-status", "standard", "status"),
            ("/never", [:], "never-by-route", "config", "cache: never"),
            ("/x", ["Cache-Control": "no-store"], "request-no-store", "request", "the request said"),
            ("/large", [:], "too-large", "config", "limits.document"),
            ("/chunked", [:], "too-large", "config", "limits.document"),
            ("/cut", [:], "truncated", "upstream", "broke off"), ("/events", [:], "event-stream", "upstream", "events"),
            ("/targeted", [:], "no-store", "upstream", "Larder-Cache-Control: no-store"),
        ] as [(String, FieldLines, String, String, String)]
    )
    func `explain says why a response was not stored, and who decided it`(
        path: String,
        fields: FieldLines,
        rule: String,
        decider: String,
        reason: String
    ) throws {
        let large = "[\(String(repeating: "1,", count: 40_000))1]"
        let origin = try Origin { request in
            switch request.path {
            case "/no-store": .json("{}", ["Cache-Control": "no-store, max-age=9"])
            case "/targeted": .json("{}", ["Larder-Cache-Control": "no-store", "Cache-Control": "max-age=60"])
            case "/vary": .json("{}", Fresh.hour + ["Vary": "*"])
            case "/bare": .json("{}", status: 403)
            case "/accepted": .json("{}", Fresh.hour, status: 202)
            case "/large": .json(large, Fresh.hour)
            case "/chunked": .chunked([Array(large.utf8)], Fresh.hour)
            case "/cut": .raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\n{\"id\":")
            case "/events": .text("data: 1\n\n", ["Content-Type": "text/event-stream"])
            default: .json("{}", Fresh.hour)
            }
        }
        let larder = try Larder(
            config: Configs.plain(
                origin,
                top: ["routes:", "  - { path: never, cache: never }", "limits: { document: 64KiB }"]
            )
        )
        #expect(try Self.explain(larder, path)["unstored"] == nil)
        _ = try? larder.get(path, fields + ["Accept-Language": "de"])
        let told = eventually { (try? Self.explain(larder, path)["unstored"]) != nil }
        #expect(told)
        let unstored = try #require(try Self.explain(larder, path)["unstored"] as? [String: Any])
        #expect(unstored["rule"] as? String == rule)
        #expect(unstored["decided_by"] as? String == decider)
        #expect((unstored["reason"] as? String)?.contains(reason) == true, "\(unstored)")
        #expect(unstored["differences"] as? [String] == ["accept-language: de instead of none"])
        let text = try larder.command("explain", path).output
        #expect(text.contains(rule) && text.contains("decided by: \(decider)"), "\(text)")
        // One that is stored since is shown in its place.
        origin.always(.json("{}", Fresh.hour))
        guard rule != "never-by-route" else { return }
        _ = try larder.get(path)
        #expect(try Self.explain(larder, path)["unstored"] == nil)
    }

    @Test func `explain shows each number of a response's freshness with its source`() throws {
        let modified = CacheTests.date(in: -100_000)
        let origin = try Origin { request in
            switch request.path {
            case "/age": .json("{}", ["Cache-Control": "max-age=600", "Age": "90", "Date": CacheTests.date(in: -30)])
            case "/heuristic": .json("{}", ["Last-Modified": modified, "Date": CacheTests.now])
            case "/expires": .json("{}", ["Expires": CacheTests.date(in: 500), "Date": CacheTests.now])
            case "/targeted": .json("{}", ["Cache-Control": "no-store", "Larder-Cache-Control": "max-age=70"])
            default: .json("{}", ["Cache-Control": "max-age=5, stale-while-revalidate=7, must-revalidate"])
            }
        }
        let larder = try Larder(
            config: Configs.plain(origin, top: ["routes:", "  - { path: routed, fresh: 5m, stale: 1h }"])
        )
        for path in ["/age", "/heuristic", "/expires", "/targeted", "/routed"] { _ = try larder.get(path) }

        let age = try Self.explain(larder, "/age")
        #expect(term("lifetime", of: age)?.0 == 600)
        #expect(term("lifetime", of: age)?.1 == "Cache-Control: max-age")
        #expect((30..<90).contains(term("apparent age", of: age)?.0 ?? 0))
        #expect(term("corrected age", of: age)?.1.hasPrefix("Age: 90, plus ") == true)
        #expect((90..<150).contains(term("initial age", of: age)?.0 ?? 0))
        #expect(term("time to live", of: age)?.0 == 600 - (term("age", of: age)?.0 ?? 0))
        #expect(member("freshness.is_fresh", of: age) as? Bool == true)

        let heuristic = try Self.explain(larder, "/heuristic")
        #expect((9_990...10_010).contains(term("lifetime", of: heuristic)?.0 ?? 0))
        #expect(term("lifetime", of: heuristic)?.1.hasPrefix("10 % of the ") == true)
        #expect(term("lifetime", of: try Self.explain(larder, "/expires"))?.1 == "Expires minus Date")
        #expect(term("lifetime", of: try Self.explain(larder, "/targeted"))?.1 == "Larder-Cache-Control (RFC 9213)")

        let routed = try Self.explain(larder, "/routed")
        #expect(term("lifetime", of: routed)?.0 == 300)
        #expect(term("lifetime", of: routed)?.1 == "the route's fresh: 5m")
        #expect(term("upstream lifetime", of: routed)?.0 == 5)
        #expect(term("stale while revalidate", of: routed)?.1 == "the route's stale")
        #expect(member("freshness.rules", of: routed) as? [String] == ["must-revalidate, overruled by the route"])
        #expect(member("overrides.fresh", of: routed) as? String == "5m")
        #expect(member("request.route.path", of: routed) as? String == "routed")
        #expect((member("online.cache_status", of: routed) as? String)?.hasSuffix("detail=fresh-by-route") == true)
    }

    /// Whatever `/explain` foretells is what the next request gets.
    @Test(
        arguments: [
            ("/fresh", [:], "serve"), ("/fresh", ["Cache-Control": "no-cache"], "fetch"),
            ("/fresh", ["Cache-Control": "max-age=0"], "fetch"), ("/fresh", ["If-None-Match": "\"a\""], "serve"),
            ("/fresh", ["X-A": "2"], "fetch"), ("/stale", [:], "fetch"),
            ("/stale", ["Cache-Control": "max-stale=3600"], "serve"), ("/while", [:], "serve-and-refresh"),
            ("/unknown", [:], "fetch"), ("/unknown", ["Cache-Control": "only-if-cached"], "refuse"),
            ("/never", [:], "fetch"), ("/fresh", ["If-Match": "\"a\""], "pass"),
        ] as [(String, [String: String], String)]
    )
    func `explain foretells what the next request gets`(_ path: String, _ fields: [String: String], _ action: String)
        throws
    {
        let origin = try Origin { request in
            let tag: FieldLines = ["ETag": "\"a\"", "Vary": "X-A"]
            return switch request.path {
            case "/fresh": .json("{}", tag + Fresh.hour)
            case "/stale": .json("{}", tag + ["Cache-Control": "max-age=60", "Age": "100"])
            case "/while": .json("{}", ["Cache-Control": "max-age=60, stale-while-revalidate=600", "Age": "100"])
            default: .json("{}", Fresh.hour)
            }
        }
        let rules = ["routes:", "  - { path: never, cache: never }"]
        let larder = try Larder(config: Configs.plain(origin, top: rules))
        for path in ["/fresh", "/stale", "/while", "/never"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(3))
        let asked = origin.count()
        let lines = fields.map { "\($0): \($1)" }
        let foretold = try Self.explain(larder, path, lines)
        #expect(member("online.action", of: foretold) as? String == action)
        #expect(origin.count() == asked)

        let answer = try larder.get(path, FieldLines(fields.map { .init(name: $0, value: $1) }))
        let status = try #require(member("online.cache_status", of: foretold) as? String).filter { $0 != " " }
        let words = status.split(separator: ";").filter { !$0.hasPrefix("ttl") }
        #expect(words.allSatisfy { answer.cacheStatus.split(separator: ";").contains($0) }, "\(answer.cacheStatus)")
        if let code = member("online.status", of: foretold) as? Int { #expect(answer.status == code) }
        if action == "fetch" || action == "pass" {
            #expect(origin.count() == asked + 1)
            let conditions = member("upstream.conditions", of: foretold) as? [String] ?? []
            let sent = origin.requests.last?["If-None-Match"].map { ["If-None-Match: \($0)"] } ?? []
            #expect(conditions.filter { $0.hasPrefix("If-None-Match") } == sent)
        } else if action != "serve-and-refresh" {
            #expect(origin.count() == asked)
        }
    }

    @Test func `explain shows every variant, and whether it is in memory, also after a restart`() throws {
        let origin = try Origin { request in
            .json("{\"id\":1,\"v\":\"\(request["X-A"] ?? "")\"}", Fresh.hour + ["Vary": "X-A"])
        }
        let larder = try Larder(config: Configs.blog(origin))
        for value in ["1", "2"] { _ = try larder.get("/users/1", ["X-A": value]) }
        #expect(try larder.waitForDocuments(2))
        func variants(_ fields: [String]) throws -> [[String: Any]] {
            try Self.explain(larder, "/users/1", fields)["variants"] as? [[String: Any]] ?? []
        }
        let both = try variants(["X-A: 2"])
        #expect(both.count == 2)
        #expect(both.map { $0["is_selected"] as? Bool } == [true, false])
        #expect(both[0]["selection"] as? [String] == ["x-a=2"])
        #expect(both.allSatisfy { $0["in_memory"] as? Bool == true && $0["objects"] as? Int == 1 })
        #expect(try variants([]).allSatisfy { $0["is_selected"] as? Bool == false })
        try larder.restart()
        #expect(try variants(["X-A: 1"]).allSatisfy { $0["in_memory"] as? Bool == false })
        // Looking took nothing into memory.
        #expect(try variants(["X-A: 1"]).allSatisfy { $0["in_memory"] as? Bool == false })
        _ = try larder.get("/users/1", ["X-A": "1"])
        #expect(try variants(["X-A: 1"]).map { $0["in_memory"] as? Bool } == [true, false])
    }

    @Test func `explain shows whether a response is composed or dirty`() throws {
        let origin = try Origin([
            "/users": .json(#"[{"id":1,"name":"old"}]"#, Fresh.hour),
            "/users/1": .json(#"{"id":1,"name":"new"}"#, Fresh.hour),
        ])
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(2))
        func variant() throws -> [String: Any] {
            (try Self.explain(larder, "/users")["variants"] as? [[String: Any]])?.first ?? [:]
        }
        #expect(try eventually { try variant()["form"] as? String == "composed" })
        #expect(try variant()["is_dirty"] as? Bool == true)
        _ = try larder.get("/users")
        #expect(try variant()["is_dirty"] as? Bool == false)
    }

    @Test func `explain and why give the same reason why a document cannot show the newest values`() throws {
        let origin = try Origin([
            "/posts": .json(#"[{"id":7,"author":{"id":1,"login":"ada"}}]"#, Fresh.hour),
            "/posts/7": .json(#"{"id":7,"author":3}"#, Fresh.hour),
        ])
        let larder = try Larder(config: Configs.blog(origin))
        for path in ["/posts", "/posts/7"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(2))
        let begin = "newer values are known, but cannot be put in: "
        func reason() throws -> String? {
            member("online.reason", of: try Self.explain(larder, "/posts")) as? String
        }
        #expect(try eventually { try reason()?.hasPrefix(begin) == true })
        let told = try #require(try reason()?.dropFirst(begin.count))
        #expect(try larder.command("why", "Post", "7").output.contains(told), "\(told)")
    }

    @Test func `explain shows a principal by its label, and only its own responses`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Authorization": "Bearer ada"])
        let ada = try Self.explain(larder, "/x", ["Authorization: Bearer ada"])
        #expect((member("request.principal.label", of: ada) as? String)?.hasPrefix("p-") == true)
        #expect(member("online.action", of: ada) as? String == "serve")
        for fields in [[], ["Authorization: Bearer bela"]] {
            let other = try Self.explain(larder, "/x", fields)
            #expect((other["variants"] as? [Any])?.isEmpty == true)
        }
    }

    @Test func `explain shows what happens to writes and other methods`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin)
        let write = try Self.explain(larder, "/things/1", more: "&method=DELETE")
        #expect(member("online.action", of: write) as? String == "write")
        #expect((member("online.reason", of: write) as? String)?.contains("/things/1, /things") == true)
        #expect(
            member("online.action", of: try Self.explain(larder, "/x", more: "&method=OPTIONS")) as? String == "pass"
        )
        #expect(origin.count() == 0)
    }

    @Test func `explain shows what a live request gets`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin)
        let live = ["Larder-Live: once", "Accept: text/event-stream"]
        let before = try Self.explain(larder, "/x", live)
        #expect(member("online.action", of: before) as? String == "events")
        #expect(member("online.reason", of: before) as? String == "what the upstream says")
        _ = try larder.get("/x")
        let after = try Self.explain(larder, "/x", live)
        #expect((member("online.reason", of: after) as? String)?.hasPrefix("`cached`") == true)
        #expect((after["variants"] as? [Any])?.count == 1)
        #expect(origin.count() == 1)
    }

    // MARK: Bad questions

    @Test func `a request that explain cannot examine gets a problem document with a reason`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin)
        let long = String(repeating: "x", count: 9_000)
        for (query, status) in [
            ("", 400), ("?url=", 400), ("?url=nonsense", 400), ("?url=https%3A%2F%2Felsewhere.example%2Fx", 400),
            ("?url=%2Fx%0D%0AX-Evil%3A%201", 400), ("?url=%2Fx%00", 400), ("?url=%2Fx%ff", 400), ("?url=%2Fx%", 400),
            ("?url=%2F..%2Fx", 422), ("?url=%2Fx%25zz", 422), ("?url=%2Fx&header=nonsense", 400),
            ("?url=%2Fx&header=X%3A%20a%0D%0AY%3A%20b", 400), ("?url=%2Fx&header=%3A%20a", 400),
            ("?url=%2Fx&header=Host%3A%20evil.example", 422), ("?url=%2Fx&header=Origin%3A%20https%3A%2F%2Fevil", 422),
            ("?url=%2Fx&header=Content-Length%3A%20-1", 422), ("?url=%2Fx&header=Content-Length%3A%205", 400),
            ("?url=%2Fx&header=Larder-View%3A%20odd", 422),
            ("?url=%2Fx&header=Via%3A%20" + String(repeating: "1.1+larder,", count: 30), 422),
            ("?url=%2Fx&method=G%20ET", 400), ("?url=%2Fx&method=CONNECT", 422), ("?url=%2Fx&url=%2Fy", 400),
            ("?url=%2Fx&colour=red", 400), ("?url=%2Fx&upstream=nobody", 400), ("?url=%2F\(long)", 414),
        ] {
            let answer = try larder.admin("GET", "/explain\(query)")
            #expect(answer.status == status, "\(query.prefix(80)): \(answer.text.prefix(200))")
            #expect(answer.isProblem && (answer.object["detail"] as? String)?.isEmpty == false, "\(query.prefix(80))")
        }
        let many = (0..<200).map { "&header=X-\($0)%3A%201" }.joined()
        #expect(try larder.admin("GET", "/explain?url=%2Fx\(many)").status == 422)
        #expect(try larder.admin("GET", "/explain?url=%2Fx", ["Authorization": "Bearer wrong"]).status == 401)
        #expect(try larder.admin("POST", "/explain?url=%2Fx").status == 405)
        #expect(origin.count() == 0)
        #expect(larder.isRunning)
    }

    // MARK: The command

    @Test func `larder explain prints text for people, and the daemon's JSON for programs`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.tagged("a")) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let (end, text, errors) = try larder.command("explain", "/x", "-H", "Cache-Control: no-cache")
        #expect(end == .exited(0), "\(errors)")
        for line in [
            "GET \(origin.url)/x\n", "\n  key        /x\n", "\n  principal  anonymous\n", "\nOne response is stored:\n",
            "Cache-Control: max-age", "\nNow, auto:\n", "* online   fetch: the request says no-cache\n",
        ] {
            #expect(text.contains(line), "\(line)in\n\(text)")
        }
        let json = try larder.command("explain", "\(larder.url)/x", "--json")
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
        #expect(member("online.action", of: object) as? String == "serve")
        #expect(try larder.command("explain", "nonsense").end == .exited(1))
        #expect(try larder.command("explain").end == .exited(64))
        larder.terminate()
        #expect(try larder.command("explain", "/x").end == .exited(1))
    }
}
