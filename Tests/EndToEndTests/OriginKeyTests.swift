import Foundation
import TestSupport
import Testing

/// What is stored belongs to the origin that it came from, whatever name the upstream has.
@Suite(.scripts) struct OriginKeyTests {
    private static func people(_ name: String) throws -> Origin {
        try Origin { request in
            let user = #"{"id":1,"login":"ada","name":"\#(name)"}"#
            return .json(request.path == "/users" ? "[\(user)]" : user, Fresh.hour)
        }
    }

    @Test func `another upstream's responses are not served from the same store`() throws {
        let (a, b) = (try Self.people("of a"), try Self.people("of b"))
        let folder = TemporaryFolder()
        func get(_ url: String) throws -> (text: String, isHit: Bool) {
            let larder = try Larder(upstream: url, store: folder)
            defer { larder.terminate() }
            let response = try larder.get("/users/1")
            #expect(try larder.waitForQuiet())
            return (response.text, response.isHit)
        }
        #expect(try get(a.url).text.contains("of a"))
        #expect(try get(b.url).text.contains("of b"))
        // Another base path of the first is another API, too.
        #expect(try !get(a.url + "/users").isHit)
        let again = try get(a.url)
        #expect(again.isHit && again.text.contains("of a"))
        #expect(try get(b.url + "/").isHit)
    }

    @Test func `objects, views and lists of two origins stay separate under one upstream name`() throws {
        let (a, b) = (try Self.people("of a"), try Self.people("of b"))
        let larder = try Larder(config: Configs.blog(a))
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        _ = try larder.folder.write(Configs.blog(b), to: "larder.yaml")
        try larder.restart()
        #expect(try larder.sql("SELECT name FROM User").isEmpty)
        #expect(try larder.get("/users/1").text.contains("of b"))
        #expect(try larder.waitForObjects(2, of: "User"))
        #expect(try larder.get("/users").text.contains("of b"))
        #expect(try larder.sql("SELECT DISTINCT upstream, name FROM User") == ["blog|of b"])
        // What is of today's origin goes by the name, the rest by name and URL.
        let rows = try #require(try larder.admin("GET", "/documents").object["documents"] as? [[String: Any]])
        #expect(Set(rows.compactMap { $0["upstream"] as? String }) == ["blog", "blog \(a.url)"])
        _ = try larder.request("PATCH", "/users/1", body: "{}")
        #expect(try larder.command("clean", "--upstream", "blog").end == .exited(0))
        #expect(try larder.waitForObjects(1, of: "User"))
        _ = try larder.folder.write(Configs.blog(a), to: "larder.yaml")
        try larder.restart()
        let response = try larder.get("/users")
        #expect(response.isHit && response.text.contains("of a"))
        #expect(try larder.sql("SELECT upstream, name FROM User") == ["blog|of a"])
    }
}
