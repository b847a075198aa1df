import Foundation
import TestSupport
import Testing

/// What is newer than what, and what becomes of an upstream that disagrees with itself.
@Suite(.scripts) struct OrderOfKnowledgeTests {
    private static func warnings(_ larder: Larder, _ kind: String) throws -> [[String: Any]] {
        let rows = try larder.admin("GET", "/warnings").object["warnings"] as? [[String: Any]] ?? []
        return rows.filter { $0["code"] as? String == kind || $0["kind"] as? String == kind }
    }

    @Test func `a response from another cache is as old as its Age says, whatever its Date`() throws {
        let origin = try Origin { request in
            if request.path == "/users/1" {
                // Its clock is wrong, and orders nothing.
                return .json(#"{"id":1,"name":"new"}"#, Fresh.hour + ["Date": "Mon, 01 Jan 2001 00:00:00 GMT"])
            }
            return .json(#"[{"id":1,"name":"old"}]"#, ["Cache-Control": "max-age=600", "Age": "60"])
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["lag: 0s"]))
        _ = try larder.get("/users/1")
        // Which is newer nobody knows, and asking for the list does not tell.
        for _ in 0..<2 { #expect(try larder.get("/users").text == #"[{"id":1,"name":"old"}]"#) }
        // For a second it is not asked again.
        #expect(
            try eventually {
                let list = try larder.get("/users")
                return list.text == #"[{"id":1,"name":"new"}]"# && list.isHit
                    && list.cacheStatus.contains("detail=doubt")
            }
        )
        // Asking for the object does.
        for _ in 0..<2 { #expect(try larder.get("/users/1").text == #"{"id":1,"name":"new"}"#) }
        #expect(try !larder.get("/users").cacheStatus.contains("doubt"))
    }

    @Test func `after a crash, a list that is the first to show a member is stored like any other`() throws {
        let origin = try Origin { request in
            request.path == "/users"
                ? .json(#"[{"id":1,"login":"ada","name":"Ada"}]"#, Fresh.hour)
                : .json(#"[{"id":7,"author":{"id":1,"login":"ada"}}]"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["lag: 1h"]))
        _ = try larder.get("/posts")
        #expect(try larder.waitForQuiet())
        larder.kill()
        try larder.start()
        _ = try larder.get("/users")
        let list = try larder.get("/users")
        #expect(list.isHit, "\(list.cacheStatus)")
    }

    @Test func `an object that disagrees with itself in a response stays as received, with a warning`() throws {
        let body =
            #"{ "items": [ {"id":1,"login":"ada","name":"Ada"}, {"id":2,"login":"bela"}, {"id":1,"login":"ada","name":"A. L."} ] }"#
        let origin = try Origin { request in
            request.path == "/search/users"
                ? .json(body, Fresh.hour) : .json(#"[{"id":1,"login":"old","name":"known"}]"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.get("/search/users").text == body)
        let again = try larder.get("/search/users")
        #expect(again.text == body)
        #expect(again.isHit)
        // What it agrees on is known, what it does not is as it was.
        #expect(try larder.get("/users").text == #"[{"id":1,"login":"ada","name":"known"}]"#)

        let rows = try Self.warnings(larder, "disagreement")
        #expect(rows.count == 1)
        let row = try #require(rows.first)
        let text = row.map { "\($0.value)" }.joined(separator: " ")
        for part in ["User 1", "User.name", "/items/0/name", "/items/2/name", "/search/users"] {
            #expect(text.contains(part), "\(text)")
        }
        let command = try larder.command("warnings")
        #expect(command.output.contains("disagreement"))
        // What ends it, as on the dashboard.
        let remedy = try #require(row["remedy"] as? [String: String])
        #expect(command.output.contains(try #require(remedy["sentence"])), "\(command.output)")
        let lines = try #require(remedy["lines"]).split(separator: "\n")
        #expect(command.output.contains(lines.map { "\n    \($0)" }.joined() + "\n"), "\(command.output)")
        #expect(
            command.output.contains(
                "User 1 has two values of name in one response, at /items/0/name and at /items/2/name"
            )
        )
    }

    @Test func `without a disagreement there is no warning`() throws {
        let body = #"{"items":[{"id":1,"name":"Ada","rank":1},{"id":1,"rank":2},{"id":1,"name":"\u0041da"}]}"#
        let origin = try Origin { _ in .json(body, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/search/users")
        #expect(try larder.get("/search/users").text == body)
        #expect(try Self.warnings(larder, "disagreement").isEmpty)
    }

    @Test
    func `a list that truncates a detail's value gives a warning, and its suggested config line ends it`()
        throws
    {
        let (whole, short) = (
            #"{"id":1,"login":"ada","name":"Ada Lovelace"}"#, #"[{"id":1,"login":"ada","name":"Ada…"}]"#
        )
        let origin = try Origin { request in .json(request.path == "/users" ? short : whole, Fresh.hour) }
        let config = Configs.blog(origin, upstream: ["lag: 30s"])
        let larder = try Larder(config: config)
        for _ in 0..<4 {
            #expect(try Self.warnings(larder, "flip-flop").isEmpty)
            // Each detail settles the doubt into which a list puts the name, and the next list brings it back.
            for path in ["/users/1", "/users"] { _ = try larder.get(path, ["Cache-Control": "no-cache"]) }
        }
        #expect(try larder.waitForQuiet())
        let row = try #require(try Self.warnings(larder, "flip-flop").first)
        let message = try #require(row["message"] as? String)
        let line = try #require(message.firstMatch(of: /"(local: \[[^\]]*\])" under the model User/)?.1)
        #expect(line == "local: [score, name]")
        #expect(try larder.command("warnings").output.contains(line))
        larder.terminate()

        let mended = config.replacing("local: [score]", with: line)
        #expect(mended != config)
        let again = try Larder(config: mended, store: larder.folder)
        for _ in 0..<6 {
            for path in ["/users/1", "/users"] { _ = try again.get(path, ["Cache-Control": "no-cache"]) }
        }
        #expect(try again.waitForQuiet())
        let left = try Self.warnings(again, "flip-flop")
        #expect(left.isEmpty, "\(left)")
        for (path, text) in [("/users/1", whole), ("/users", short)] {
            let hit = try again.get(path)
            #expect(hit.text == text)
            #expect(hit.isHit)
        }
    }

    @Test func `an upstream that always disagrees with itself is asked once for each doubt`()
        throws
    {
        let origin = try Origin { request in
            .json(request.path == "/users" ? #"[{"id":1,"name":"Ada…"}]"# : #"{"id":1,"name":"Ada"}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["lag: 1h"]))
        _ = try larder.get("/users/1")
        for _ in 0..<2 { #expect(try larder.get("/users").text.contains("Ada…")) }
        for _ in 0..<10 {
            let hit = try larder.get("/users")
            #expect(hit.isHit && hit.cacheStatus.contains("detail=doubt"), "\(hit.cacheStatus)")
            #expect(hit.text == #"[{"id":1,"name":"Ada"}]"#)
        }
        #expect(origin.count("/users") == 2)
    }
}
