import Foundation
import TestSupport
import Testing

/// What is newer than what, and what becomes of an upstream that disagrees with itself.
@Suite(.scripts) struct OrderOfKnowledgeTests {
    private static func warnings(_ larder: Larder, _ kind: String) throws -> [[String: Any]] {
        let rows = try larder.admin("GET", "/warnings").object["warnings"] as? [[String: Any]] ?? []
        return rows.filter { $0["code"] as? String == kind || $0["kind"] as? String == kind }
    }

    @Test func `an answer out of a cache is as old as its Age says, whatever its Date`() throws {
        let origin = try Origin { request in
            if request.path == "/users/1" {
                // Its clock is wrong, and orders nothing.
                return .json(#"{"id":1,"name":"new"}"#, Fresh.hour + ["Date": "Mon, 01 Jan 2001 00:00:00 GMT"])
            }
            return .json(#"[{"id":1,"name":"old"}]"#, ["Cache-Control": "max-age=600", "Age": "60"])
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["lag: 0s"]))
        _ = try larder.get("/users/1")
        #expect(try larder.get("/users").text == #"[{"id":1,"name":"old"}]"#)
        #expect(try larder.get("/users").text == #"[{"id":1,"name":"new"}]"#)
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":"new"}"#)
        #expect(origin.count("/users") == 1)
    }

    @Test func `an object that disagrees with itself within one answer keeps both, and is listed`() throws {
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
        #expect(
            command.output.contains(
                "User 1 has two values of name in one response, at /items/0/name and at /items/2/name"
            )
        )
    }

    @Test func `where nothing disagrees nothing is listed`() throws {
        let body = #"{"items":[{"id":1,"name":"Ada","rank":1},{"id":1,"rank":2},{"id":1,"name":"\u0041da"}]}"#
        let origin = try Origin { _ in .json(body, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/search/users")
        #expect(try larder.get("/search/users").text == body)
        #expect(try Self.warnings(larder, "disagreement").isEmpty)
    }

    @Test func `the line that a warning of a flip-flop asks for can be pasted as it is, and ends it`() throws {
        let origin = try Origin { request in
            .json(#"{"id":1,"login":"ada","name":"\#(request.path == "/users/1" ? "Ada" : "ADA")"}"#, Fresh.hour)
        }
        let config = Configs.blog(origin, upstream: ["lag: 0s"])
            .replacing("routes:", with: "routes:\n  - { path: \"people/{id:#}\", model: User }")
        let larder = try Larder(config: config)
        func toggle(_ larder: Larder) throws {
            for path in ["/users/1", "/people/1"] {
                _ = try larder.get(path, ["Cache-Control": "no-cache"])
                #expect(try larder.waitForQuiet())
            }
        }
        #expect(
            try eventually(within: .seconds(60)) {
                try toggle(larder)
                return try !Self.warnings(larder, "flip-flop").isEmpty
            }
        )
        let message = try #require(try Self.warnings(larder, "flip-flop").first?["message"] as? String)
        let line = try #require(message.firstMatch(of: /"(local: \[[^\]]*\])" under the model User/)?.1)
        larder.terminate()
        let mended = config.replacing("local: [score]", with: String(line))
        #expect(mended != config)
        let again = try Larder(config: mended, store: larder.folder)
        #expect(try Self.warnings(again, "flip-flop").isEmpty)
        for _ in 0..<10 { try toggle(again) }
        #expect(try Self.warnings(again, "flip-flop").isEmpty)
        #expect(try again.get("/users/1").text.contains("Ada"))
        #expect(try again.get("/people/1").text.contains("ADA"))
    }

    @Test func `routes that disagree for ever end up each with their own, and the config says how to keep it so`()
        throws
    {
        let origin = try Origin { request in
            request.path == "/users/1"
                ? .json(#"{"id":1,"login":"ada","name":"Ada","company":"c"}"#, Fresh.hour)
                : .json(#"{"id":1,"login":"ada","name":"ADA","company":"c"}"#, Fresh.hour)
        }
        func config(_ local: String) -> String {
            Configs.blog(origin).replacing("routes:", with: "routes:\n  - { path: \"people/{id:#}\", model: User }")
                .replacing("local: [score]", with: local)
        }
        let larder = try Larder(config: config("local: [score]"))
        let (user, person) = (
            #"{"id":1,"login":"ada","name":"Ada","company":"c"}"#, #"{"id":1,"login":"ada","name":"ADA","company":"c"}"#
        )
        func fetch(_ path: String) throws {
            _ = try larder.get(path, ["Cache-Control": "no-cache"])
        }
        try fetch("/users/1")
        try fetch("/people/1")
        // Each answer takes the other along, as long as it may be that the object has changed.
        #expect(try larder.get("/users/1").text == person)
        for round in 0..<20 {
            guard try Self.warnings(larder, "flip-flop").isEmpty else { break }
            try fetch(round % 2 == 0 ? "/users/1" : "/people/1")
            _ = try eventually {
                let texts = [try larder.get("/users/1").text, try larder.get("/people/1").text]
                return texts[0] == texts[1] || texts == [user, person]
            }
        }
        let row = try #require(try Self.warnings(larder, "flip-flop").first)
        let text = row.map { "\($0.value)" }.joined(separator: " ")
        #expect(text.contains(#""local: [score, name]" under the model User"#), "\(text)")
        #expect(try larder.command("warnings").output.contains(#"local: [score, name]"#))

        // From now on neither flips the other.
        let asked = origin.count("/people/1")
        for _ in 0..<3 {
            try fetch("/users/1")
            #expect(try larder.get("/people/1").text == person)
            let hit = try larder.get("/people/1")
            #expect(hit.text == person)
            #expect(hit.isHit)
            #expect(!hit.cacheStatus.contains("composed"))
        }
        #expect(origin.count("/people/1") == asked)
        try fetch("/people/1")
        #expect(try larder.get("/users/1").text == user)

        // It is remembered, and the line that it asks for is one that the config takes.
        try larder.restart()
        #expect(try larder.get("/users/1").text == user)
        #expect(try larder.get("/people/1").text == person)
        try fetch("/people/1")
        #expect(try larder.get("/users/1").text == user)
        let declared = try Larder(config: config("local: [score, name]"))
        _ = try declared.get("/users/1")
        _ = try declared.get("/people/1")
        #expect(try declared.waitForDocuments(2))
        #expect(try declared.get("/users/1").text == user)
    }
}
