import Foundation
import TestSupport
import Testing

/// What a property declares of its value holds in the mapped view, streams, SQL, `/objects` and `larder map`, there and
/// back.
@Suite(.scripts) struct MemberSurfacesTests {
    private static let mapped: FieldLines = ["Larder-View": "mapped"]

    private static func daemon(_ mapping: String, _ bodies: [String: String]) throws -> Larder {
        let origin = try Origin { request in .json(bodies[request.target] ?? "{}", Fresh.hour) }
        return try Larder(
            origin,
            config: """
                upstreams: { api: { url: "\(origin.url)", lag: 0s } }
                \(mapping)
                """
        )
    }

    /// What `larder map` prints of a body.
    private static func map(_ larder: Larder, _ url: String, _ body: String, _ options: String...) throws -> (
        output: String, errors: String
    ) {
        let file = try larder.folder.write(body, to: "in.json")
        let arguments = ["map", file, "--url", url, "--config", larder.folder.file("larder.yaml")] + options
        let process = try TestProcess(Larder.binary, arguments, environment: Larder.environment)
        process.waitForEnd()
        return (process.output.trimmingCharacters(in: .newlines), process.errors)
    }

    @Test func `of several forms of a date the first that fits is read, and what fits none stays as it came`() throws {
        let body = #"[{"id":1,"at":"2012-11-13T13:31:36Z"},{"id":2,"at":1352813496},{"id":3,"at":"soon"}]"#
        let larder = try Self.daemon(
            """
            models: { Event: { identity: id, properties: { at: { from: at, as: [date, { date: unix }] } } } }
            routes: [ { path: events, model: [Event] } ]
            """,
            ["/events": body]
        )
        let shown = body.replacing("1352813496", with: #""2012-11-13T13:31:36Z""#)
        let view = try larder.get("/events", Self.mapped)
        #expect(view.text == shown)
        #expect(view["Larder-Unconverted"] == #""/2/at""#)
        let follower = try Follower(larder, "/events", Self.mapped)
        #expect(follower.wait(for: 1))
        #expect(follower.text == shown)
        #expect(try larder.waitForObjects(3, of: "Event"))
        #expect(
            try larder.admin("GET", "/objects/Event/2?view=mapped").text.contains(#""at":"2012-11-13T13:31:36Z""#)
        )
        let odd = try larder.admin("GET", "/objects/Event/3?view=mapped").text
        #expect(odd.contains(#""unconverted":["/at"]"#) && odd.contains(#""value":"soon""#), "\(odd)")
        #expect(
            try larder.sql("SELECT id, coalesce(at, '-'), at_raw FROM Event ORDER BY 1") == [
                "1|2012-11-13T13:31:36Z|2012-11-13T13:31:36Z", "2|2012-11-13T13:31:36Z|1352813496", "3|-|soon",
            ]
        )
        let there = try Self.map(larder, "/events", body)
        #expect(there.output == shown)
        #expect(there.errors.contains(#"at /2/at Event: Property at: a date as in RFC 3339"#), "\(there.errors)")
        #expect(there.errors.hasSuffix("The value is \"soon\".\n"), "\(there.errors)")
        // The way back is that of the first conversion.
        let back = try Self.map(larder, "/events", shown, "--reverse", "--unconverted", #""/2/at""#)
        #expect(back.output == shown)
        #expect(back.errors.contains("conversion-failed at /2/at Event"), "\(back.errors)")
        #expect(try Self.map(larder, "/events", shown, "--reverse", "--unconverted", "/2").errors.contains("in quotes"))
    }

    @Test func `a list with unique: true is shown with each element once, and in SQL with all of them`() throws {
        let body = #"{"id":1,"tags":["a","b","a"],"users":[{"id":7},{"id":8},{"id":7}]}"#
        let larder = try Self.daemon(
            """
            models:
              User: { identity: id }
              Post:
                identity: id
                properties: { tags: { from: tags, unique: true }, users: { from: users, models: User, unique: true } }
            routes: [ { path: "posts/*", model: Post } ]
            """,
            ["/posts/1": body]
        )
        let shown = #"{"id":1,"tags":["a","b"],"users":[{"id":7},{"id":8}]}"#
        #expect(try larder.get("/posts/1", Self.mapped).text == shown)
        #expect(try larder.get("/posts/1").text == body)
        #expect(try Self.map(larder, "/posts/1", body).output == shown)
        #expect(try larder.waitForObjects(1, of: "Post"))
        #expect(
            try larder.admin("GET", "/objects/Post/1?view=mapped").text
                .contains(#"{"id":1,"tags":["a","b"],"users":[7,8]}"#)
        )
        #expect(try larder.sql("SELECT tags FROM Post") == [#"["a","b","a"]"#])
    }

    @Test func `a query parameter is a value and part of an identity`() throws {
        let larder = try Self.daemon(
            """
            models: { Hit: { identity: ["@query.repo", number], properties: { number: number, repo: "@query.repo" } } }
            routes: [ { path: hits, model: [Hit] } ]
            """,
            ["/hits?repo=a": #"[{"number":1}]"#, "/hits?repo=b%20c&x": #"[{"number":1}]"#]
        )
        #expect(try larder.get("/hits?repo=a", Self.mapped).text == #"[{"number":1,"repo":"a"}]"#)
        let shown = #"[{"number":1,"repo":"b c"}]"#
        #expect(try larder.get("/hits?repo=b%20c&x", Self.mapped).text == shown)
        #expect(try larder.waitForObjects(2, of: "Hit"))
        #expect(try larder.sql("SELECT identity FROM Hit ORDER BY 1") == ["a:1", "b c:1"])
        #expect(try Self.map(larder, "/hits?repo=b+c", #"[{"number":1}]"#).output == shown)
        let back = try Self.map(larder, "/hits?repo=b+c", shown, "--reverse")
        #expect(back.output == #"[{"number":1}]"# && back.errors == "")
        let other = try Self.map(larder, "/hits?repo=d", shown, "--reverse")
        #expect(other.output == #"[{"number":1}]"#)
        #expect(other.errors.contains("not-written at /0/repo Hit: The response has another value"), "\(other.errors)")
    }

    @Test func `when mapping back, a value that contradicts a field of the response is reported`() throws {
        let larder = try Self.daemon(
            """
            models: { Item: { identity: id, properties: { tag: "@header.ETag" } } }
            routes: [ { path: "items/*", model: Item } ]
            """,
            [:]
        )
        func back(_ options: String...) throws -> String {
            let file = try larder.folder.write(#"{"id":1,"tag":"a"}"#, to: "in.json")
            let config = larder.folder.file("larder.yaml")
            let arguments = ["map", file, "--config", config, "--reverse"] + options
            let process = try TestProcess(Larder.binary, arguments, environment: Larder.environment)
            process.waitForEnd()
            #expect(process.output == "{\"id\":1}\n")
            return process.errors
        }
        #expect(try back("--url", "/items/1", "-H", "etag: a") == "")
        #expect(try back("--url", "/items/1", "-H", "etag: b").contains("not-written at /tag Item"))
        #expect(try back("--url", "/items/1").contains("The response has no such value"))
        // Nothing is known of the response.
        #expect(try back("--model", "Item") == "")
    }

    @Test func `the mapped view says which value could not be converted, so that mapping back leaves it as it is`()
        throws
    {
        let larder = try Self.daemon(
            """
            models: { Note: { identity: id, properties: { text: { from: text, as: base64 } } } }
            routes: [ { path: "notes/*", model: Note } ]
            """,
            ["/notes/1": #"{"id":1,"text":"%%%"}"#]
        )
        let view = try larder.get("/notes/1", Self.mapped)
        #expect(view.text == #"{"id":1,"text":"%%%"}"#)
        let field = try #require(view["Larder-Unconverted"])
        let back = try Self.map(larder, "/notes/1", view.text, "--reverse", "--unconverted", field)
        #expect(back.output == view.text)
        #expect(back.errors.contains(#"The value is "%%%"."#), "\(back.errors)")
        // A value that somebody wrote is text.
        #expect(try Self.map(larder, "/notes/1", view.text, "--reverse").output == #"{"id":1,"text":"JSUl"}"#)
    }
}
