import Foundation
import TestSupport
import Testing

/// Upstreams that make composing expensive: no crash, no stall of others, memory within bounds.
@Suite(.scripts) struct CoherenceBadInputTests {
    /// Answers from a table that grows.
    private func larder(_ bodies: Monitor<[String: String]>) throws -> (Origin, Larder) {
        let origin = try Origin { request in
            bodies.current[request.target].map { .json($0, Fresh.hour) } ?? .json("{}", status: 404)
        }
        return (origin, try Larder(origin, config: ComposedBytesTests.config(origin)))
    }

    @Test func `objects that refer to themselves twice are not expanded without end`() throws {
        let nested =
            (0..<80).map { _ in #"{"id":1,"friends":["# }.joined() + #"{"id":1}"# + String(repeating: "]}", count: 80)
        let bodies = Monitor(["/one/nested": nested, "/one/1": #"{"id":1,"friends":[1,1]}"#, "/one/2": #"{"id":2}"#])
        let (origin, larder) = try larder(bodies)
        _ = try larder.get("/one/nested")
        #expect(try larder.waitForDocuments(1))
        _ = try larder.get("/one/1")
        #expect(try larder.waitForDocuments(2))
        let before = larder.residentMemory
        let asking = Background { try larder.get("/one/nested") }
        // Others go on meanwhile.
        for _ in 0..<20 { #expect(try larder.get("/one/2").status == 200) }
        #expect(try asking.value().text == nested)
        #expect(origin.count("/one/nested") == 2)
        #expect(larder.residentMemory - before < 100 << 20)
        #expect(larder.isRunning)
    }

    @Test func `a document with very many references shows changes, and hits go on meanwhile`() throws {
        let count = 10_000
        func list(_ name: String) -> String {
            "[" + (0..<count).map { #"{"id":\#($0),"name":"\#($0 == 0 ? name : "n")"}"# }.joined(separator: ",") + "]"
        }
        let bare = (1...100_000).map(String.init)
        let bodies = Monitor([
            "/many/all": list("old"), "/one/0": #"{"id":0,"name":"new"}"#,
            "/one/bare": #"{"id":"b","friends":[\#(bare.joined(separator: ","))]}"#,
            "/one/b": #"{"id":"b","friends":[\#(bare.dropFirst().joined(separator: ","))]}"#,
        ])
        let (_, larder) = try larder(bodies)
        for path in ["/many/all", "/one/bare"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(2))
        for path in ["/one/0", "/one/b"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(4))
        let composing = Background { try larder.get("/many/all") }
        for _ in 0..<20 { #expect(try larder.get("/one/0").isHit) }
        #expect(try composing.value().text == list("new"))
        #expect(
            try larder.get("/one/bare").text == #"{"id":"b","friends":[\#(bare.dropFirst().joined(separator: ","))]}"#
        )
    }

    @Test func `documents with objects of ten megabytes show changes`() throws {
        let large = String(repeating: "y", count: 10_000_000)
        let bodies = Monitor([
            "/one/1": #"{"id":1,"name":"\#(large)","age":1}"#, "/one/1?again": #"{"id":1,"age":2}"#,
            "/one/2": #"{"id":2}"#,
        ])
        let (_, larder) = try larder(bodies)
        #expect(try larder.get("/one/1").text == bodies.current["/one/1"])
        #expect(try larder.waitForDocuments(1))
        _ = try larder.get("/one/1?again")
        #expect(try larder.waitForDocuments(2))
        let expected = Array(#"{"id":1,"name":"\#(large)","age":2}"#.utf8)
        #expect(try larder.get("/one/1").body == expected)
        #expect(try larder.get("/one/2").status == 200)
    }

    @Test func `an upstream whose values differ in each response does not fill memory or store`() throws {
        let answers = Monitor(0)
        let origin = try Origin { request in
            let number = answers.next()
            let objects = (0..<5).map { #"{"id":\#($0),"name":"n\#(number)","query_ms":\#(number)}"# }
            let body = request.path.hasPrefix("/many") ? "[\(objects.joined(separator: ","))]" : objects[0]
            return .json(body, Fresh.never)
        }
        let larder = try Larder(origin, config: ComposedBytesTests.config(origin))
        let client = try larder.client()
        for round in 0..<150 {
            for path in ["/many/\(round % 3)", "/one/0"] { #expect(try client.get(path).status == 200) }
        }
        #expect(try larder.waitForDocuments(4))
        try larder.restart()
        let versions = try #require(Int(larder.sql("SELECT count(*) FROM _versions").first ?? ""))
        let observations = try #require(Int(larder.sql("SELECT count(*) FROM _observations").first ?? ""))
        #expect(versions <= 16 + 5 * 16)
        #expect(observations <= 4 + 5 * 16)
        #expect(try larder.sql("SELECT count(*) FROM _objects") == ["5"])
    }

    @Test func `objects with one id and different models are different objects`() throws {
        let origin = try Origin([
            "/users/1": .json(#"{"id":1,"name":"user"}"#, Fresh.hour),
            "/posts/1": .json(#"{"id":1,"title":"post"}"#, Fresh.hour),
            "/notes/1": .json(#"{"id":"1","text":"note","title":"not the post's"}"#, Fresh.hour),
            "/users": .json(
                #"[{"id":"1","name":"list"},{"id":null,"name":"x"},{"id":{"a":1},"name":"y"}]"#,
                Fresh.hour
            ),
        ])
        let larder = try Larder(origin, config: Configs.blog(origin))
        for path in ["/users", "/users/1", "/posts/1", "/notes/1"] { #expect(try larder.get(path).status == 200) }
        #expect(try larder.waitForDocuments(4))
        #expect(try larder.get("/posts/1").text == #"{"id":1,"title":"post"}"#)
        #expect(
            try larder.get("/users").text
                == #"[{"id":"1","name":"user"},{"id":null,"name":"x"},{"id":{"a":1},"name":"y"}]"#
        )
        let models = try #require(try larder.count()["models"] as? [String: Int])
        #expect(models == ["User": 1, "Post": 1, "Note": 1])
    }
}
