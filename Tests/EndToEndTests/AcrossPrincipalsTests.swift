import Foundation
import TestSupport
import Testing

/// A response that one token has fetched costs the next one a 304, and each token sees only what is its own.
@Suite(.scripts) struct AcrossPrincipalsTests {
    private static func daemon(_ github: GitHubOrigin, _ upstream: String...) throws -> Larder {
        // On a busy machine no stale response takes the place of what is counted.
        let keys = (["url: \"\(github.origin.url)\"", "patience: forever"] + upstream).joined(separator: ", ")
        return try Larder(
            github.origin,
            config: """
                include: \(Repository.root)/config/github.yaml
                upstreams: { github: { \(keys) } }
                store: { withhold: 20s }
                """
        )
    }

    private static func get(_ larder: Larder, _ path: String, _ token: String, _ fields: FieldLines = [:]) throws
        -> Response
    {
        try larder.get(path, ["Authorization": "Bearer \(token)", "Accept": "application/vnd.github+json"] + fields)
    }

    private static func token(_ name: Any) -> String { "ghs_\(name)_0123456789abcdef" }

    /// A daemon that has the page for one token, and has found out that the origin distinguishes a wrong tag from a right one.
    private static func proved(_ github: GitHubOrigin, _ path: String, _ upstream: String...) throws -> Larder {
        let larder = try daemon(github)
        for name in ["first", "second"] {
            _ = try get(larder, path, token(name))
            #expect(try larder.waitForQuiet())
        }
        github.origin.forget()
        return larder
    }

    private static func withoutSpace(_ text: String) -> String { text.filter { $0 != " " && $0 != "\n" } }

    /// What a request that went upstream asked for.
    private static func condition(_ request: Origin.Request?) -> String? { request?["If-None-Match"] }

    @Test func `a new token gets a stored response for the cost of a 304, and then has its own document`() throws {
        let github = try GitHubOrigin(["/repos/o/r1": .repository(1)])
        let larder = try Self.daemon(github)
        let first = try Self.get(larder, "/repos/o/r1", Self.token("a"))
        // The next token's request has a tag that is wrong on purpose, and costs what it would cost without Larder.
        let second = try Self.get(larder, "/repos/o/r1", Self.token("b"))
        #expect(github.fulls == 2 && github.notModified == 0)
        let wrong = Self.condition(github.requests.last)
        let third = try Self.get(larder, "/repos/o/r1", Self.token("c"))
        #expect(github.fulls == 2 && github.notModified == 1)
        #expect(github.cost(Self.token("c")) == 0)
        #expect(third.status == 200 && third.body == first.body && second.body == first.body)
        #expect(third["Content-Type"] == first["Content-Type"])
        #expect(third.cacheStatus.contains("fwd=uri-miss;fwd-status=304"), "\(third.cacheStatus)")
        // Its fields are its own.
        #expect(third["X-OAuth-Scopes"] == GitHubOrigin.scopes(of: Self.token("c")))
        #expect(third["X-RateLimit-Remaining"] == "5000")
        let asked = try #require(github.requests.last)
        #expect(Self.condition(asked) != nil && Self.condition(asked) != wrong)
        #expect(asked["If-Modified-Since"] == nil)
        // From here on it is a document like any other.
        let hit = try Self.get(larder, "/repos/o/r1", Self.token("c"))
        #expect(hit.isHit && hit.body == first.body && hit["X-OAuth-Scopes"] == third["X-OAuth-Scopes"])
        #expect(try larder.waitForDocuments(3))
        #expect(try larder.waitForObjects(3, of: "Repository"))
    }

    @Test func `rotating tokens cost as many whole responses as a permanent token, and one more as a test`() throws {
        let paths = (1...4).map { "/repos/o/r\($0)" }
        /// The whole responses of a day in which pages change now and then.
        func cost(_ token: (_ hour: Int, _ job: Int) -> String) throws -> (fulls: Int, all: Int) {
            let github = try GitHubOrigin(lifetime: 0)
            for (index, path) in paths.enumerated() { github.set(path, .repository(index + 1)) }
            let larder = try Self.daemon(github)
            for hour in 0..<6 {
                github.set(paths[hour % 4], .repository(hour % 4 + 1, state: hour + 1))
                for job in 0..<5 {
                    for path in paths {
                        let response = try Self.get(larder, path, token(hour, job))
                        #expect(response.text == github.truth(path, for: ""))
                    }
                }
            }
            return (github.fulls, github.fulls + github.notModified)
        }
        let everlasting = try cost { _, _ in Self.token("one") }
        let rotating = try cost { hour, job in Self.token("\(hour)-\(job)") }
        #expect(everlasting.all == rotating.all)
        #expect(rotating.fulls == everlasting.fulls + 1, "\(rotating) instead of \(everlasting)")
        // A token that lives longer than a response profits by the others' news, too.
        let shared = try cost { _, job in Self.token("\(job)") }
        #expect(shared.fulls == everlasting.fulls + 1, "\(shared) instead of \(everlasting)")
    }

    @Test(arguments: [1, 2, 3])
    func `no token ever gets what the origin would not have given it`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let tokens = (0..<8).map { Self.token($0) }
        let github = try GitHubOrigin(lifetime: 0)
        let paths = (1...5).map { "/repos/o/r\($0)" }
        func change(_ index: Int, _ state: Int) {
            let readers = Set(tokens.filter { _ in random.once(in: 2) })
            github.set(paths[index], .repository(index + 1, state: state, readers: index == 0 ? nil : readers))
        }
        for index in paths.indices { change(index, 0) }
        let larder = try Self.daemon(github)
        for step in 1...250 {
            if random.once(in: 6) { change(random.below(5), step) }
            let (token, path, agent) = (random.pick(tokens), random.pick(paths), random.pick(["curl/8", "gh"]))
            let response = try Self.get(larder, path, token, ["User-Agent": agent])
            let truth = github.truth(path, for: token)
            #expect(response.status == (truth == nil ? 404 : 200), "step \(step): \(token) \(path)")
            let expected = truth ?? #"{"message":"Not Found"}"#
            #expect(Self.withoutSpace(response.text) == Self.withoutSpace(expected), "step \(step): \(token) \(path)")
            if truth != nil { #expect(response["X-OAuth-Scopes"] == GitHubOrigin.scopes(of: token)) }
        }
        #expect(github.notModified > 30)
    }

    @Test func `an upstream that answers 304 to everything is recognised, and no longer asked with others' tags`()
        throws
    {
        let github = try GitHubOrigin(["/repos/o/r1": .repository(1), "/repos/o/r2": .repository(2)])
        let larder = try Self.daemon(github)
        for path in ["/repos/o/r1", "/repos/o/r2"] { _ = try Self.get(larder, path, Self.token("a")) }
        github.behave(.unchanged)
        for path in ["/repos/o/r1", "/repos/o/r2"] {
            let response = try Self.get(larder, path, Self.token("b"))
            #expect(!response.text.contains("state 0"), "\(response)")
        }
        #expect(Self.condition(github.requests.last { $0.path == "/repos/o/r1" }) == nil)
        #expect(github.origin.count("/repos/o/r2") == 2)
        #expect(larder.log.components(separatedBy: "no longer validated across principals").count == 2)
        github.behave(.honest)
        #expect(try Self.get(larder, "/repos/o/r2", Self.token("c")).text == github.truth("/repos/o/r2", for: ""))
        #expect(Self.condition(github.requests.last) == nil)
    }

    @Test func `tags that no longer follow the recipe end validation across principals, with one warning`() throws {
        let path = "/repos/o/r1"
        let github = try GitHubOrigin([path: .repository(1)])
        let larder = try Self.proved(github, path)
        github.behave(.otherTags)
        for index in 0..<3 { _ = try Self.get(larder, path, Self.token("new\(index)")) }
        #expect(eventually { larder.log.contains("no longer follow the recipe") })
        #expect(github.requests.allSatisfy { Self.condition($0) != nil })
        github.behave(.honest)
        #expect(try Self.get(larder, path, Self.token("last")).text == github.truth(path, for: ""))
        #expect(Self.condition(github.requests.last) == nil)
        #expect(larder.log.components(separatedBy: "no longer validated across principals").count == 2)
    }

    @Test func `a 304 without the entity tag of the request is ignored, and the whole response is fetched`() throws {
        let path = "/repos/o/r1"
        let github = try GitHubOrigin([path: .repository(1)])
        let larder = try Self.proved(github, path)
        github.behave(.untagged)
        let response = try Self.get(larder, path, Self.token("new"))
        #expect(response.text == github.truth(path, for: "") && response.cacheStatus.contains("stored"))
        #expect(github.requests.map { Self.condition($0) != nil } == [true, false])
    }

    @Test func `a response that a clean removes during its validation is fetched whole`() throws {
        let path = "/repos/o/r1"
        let github = try GitHubOrigin([path: .repository(1)])
        let larder = try Self.proved(github, path)
        let (arrived, gate) = (Gate(), Gate())
        let body = try #require(github.truth(path, for: ""))
        github.origin.behave { request in
            guard let asked = request["If-None-Match"] else { return .json(body, Fresh.hour) }
            arrived.open()
            return .notModified(["ETag": asked, "Vary": "Accept", "Cache-Control": "max-age=60"]).after(gate)
        }
        let response = Background { try Self.get(larder, path, Self.token("new")) }
        arrived.wait()
        #expect(try larder.admin("POST", "/clean", body: #"{"all":true}"#).status == 200)
        gate.open()
        #expect(try response.value().text == body)
        #expect(github.requests.count == 2)
    }

    @Test func `a body that repeats a credential is not validated for the principals that it concerns`() throws {
        let (first, second, third) = (Self.token("a"), Self.token("b"), Self.token("c"))
        let github = try GitHubOrigin([
            "/repos/o/r1": .repository(1),
            "/repos/o/r2": .init(body: #"{"id":2,"name":"\#(first)","full_name":"o/r2"}"#),
            "/repos/o/r3": .init(body: #"{"id":3,"name":"\#(third)","full_name":"o/r3"}"#),
        ])
        let larder = try Self.proved(github, "/repos/o/r1")
        for path in ["/repos/o/r2", "/repos/o/r3"] { _ = try Self.get(larder, path, first) }
        // The response to the first token repeats it, and was never on disk.
        _ = try Self.get(larder, "/repos/o/r2", second)
        #expect(Self.condition(github.requests.last) == nil)
        // The third token is in a response to the first one.
        _ = try Self.get(larder, "/repos/o/r3", third)
        #expect(Self.condition(github.requests.last) == nil)
        _ = try Self.get(larder, "/repos/o/r3", second)
        #expect(Self.condition(github.requests.last) != nil)
        #expect(github.notModified == 1)
    }

    @Test func `tokens with colons, cookies and other media types have tags of their own`() throws {
        let path = "/repos/o/r1"
        let github = try GitHubOrigin([path: .repository(1)])
        let larder = try Self.proved(github, path)
        let fulls = github.fulls
        let accept = "application/vnd.github+json"
        let requests: [FieldLines] = [
            ["Authorization": "Bearer a:b:c:0123456789", "Accept": accept],
            ["Authorization": "Bearer a:b", "Cookie": "c=:0123456789abcdef:", "Accept": accept],
            ["Authorization": "token :", "Accept": accept], ["Accept": accept],
        ]
        for fields in requests {
            let response = try larder.get(path, fields)
            #expect(response.text == github.truth(path, for: ""))
        }
        #expect(github.fulls == fulls && github.notModified == requests.count)
        // Another representation is another's.
        _ = try larder.get(path, ["Authorization": "Bearer d", "Accept": "application/vnd.github.raw+json"])
        #expect(Self.condition(github.requests.last) == nil)
    }

    @Test func `a principal never gets the Link field of another one's response`() throws {
        let path = "/repos/o/r1"
        var page = GitHubOrigin.Page.repository(1)
        page.ownFields = ["Link": #"<https://api.github.com/next?page=2>; rel="next""#]
        let github = try GitHubOrigin([path: page])
        let larder = try Self.proved(github, path)
        let response = try Self.get(larder, path, Self.token("new"))
        // The 304 had none: the whole was fetched.
        #expect(response["Link"]?.contains("next?page=2") == true)
        #expect(github.requests.map { Self.condition($0) != nil } == [true, false])
        page.fields = ["Link": #"<https://api.github.com/next?page=3>; rel="next""#]
        page.ownFields = [:]
        github.set(path, page)
        let other = try Self.get(larder, path, Self.token("other"))
        #expect(other["Link"]?.contains("next?page=3") == true)
        #expect(other.cacheStatus.contains("fwd-status=304"))
    }

    @Test func `indented JSON is served after a 304 to the tag of minified JSON, with a weak tag`() throws {
        let path = "/repos/o/r1"
        let github = try GitHubOrigin([path: .repository(1)])
        let larder = try Self.daemon(github)
        let first = try Self.get(larder, path, Self.token("a"), ["User-Agent": "curl/8.0"])
        #expect(first.text.contains("\n  \"name\""))
        _ = try Self.get(larder, path, Self.token("b"), ["User-Agent": "curl/8.0"])
        let third = try Self.get(larder, path, Self.token("c"), ["User-Agent": "gh"])
        #expect(third.body == first.body && third["ETag"]?.hasPrefix("W/") == true)
        #expect(github.notModified == 1)
    }

    @Test func `a response is validated for another token as it was received, without later values of its objects`()
        throws
    {
        let list = #"[{"id":1,"name":"r1","full_name":"o/r1","description":"old"}]"#
        let github = try GitHubOrigin(["/user/repos": .init(body: list), "/repos/o/r9": .repository(9)])
        let larder = try Self.proved(github, "/repos/o/r9")
        _ = try Self.get(larder, "/user/repos", Self.token("a"))
        github.set("/repos/o/r1", .init(body: #"{"id":1,"name":"r1","full_name":"o/r1","description":"new"}"#))
        _ = try Self.get(larder, "/repos/o/r1", Self.token("a"))
        let other = try Self.get(larder, "/user/repos", Self.token("b"))
        #expect(other.text == list && github.notModified == 1)
        // Nothing that the first token knows better is in it.
        #expect(try Self.get(larder, "/user/repos", Self.token("b")).text == list)
    }

    @Test func `a response stored before a restart can be validated for another token`() throws {
        let path = "/repos/o/r1"
        let github = try GitHubOrigin([path: .repository(1)])
        let larder = try Self.daemon(github)
        _ = try Self.get(larder, path, Self.token("a"))
        #expect(try larder.waitForDocuments(1))
        try larder.restart()
        _ = try Self.get(larder, path, Self.token("b"))
        _ = try Self.get(larder, path, Self.token("c"))
        #expect(github.fulls == 2 && github.notModified == 1)
    }

    @Test func `with validate_across: off no token's response is validated for another token`() throws {
        let path = "/repos/o/r1"
        let github = try GitHubOrigin([path: .repository(1)])
        let larder = try Self.daemon(github, "validate_across: off")
        for name in ["a", "b", "c"] { _ = try Self.get(larder, path, Self.token(name)) }
        #expect(github.fulls == 3)
        #expect(github.requests.allSatisfy { Self.condition($0) == nil })
    }

    @Test func `many tokens share one URL`() throws {
        let path = "/repos/o/r1"
        let github = try GitHubOrigin([path: .repository(1)])
        let larder = try Self.proved(github, path)
        for index in 0..<300 {
            #expect(try Self.get(larder, path, Self.token(index)).text == github.truth(path, for: ""))
        }
        #expect(github.fulls == 2 && github.notModified == 300)
        // Each has a document and objects of its own, and their bytes are stored once.
        #expect(try larder.waitForDocuments(302))
        #expect(try larder.sql("SELECT count(*) FROM _objects") == ["\(2 * 302)"])
        #expect(try larder.sql("SELECT count(*) FROM _versions") == ["2"])
        #expect(try larder.sql("SELECT documents FROM _shared_bodies") == ["302"])
    }

    @Test func `a body without objects, too, is stored once for all tokens that fetch it`() throws {
        let path = "/emojis"
        let body = "{" + (0..<500).map { #""e\#($0)":"https://example.com/\#($0).png""# }.joined(separator: ",") + "}"
        let github = try GitHubOrigin([path: .init(body: body)])
        let larder = try Self.proved(github, path)
        for index in 0..<20 { #expect(try Self.get(larder, path, Self.token(index)).text == body) }
        #expect(try larder.waitForDocuments(22))
        #expect(try larder.sql("SELECT count(*), count(compressed) FROM _shared_bodies") == ["1|1"])
        #expect(try larder.sql("SELECT count(coalesce(body, compressed)) FROM _bodies") == ["0"])
        // Each token's copy can be cleaned alone.
        let label = try #require(try larder.sql("SELECT label FROM _principals ORDER BY id DESC LIMIT 1").first)
        #expect(try larder.admin("POST", "/clean", body: #"{"principal":"\#(label)"}"#).status == 200)
        try larder.restart()
        #expect(try larder.sql("SELECT documents FROM _shared_bodies") == ["21"])
        #expect(try Self.get(larder, path, Self.token(3)).text == body)
    }
}
