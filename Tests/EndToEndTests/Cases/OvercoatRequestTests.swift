import Foundation
import TestSupport
import Testing

/// Overcoat's cases that speak of requests and their responses.
@Suite(.scripts) struct OvercoatRequestTests {
    private static let item = #"{"id":1,"name":"a"}"#
    private static let mapped: FieldLines = ["Larder-View": "mapped"]

    /// Before an origin with a base path.
    private static func daemon(_ routes: [String], _ handler: @escaping Origin.Handler) throws -> Larder {
        let origin = try Origin(handler)
        return try Larder(
            origin,
            config: """
                upstreams: { api: { url: "\(origin.url)/api/v1" } }
                models:
                  Item: { identity: id, properties: { label: name } }
                  Other: { identity: id, properties: { title: name } }
                  Problem: { identity: [], properties: { text: message } }
                routes:
                \(routes.map { "  - \($0)" }.joined(separator: "\n"))
                errors:
                  - { path: "**", model: Problem }
                """
        )
    }

    @Test func `OV-09 OV-20 OV-21: routes match the path after the base path, which ends at a slash`() throws {
        let larder = try Self.daemon([#"{ path: "test", model: Item }"#]) { request in
            request.path == "/api/v1/test" ? .json(Self.item, Fresh.hour) : .json(#"{"at":"\#(request.path)"}"#)
        }
        #expect(try larder.get("/test", Self.mapped).text == #"{"id":1,"label":"a"}"#)
        // No path of a client's leads beside the base.
        #expect(try larder.get("/0/test", Self.mapped).text == #"{"at":"/api/v1/0/test"}"#)
        // The upstream's own URLs: the base ends at a slash, and what is outside of it is nobody's.
        let config = larder.folder.file("larder.yaml")
        let text = String(decoding: larder.folder.bytes("larder.yaml"), as: UTF8.self)
        let base = try #require(text.firstMatch(of: /url: "(.+)\/api\/v1"/)?.1)
        for (path, isKnown) in [("/api/v1/test", true), ("/api/v10/test", false), ("/test", false), ("/api", false)] {
            let process = try TestProcess(Larder.binary, ["route", "GET", base + path, "--config", config])
            #expect(process.waitForEnd() == .exited(isKnown ? 0 : 1))
            #expect(process.output.contains(#""test" → Item"#) == isKnown)
        }
    }

    @Test func `OV-22: a route ignores the query unless it names parameters`() throws {
        let larder = try Self.daemon([
            #"{ path: "x", model: Item }"#, #"{ path: "x", query: { kind: other }, model: Other }"#,
        ]) { _ in .json(Self.item, Fresh.hour) }
        #expect(try larder.get("/x?page=2", Self.mapped).text == #"{"id":1,"label":"a"}"#)
        #expect(try larder.get("/x?page=2&kind=other", Self.mapped).text == #"{"id":1,"title":"a"}"#)
    }

    @Test
    func `OV-29 OV-31: the status of a route can be written as a text or as a class`()
        throws
    {
        let larder = try Self.daemon([
            #"{ path: "x", status: "201", model: Other }"#, #"{ path: "x", status: "2xx", model: Item }"#,
        ]) { request in .json(Self.item, status: request["X-Status"].flatMap { Int($0) } ?? 200) }
        #expect(try larder.get("/x", Self.mapped).text == #"{"id":1,"label":"a"}"#)
        #expect(try larder.get("/x", Self.mapped + ["X-Status": "203"]).text == #"{"id":1,"label":"a"}"#)
        #expect(try larder.get("/x", Self.mapped + ["X-Status": "201"]).text == #"{"id":1,"title":"a"}"#)
    }

    @Test func `OV-31: one rule can require method, status, query and content type, and others match the rest`()
        throws
    {
        let larder = try Self.daemon([
            #"{ path: "x", method: GET, status: 200, query: { full: "1" }, content_type: application/json, model: Item }"#,
            #"{ path: "x", method: POST, status: 201, model: Item }"#, #"{ path: "x", status: 2xx, model: Other }"#,
        ]) { request in
            let type = request["X-Type"] ?? "application/json"
            let fields: FieldLines = ["Content-Type": type]
            let status = request["X-Status"].flatMap { Int($0) } ?? 200
            return .body(Array(Self.item.utf8), fields, status: status)
        }
        let (item, other) = (#"{"id":1,"label":"a"}"#, #"{"id":1,"title":"a"}"#)
        #expect(try larder.get("/x?full=1", Self.mapped).text == item)
        #expect(try larder.get("/x?full=2", Self.mapped).text == other)
        #expect(try larder.get("/x?full=1", Self.mapped + ["X-Status": "203"]).text == other)
        #expect(try larder.get("/x?full=1&y=1", Self.mapped + ["X-Type": "application/hal+json"]).text == other)
        #expect(try larder.request("POST", "/x", Self.mapped + ["X-Status": "201"], body: "{}").text == item)
        #expect(try larder.request("POST", "/x", Self.mapped, body: "{}").text == other)
    }

    @Test func `OV-32: a redirect is passed on, and its target's URL chooses the route`() throws {
        let larder = try Self.daemon([#"{ path: "new", model: Item }"#, #"{ path: "old", model: Other }"#]) { request in
            request.path.hasSuffix("/old")
                ? .empty(301, ["Location": "/api/v1/new"]) : .json(Self.item, Fresh.hour)
        }
        #expect(try larder.get("/old", Self.mapped).status == 301)
        #expect(try larder.get("/new", Self.mapped).text == #"{"id":1,"label":"a"}"#)
    }

    @Test func `OV-34 OV-46: the mapped view is the received JSON without a route, and the mapped object with one`()
        throws
    {
        let larder = try Self.daemon([#"{ path: "x", model: Item }"#]) { _ in .json(#"{ "id" : 1 }"#, Fresh.hour) }
        #expect(try larder.get("/y", Self.mapped).text == #"{ "id" : 1 }"#)
        #expect(try larder.get("/x", Self.mapped).text == #"{"id":1}"#)
        #expect(try larder.get("/x").text == #"{ "id" : 1 }"#)
        #expect(try larder.get("/x", ["Larder-View": "raw"]).text == #"{ "id" : 1 }"#)
    }

    @Test(arguments: [401, 404, 500]) func `OV-42 OV-43: an error keeps its status, has its own model and no objects`(
        status: Int
    ) throws {
        let larder = try Self.daemon([#"{ path: "**", model: Item }"#]) { _ in
            .json(#"{"id":1,"name":"a","message":"no"}"#, Fresh.hour, status: status)
        }
        let answer = try larder.get("/x", Self.mapped)
        #expect(answer.status == status)
        #expect(answer.text == #"{"text":"no"}"#)
        #expect(try larder.get("/x").text == #"{"id":1,"name":"a","message":"no"}"#)
        #expect(try larder.count()["objects"] as? Int == 0)
    }

    @Test func `OV-44 OV-48: a body that does not map reaches the client unchanged, with a warning`() throws {
        let larder = try Self.daemon([#"{ path: "**", model: Item }"#]) { request in
            .json(request.path.hasSuffix("list") ? "[1,2]" : #"{"id":1"#, Fresh.hour)
        }
        for _ in 0..<2 {
            #expect(try larder.get("/list", Self.mapped).text == "[1,2]")
            #expect(try larder.get("/broken", Self.mapped).text == #"{"id":1"#)
        }
        let kinds = try eventually {
            let rows = try larder.admin("GET", "/warnings").object["warnings"] as? [[String: Any]] ?? []
            return Set(rows.compactMap { $0["kind"] as? String }).contains("not-json") && rows.count >= 2
        }
        #expect(kinds)
    }

    @Test func `OV-45 RK-36: HEAD and empty bodies map to nothing, without a warning`() throws {
        let larder = try Self.daemon([#"{ path: "**", model: Item }"#]) { request in
            request.path.hasSuffix("none") ? .empty(204) : .json("", Fresh.hour)
        }
        #expect(try larder.request("HEAD", "/x", Self.mapped).status == 200)
        #expect(try larder.get("/none", Self.mapped).status == 204)
        let empty = try larder.get("/empty", Self.mapped)
        #expect(empty.status == 200)
        #expect(empty.body.isEmpty)
        let rows = try larder.admin("GET", "/warnings").object["warnings"] as? [Any]
        #expect(rows?.isEmpty == true)
    }
}
