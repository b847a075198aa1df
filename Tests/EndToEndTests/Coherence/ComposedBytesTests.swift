import Foundation
import TestSupport
import Testing

/// Laws 5 to 7 over sockets: the bytes that a client is given before and after something newer was learned.
@Suite(.scripts) struct ComposedBytesTests {
    /// A document, what is asked for after it, and its bytes then; nil where the upstream has to be asked for them.
    struct Scenario: Sendable, CustomTestStringConvertible {
        let what: String
        let before: String
        let later: [String]
        let after: String?

        init(_ what: String, _ before: String, _ later: String..., becomes after: String?) {
            self.what = what
            self.before = before
            self.later = later
            self.after = after
        }

        var testDescription: String { what }
    }

    static let scenarios = [
        Scenario(
            "a reference that changes",
            "{ \"id\":1,\r\n\t\"boss\" : {\"name\":\"b\", \"id\":2} }\n",
            #"{"id":3,"name":"c"}"#,
            #"{"id":1,"boss":3}"#,
            becomes: "{ \"id\":1,\r\n\t\"boss\" : {\"name\":\"c\", \"id\":3} }\n"
        ),
        Scenario(
            "a reference to what is not known",
            #"{"id":1,"boss":{"id":2,"name":"b"}}"#,
            #"{"id":1,"boss":3}"#,
            becomes: nil
        ),
        Scenario(
            "a list that grows and shrinks",
            "[\n  {\n    \"id\":9,\n    \"friends\":[\n      {\n        \"id\":1,\n        \"name\":\"a\"\n      }\n    ]\n  }\n]",
            #"[{"id":2,"name":"b"},{"id":3,"name":"c"}]"#,
            #"{"id":9,"friends":[3,2]}"#,
            becomes:
                "[\n  {\n    \"id\":9,\n    \"friends\":[\n      {\n        \"id\":3,\n        \"name\":\"c\"\n      },\n      {\n        \"id\":2,\n        \"name\":\"b\"\n      }\n    ]\n  }\n]"
        ),
        Scenario("a list that was empty", #"{"id":9,"friends":[]}"#, #"{"id":9,"friends":[1]}"#, becomes: nil),
        Scenario(
            "a list whose elements differ",
            #"{"id":9,"friends":[{"id":1,"name":"a"},{"id":2}]}"#,
            #"[{"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"c"}]"#,
            #"{"id":9,"friends":[1,2,3]}"#,
            becomes: nil
        ),
        Scenario(
            "null, values and objects",
            #"{"id":1,"boss":{"id":2},"name":null,"age":{"y":1}}"#,
            #"{"id":1,"boss":null,"name":{},"age":[]}"#,
            becomes: #"{"id":1,"boss":null,"name":{},"age":[]}"#
        ),
        Scenario(
            "an object in the place of null",
            #"{"id":1,"boss":null}"#,
            #"{"id":1,"boss":{"id":2}}"#,
            becomes: nil
        ),
        Scenario(
            "escapes and duplicate names",
            #"{"\u0069d":1,"n\u0061me":"a","age":1,"age":2,"x":"\/\u00e9"}"#,
            #"{"id":1,"name":"\u0062é","age":3}"#,
            becomes: #"{"\u0069d":1,"n\u0061me":"\u0062é","age":1,"age":2,"x":"\/\u00e9"}"#
        ),
        Scenario(
            "one object several times, in several shapes",
            #"[{"id":1,"boss":{"id":9,"name":"x"}},{"age":1e400,"name":"x","id":"9"}]"#,
            #"{"id":9,"name":"y"}"#,
            becomes: #"[{"id":1,"boss":{"id":9,"name":"y"}},{"age":1e400,"name":"y","id":"9"}]"#
        ),
        Scenario(
            "an object inside itself, and a cycle",
            #"{"id":1,"name":"a","boss":{"id":1,"name":"a","boss":{"id":2,"name":"b","boss":{"id":1,"name":"a"}}}}"#,
            #"{"id":1,"name":"c"}"#,
            becomes:
                #"{"id":1,"name":"c","boss":{"id":1,"name":"c","boss":{"id":2,"name":"b","boss":{"id":1,"name":"c"}}}}"#
        ),
        Scenario(
            "embedded objects",
            #"{"id":1,"home":{"street":"s","zip":1}}"#,
            #"{"id":1,"home":{"street":"t","zip":2}}"#,
            becomes: #"{"id":1,"home":{"street":"t","zip":1}}"#
        ),
        Scenario(
            "objects keyed by name",
            #"{"id":1,"team":{"a":{"id":2,"name":"b"}}}"#,
            #"{"id":3,"name":"c"}"#,
            #"{"id":1,"team":{"a":2,"z":3}}"#,
            becomes: #"{"id":1,"team":{"a":{"id":2,"name":"b"},"z":{"id":3,"name":"c"}}}"#
        ),
        Scenario(
            "key paths",
            #"{"id":1,"profile":{"nick":"n","x":1}}"#,
            #"{"id":1,"profile":{"nick":"m","x":2}}"#,
            becomes: #"{"id":1,"profile":{"nick":"m","x":1}}"#
        ),
    ]

    static func config(_ origin: Origin, top: [String] = []) -> String {
        """
        upstreams: { people: { url: "\(origin.url)" } }
        models:
          Person:
            identity: id
            properties:
              name: name
              age: age
              nick: profile.nick
              boss: { from: boss, model: Person }
              friends: { from: friends, models: Person }
              home: { from: home, model: Address }
              team: { from: team, keyed: Person }
          Address: { identity: [], properties: { street: street } }
        routes:
          - { path: "one/**", model: Person }
          - { path: "many/**", model: [Person] }
        \(top.joined(separator: "\n"))
        """
    }

    /// Where a body lies: a list is a list.
    static func path(_ body: String, _ number: Int) -> String {
        (body.first { !$0.isWhitespace } == "[" ? "/many/" : "/one/") + "\(number)"
    }

    @Test(arguments: scenarios) func `a document shows the newest values in its own form, or is fetched again`(
        _ each: Scenario
    )
        throws
    {
        let bodies = [each.before] + each.later
        let table = Dictionary(
            uniqueKeysWithValues: bodies.enumerated().map {
                (Self.path($1, $0), OriginResponse.json($1, Fresh.tagged("v\($0)")))
            }
        )
        let origin = try Origin(table)
        let larder = try Larder(origin, config: Self.config(origin))
        let paths = bodies.enumerated().map { Self.path($1, $0) }
        for (path, body) in zip(paths, bodies) {
            #expect(try larder.get(path).text == body)
            // One after the other: a list lags behind what came before it, not behind nothing.
            #expect(try larder.waitForDocuments(paths.firstIndex(of: path)! + 1))
        }
        let document = paths[0]
        guard let after = each.after else {
            let asked = try larder.get(document)
            #expect(!asked.isHit)
            #expect(origin.count(document) == 2)
            #expect(origin.requests.last?["If-None-Match"] == nil)
            return
        }
        for _ in 0..<2 {
            let composed = try larder.get(document)
            #expect(composed.text == after)
            #expect(composed.isHit)
            #expect(composed.cacheStatus.contains("detail=composed"))
            #expect(composed["ETag"]?.hasPrefix("\"larder-") == true)
        }
        #expect(try larder.get(document, ["Larder-View": "raw"]).text == each.before)
        #expect(origin.count(document) == 1)
        // From disk, the same bytes under the same tag.
        let tag = try larder.get(document)["ETag"]
        try larder.restart()
        let again = try larder.get(document)
        #expect(again.text == after)
        #expect(again["ETag"] == tag)
    }

    @Test func `objects nested to the limit are composed, whatever thread does it`() throws {
        func nested(_ name: String) -> String {
            (0..<511).map { #"{"id":\#($0),"boss":"# }.joined() + #"{"id":"last","name":"\#(name)"}"#
                + String(repeating: "}", count: 511)
        }
        let origin = try Origin([
            "/one/deep": .json(nested("old"), Fresh.hour),
            "/one/last": .json(#"{"id":"last","name":"new"}"#, Fresh.hour),
        ])
        let larder = try Larder(origin, config: Self.config(origin))
        for path in ["/one/deep", "/one/last"] { #expect(try larder.get(path).status == 200) }
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.get("/one/deep").text == nested("new"))
        // The writer's thread looks as well: what comes late and is older.
        #expect(try larder.get("/one/deep", ["Cache-Control": "no-cache"]).text == nested("old"))
        #expect(try larder.get("/one/last", ["Cache-Control": "no-cache"]).status == 200)
        #expect(try eventually { try larder.get("/one/deep").text == nested("new") })
        #expect(larder.isRunning)
    }
}
