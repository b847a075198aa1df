import Mapping
import Store
import Testing

@testable import Admin
@testable import HTTPSemantics

/// What the admin side shows of the store's contents, and what it cleans from them.
@Suite struct AdminContentsTests: AdminServiceFixtures {
    let daemon: AdminFixture

    init() throws { daemon = try AdminFixture() }

    // MARK: Contents

    @Test func `count shows objects, documents, bytes and models`() async throws {
        try await daemon.fill()
        let count = try json(await ask("GET", "/count"))
        #expect(count["objects"] as? Int == 3)
        #expect(count["documents"] as? Int == 3)
        #expect((count["bytes"] as? Int ?? 0) > 0)
        #expect(count["models"] as? [String: Int] == ["User": 2, "Issue": 1])
        #expect(Set(count.keys) == ["objects", "documents", "bytes", "models"])
    }

    @Test func `an object is shown byte for byte as it is stored`() async throws {
        try await daemon.fill()
        let response = try await ask("GET", "/objects/User/583231")
        let text = String(decoding: response.body, as: UTF8.self)
        #expect(text.contains(#""object":{"id": 583231, "login": "octocat", "score": 1.0}"#))
        let row = try #require((try json(response)["objects"] as? [[String: Any]])?.first)
        #expect(row["upstream"] as? String == "github")
        #expect(row["principal"] as? String == "anonymous")
        #expect(row["model"] as? String == "User")
        #expect(row["id"] as? String == "583231")
    }

    @Test func `an object is found by a key as well`() async throws {
        try await daemon.fill()
        let rows = try json(await ask("GET", "/objects/User/octocat"))["objects"] as? [[String: Any]]
        #expect(rows?.map { $0["id"] as? String } == ["583231"])
    }

    @Test func `objects come page by page`() async throws {
        for id in 1...5 {
            try await daemon.receive(
                #"{"id": \#(id), "login": "u"}"#,
                at: "/users/\(id)",
                as: .init(model: "User", isList: false)
            )
        }
        var seen: [String] = []
        var target = "/objects/User?limit=2"
        for _ in 0..<3 {
            let page = try json(await ask("GET", target))
            seen += (page["objects"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }
            guard let next = page["next"] as? String else { break }
            target = "/objects/User?limit=2&after=\(next)"
        }
        #expect(seen.sorted() == ["1", "2", "3", "4", "5"])
    }

    @Test(arguments: ["limit=0", "limit=1001", "limit=many", "after=x"])
    func `an invalid limit or position of a page is refused`(query: String) async throws {
        #expect(try await ask("GET", "/objects/User?\(query)").status == 400)
        #expect(try await ask("GET", "/documents?\(query)").status == 400)
    }

    @Test func `objects can be listed by upstream and principal`() async throws {
        try await daemon.fill()
        try await daemon.receive(
            #"{"id": 2, "login": "forger"}"#,
            at: "/users/forger",
            of: "forge",
            as: .init(model: "User", isList: false)
        )
        #expect(try await rows("/objects/User/2") == 2)
        #expect(try await rows("/objects/User/2?upstream=forge") == 1)
        #expect(try await rows("/objects/User?principal=anonymous") == 3)
    }

    @Test(arguments: [
        ("/objects/User?principal=p-00000000", 400, "no principal has the label p-00000000: the store knows anonymous"),
        ("/objects/User/2/why?principal=me", 400, "\"me\" is not a principal's label"),
        (
            "/objects/User/2/documents?upstream=gihub", 400,
            "no upstream is named \"gihub\": the config has forge, github; did you mean github?"
        ),
        ("/objects/User?upstream=x", 400, "no upstream is named \"x\": the config has forge, github"),
        ("/objects/User/2?upstream=x", 400, "no upstream is named \"x\""),
        ("/documents?upstream=x", 400, "no upstream is named \"x\""),
        ("/documents?principal=x", 400, "\"x\" is not a principal's label"),
        (
            "/objects/Usr/2/documents", 404,
            "no model is named \"Usr\": the config declares Issue, User; did you mean User?"
        ),
        ("/objects/User/99/why", 404, "there is no User with the identity or key 99"),
        ("/objects/User/2/why?upstream=", 400, "upstream is empty: give it a value, or leave it out"),
        ("/objects/User//why", 404, "there is nothing at this path"),
        ("/objects//2", 404, "there is nothing at this path"),
    ])
    func `an error names the unknown value and the known ones`(target: String, status: Int, part: String) async throws {
        try await daemon.fill()
        let response = try await ask("GET", target)
        #expect(response.status == status)
        let detail = try json(response)["detail"] as? String ?? ""
        #expect(detail.hasPrefix(part), "\(detail)")
    }

    @Test(arguments: [
        (#"{"upstream": "nope"}"#, "no upstream is named"), (#"{"model": "Usr"}"#, "did you mean User?"),
        (#"{"principal": "me"}"#, "is not a principal's label"),
    ])
    func `a clean of an unknown model or upstream is refused with a reason`(body: String, part: String) async throws {
        try await daemon.fill()
        let response = try await ask("POST", "/clean", body: body)
        #expect(response.status == 400)
        #expect((try json(response)["detail"] as? String ?? "").contains(part))
    }

    @Test func `an unknown object or model is 404`() async throws {
        try await daemon.fill()
        #expect(try await ask("GET", "/objects/User/999").status == 404)
        let response = try await ask("GET", "/objects/Nobody")
        #expect(response.status == 404)
        #expect(
            try json(response)["detail"] as? String == "no model is named \"Nobody\": the config declares Issue, User"
        )
    }

    @Test func `documents are listed by what their URL begins with`() async throws {
        try await daemon.fill()
        for query in ["url=/users/*", "url=/github/users/*", "search=/github/users/", "search=/users/", "search=SERS/"]
        {
            let answer = try json(await ask("GET", "/documents?\(query)"))
            let documents = try #require(answer["documents"] as? [[String: Any]])
            let urls = documents.compactMap { $0["url"] as? String }.sorted()
            #expect(urls == ["/github/users/hubot", "/github/users/octocat"])
            #expect(documents.allSatisfy { $0["status"] as? Int == 200 && $0["objects"] as? Int == 1 })
        }
    }

    @Test func `warnings are listed`() async throws {
        try await daemon.receive("{", at: "/users/octocat", as: BodyRule(model: "User", isList: false))
        let warnings = try #require(try json(await ask("GET", "/warnings"))["warnings"] as? [[String: Any]])
        #expect(warnings.map { $0["message"] as? String } == ["The body is not JSON."])
    }

    @Test func `warnings are counted in the metrics`() async throws {
        try await daemon.receive(#"["octocat"]"#, at: "/users", as: .init(model: "User", isList: false))
        let warnings = try #require(try json(await ask("GET", "/warnings"))["warnings"] as? [[String: Any]])
        let count = warnings.reduce(0) { $0 + ($1["count"] as? Int ?? 0) }
        #expect(count > 0)
        let metrics = String(decoding: try await ask("GET", "/metrics").body, as: UTF8.self)
        #expect(metrics.contains("\nlarder_warnings_total \(count)\n"))
    }

    // MARK: Clean

    @Test func `a clean removes what it names, and counts what it removed`() async throws {
        try await daemon.fill()
        let answer = try json(await ask("POST", "/clean", body: #"{"model": "Issue"}"#))
        #expect(answer["objects"] as? Int == 1)
        #expect(answer["documents"] as? Int == 1)
        #expect(answer["models"] as? [String: Int] == ["Issue": 1])
        #expect(answer["disk"] as? String == "freed")
        #expect(try json(await ask("GET", "/count"))["models"] as? [String: Int] == ["User": 2])
    }

    @Test func `an object is cleaned by its key, and no other`() async throws {
        try await daemon.fill()
        let none = try json(await ask("POST", "/clean", body: #"{"model": "User", "id": "nobody"}"#))
        #expect(none["objects"] as? Int == 0)
        let answer = try json(await ask("POST", "/clean", body: #"{"model": "User", "id": "hubot"}"#))
        #expect(answer["objects"] as? Int == 1)
        #expect(answer["documents"] as? Int == 1)
        #expect(try await ask("GET", "/objects/User/hubot").status == 404)
        #expect(try await ask("GET", "/objects/User/octocat").status == 200)
    }

    @Test func `a dry run removes nothing`() async throws {
        try await daemon.fill()
        let answer = try json(await ask("POST", "/clean?all=true&dry_run=true"))
        #expect(answer["documents"] as? Int == 3)
        #expect(answer["dry_run"] as? Bool == true)
        #expect(try json(await ask("GET", "/count"))["documents"] as? Int == 3)
    }

    @Test func `a clean with all empties the store`() async throws {
        try await daemon.fill()
        #expect(try await ask("POST", "/clean", body: #"{"all": true}"#).status == 200)
        let count = try json(await ask("GET", "/count"))
        #expect(count["objects"] as? Int == 0)
        #expect(count["documents"] as? Int == 0)
    }

    @Test func `a route is cleaned under every upstream that has it`() async throws {
        try await daemon.fill()
        try await daemon.receive(
            #"{"id": 2, "login": "forger"}"#,
            at: "/users/forger",
            of: "forge",
            as: .init(model: "User", isList: false)
        )
        let some = try json(await ask("POST", "/clean?dry_run&upstream=forge&route=users/%7Blogin%7D"))
        #expect(some["documents"] as? Int == 1)
        let all = try json(await ask("POST", "/clean", body: #"{"route": "users/{login}"}"#))
        #expect(all["documents"] as? Int == 3)
        #expect(try json(await ask("GET", "/count"))["documents"] as? Int == 1)
    }

    @Test(arguments: ["", "{}", #"{"route": "nowhere/*"}"#, #"{"modle": "User"}"#, #"{"dry_run": false}"#])
    func `a clean that is empty or invalid is refused, and removes nothing`(body: String) async throws {
        try await daemon.fill()
        let response = try await ask("POST", "/clean", body: body)
        #expect(response.status == 400)
        #expect(response.fields.text("content-type") == ProblemDocument.mediaType)
        #expect(try json(await ask("GET", "/count"))["documents"] as? Int == 3)
    }
}
