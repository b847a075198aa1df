import Foundation
import TestSupport
import Testing

/// `Larder-View: mapped`: answers as their models have them.
@Suite(.scripts) struct MappedViewTests {
    private static let mapped: FieldLines = ["Larder-View": "mapped"]
    private static let user = #"{"id":7,"login":"ada","name":{"full":"Ada"},"extra":1}"#
    private static let shown = #"{"id":7,"login":"ada","fullName":"Ada"}"#

    private static let json: FieldLines = ["Content-Type": "application/json"]

    private static func config(_ origin: Origin) -> String {
        """
        upstreams: { api: { url: "\(origin.url)", lag: 0s } }
        models:
          User:
            identity: id
            properties:
              login: login
              fullName: name.full
              kind: { from: kind, one_of: [a, b] }
          Post:
            identity: id
            properties:
              title: title
              state: { from: state, default: open }
              author: { from: author, model: User }
              authorName: author.name.full
          Problem: { identity: [], properties: { text: message } }
        routes:
          - { path: "users/{id:#}", model: User }
          - { path: "users", model: [User] }
          - { path: "posts/{id:#}", model: Post }
        errors:
          - { path: "**", model: Problem }
        """
    }

    private static func daemon(_ handler: @escaping Origin.Handler) throws -> (origin: Origin, larder: Larder) {
        let origin = try Origin(handler)
        return (origin, try Larder(origin, config: config(origin)))
    }

    @Test func `misses and hits have a mapped view, and their raw and wire views stay as received`() throws {
        let (origin, larder) = try Self.daemon { _ in .json(Self.user, Fresh.tagged("a")) }
        let miss = try larder.get("/users/7", Self.mapped)
        #expect(miss.text == Self.shown)
        #expect(miss["Content-Type"] == "application/json")
        #expect(miss["Content-Length"] == "\(Self.shown.utf8.count)")
        let hit = try larder.get("/users/7", Self.mapped)
        #expect(hit.isHit)
        #expect(hit.text == Self.shown)
        #expect(hit["ETag"] == miss["ETag"])
        for fields in [[:], ["Larder-View": "wire"], ["Larder-View": "raw"]] as [FieldLines] {
            let wire = try larder.get("/users/7", fields)
            #expect(wire.isHit)
            #expect(wire.text == Self.user)
            #expect(wire["ETag"] == #""a""#)
        }
        #expect(origin.count() == 1)
    }

    @Test func `the mapped view has its own entity tag, which gives a 304`() throws {
        let (origin, larder) = try Self.daemon { _ in .json(Self.user, Fresh.tagged("a")) }
        let tag = try #require(try larder.get("/users/7", Self.mapped)["ETag"])
        #expect(tag != #""a""#)
        let same = try larder.get("/users/7", Self.mapped + ["If-None-Match": tag])
        #expect(same.status == 304)
        #expect(same.body.isEmpty)
        // The upstream's tag is that of other bytes.
        #expect(try larder.get("/users/7", Self.mapped + ["If-None-Match": #""a""#]).status == 200)
        #expect(try larder.get("/users/7", ["If-None-Match": #""a""#]).status == 304)
        #expect(origin.count() == 1)
    }

    @Test func `HEAD gives the mapped view's length`() throws {
        let (_, larder) = try Self.daemon { _ in .json(Self.user, Fresh.tagged("a")) }
        let whole = try larder.get("/users/7", Self.mapped)
        let head = try larder.request("HEAD", "/users/7", Self.mapped)
        #expect(head.status == 200)
        #expect(head["Content-Length"] == "\(Self.shown.utf8.count)")
        #expect(head["ETag"] == whole["ETag"])
    }

    @Test func `a response that may not be stored has a mapped view, too`() throws {
        let (origin, larder) = try Self.daemon { _ in .json(Self.user, ["Cache-Control": "no-store"]) }
        for _ in 0..<2 { #expect(try larder.get("/users/7", Self.mapped).text == Self.shown) }
        #expect(try larder.get("/users/7").text == Self.user)
        #expect(origin.count() == 3)
        #expect(try larder.documents() == 0)
    }

    @Test func `the mapped view has newer values of another response`() throws {
        let (_, larder) = try Self.daemon { request in
            request.path == "/users/7"
                ? .json(Self.user, Fresh.hour)
                : .json(#"{"id":1,"title":"x","author":{"id":7,"login":"countess"}}"#, Fresh.hour)
        }
        let before = try larder.get("/users/7", Self.mapped)
        _ = try larder.get("/posts/1")
        let isNew = try eventually {
            try larder.get("/users/7", Self.mapped).text == #"{"id":7,"login":"countess","fullName":"Ada"}"#
        }
        #expect(isNew)
        let after = try larder.get("/users/7", Self.mapped)
        #expect(after.isHit)
        #expect(after["ETag"] != before["ETag"])
        #expect(try larder.get("/users/7", ["Larder-View": "raw"]).text == Self.user)
    }

    @Test func `clients that wait for one response each get their own view of it`() throws {
        let gate = Gate()
        let (origin, larder) = try Self.daemon { _ in OriginResponse.json(Self.user, Fresh.tagged("a")).after(gate) }
        let views = ["wire", "mapped", "raw", "mapped", "wire", "mapped"]
        let answers = Background {
            try together(views.count) { try larder.get("/users/7", ["Larder-View": views[$0]]) }
        }
        #expect(origin.waitForRequests(1))
        gate.open()
        for (view, answer) in zip(views, try answers.value()) {
            #expect(answer.text == (view == "mapped" ? Self.shown : Self.user), "\(view)")
        }
    }

    @Test func `errors are shown by their own models, with their status`() throws {
        let (_, larder) = try Self.daemon { _ in .json(#"{"message":"gone fishing","code":3}"#, status: 404) }
        let answer = try larder.get("/users/7", Self.mapped)
        #expect(answer.status == 404)
        #expect(answer.text == #"{"text":"gone fishing"}"#)
        #expect(try larder.get("/users/7").text == #"{"message":"gone fishing","code":3}"#)
    }

    @Test(arguments: ["/other", "/users/7"])
    func `the mapped view of a response that has no route, or is not JSON, is the body as received`(
        path: String
    ) throws {
        let (_, larder) = try Self.daemon { request in
            request.path == "/other"
                ? .json(#"{ "a" : 1 }"#, Fresh.tagged("a"))
                : .body(Array(#"{ "a" : 1 }"#.utf8), Fresh.tagged("a") + ["Content-Type": "text/plain"])
        }
        for _ in 0..<2 {
            let answer = try larder.get(path, Self.mapped)
            #expect(answer.text == #"{ "a" : 1 }"#)
            #expect(answer["ETag"] == #""a""#)
        }
    }

    @Test func `a response field names the members that are defaults`() throws {
        let (_, larder) = try Self.daemon { _ in .json(#"{"id":1,"title":"x"}"#, Fresh.hour) }
        for _ in 0..<2 {
            let answer = try larder.get("/posts/1", Self.mapped)
            #expect(answer.text == #"{"id":1,"title":"x","state":"open"}"#)
            #expect(answer["Larder-Synthetic"] == #""/state""#)
        }
        #expect(try larder.get("/posts/1")["Larder-Synthetic"] == nil)
    }

    @Test(arguments: ["PATCH", "PUT", "POST"])
    func `the response to a write has a mapped view, too, and so has a refusal`(method: String) throws {
        let (origin, larder) = try Self.daemon { _ in .json(Self.user, Fresh.tagged("a")) }
        #expect(try larder.get("/users/7", Self.mapped).text == Self.shown)
        let changed = Self.user.replacing("ada", with: "countess")
        let body = Array(changed.utf8)
        origin.behave { _ in .chunked([Array(body[..<20]), Array(body[20...])], Fresh.tagged("b") + Self.json) }
        let answer = try larder.request(method, "/users/7", Self.mapped, body: "{}")
        #expect(answer.status == 200)
        #expect(answer.text == #"{"id":7,"login":"countess","fullName":"Ada"}"#)
        #expect(answer["Content-Length"] == "\(answer.body.count)")
        #expect(answer["ETag"] == nil)
        #expect(try larder.request(method, "/users/7", body: "{}").text == changed)
        #expect(try larder.request(method, "/other", Self.mapped, body: "{}").text == changed)
        origin.behave { _ in .json(#"{"message":"no","code":3}"#, status: 422) }
        let refusal = try larder.request(method, "/users/7", Self.mapped, body: "{}")
        #expect(refusal.status == 422)
        #expect(refusal.text == #"{"text":"no"}"#)
    }

    @Test func `an unknown view is refused, and the known ones are named`() throws {
        let (_, larder) = try Self.daemon { _ in .json(Self.user) }
        let answer = try larder.get("/users/7", ["Larder-View": "maped"])
        #expect(answer.status == 400)
        #expect(answer.text.contains("`mapped`"))
    }

    @Test func `the admin side and larder objects show objects mapped by their models`() throws {
        let (_, larder) = try Self.daemon { request in
            request.path == "/users/7"
                ? .json(Self.user, Fresh.hour)
                : .json(#"{"id":1,"title":"x","author":{"id":7,"login":"ada"}}"#, Fresh.hour)
        }
        _ = try larder.get("/users/7")
        _ = try larder.get("/posts/1")
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.admin("GET", "/objects/User/7?view=mapped").text.contains(#""object":\#(Self.shown)"#))
        let post = try larder.admin("GET", "/objects/Post/1?view=mapped").text
        #expect(
            post.contains(
                #""object":{"id":1,"title":"x","state":"open","author":7,"authorName":"Ada"},"#
            ) && post.contains(#","synthetic":["/state"],"#),
            "\(post)"
        )
        let some = try larder.admin("GET", "/objects/User/7?view=mapped&members=fullName")
        #expect(some.text.contains(#""object":{"id":7,"fullName":"Ada"}"#))
        #expect(try larder.admin("GET", "/objects/User?view=mapped").text.contains(#""object":\#(Self.shown)"#))
        #expect(try !larder.admin("GET", "/objects/User/7").text.contains("fullName"))
        #expect(try larder.admin("GET", "/objects/User/7?view=odd").status == 400)
        #expect(try larder.admin("GET", "/objects/User/7?members=login").status == 400)
        for members in ["Login", "login,,kind", "login.x"] {
            #expect(try larder.admin("GET", "/objects/User/7?view=mapped&members=\(members)").status == 400)
        }
        #expect(try larder.admin("GET", "/objects/Post?view=mapped&members=author.login").status == 200)

        let command = try larder.command("objects", "User", "7", "--mapped", "--members", "fullName")
        #expect(command.end == .exited(0))
        #expect(command.output.contains(#""fullName": "Ada""#), "\(command.output)\(command.errors)")
        #expect(!command.output.contains("login"))
        #expect(try larder.command("objects", "User", "7", "--members", "login").end != .exited(0))
    }

    @Test func `MK-17: a misfit is listed once, with its place, its count and when it was seen`() throws {
        let (_, larder) = try Self.daemon { _ in
            .json(#"[{"id":1,"login":"a","kind":"odd"},{"id":2,"login":"b","kind":"a"}]"#, Fresh.never)
        }
        for _ in 0..<3 { _ = try larder.get("/users") }
        let isCounted = try eventually {
            let rows = try larder.admin("GET", "/warnings").object["warnings"] as? [[String: Any]] ?? []
            return rows.contains { $0["kind"] as? String == "quarantined" && $0["count"] as? Int == 3 }
        }
        #expect(isCounted)
        let rows = try larder.admin("GET", "/warnings").object["warnings"] as? [[String: Any]] ?? []
        let row = try #require(rows.first { $0["kind"] as? String == "quarantined" })
        #expect(row["pointer"] as? String == "/0/kind")
        #expect((row["url"] as? String)?.hasSuffix("/users") == true)
        let (first, last) = (row["first"] as? String ?? "", row["last"] as? String ?? "")
        #expect(!first.isEmpty && first <= last)
        let command = try larder.command("warnings")
        #expect(command.output.contains("/0/kind"), "\(command.output)")
        #expect(command.output.contains(first))
        // The others are there.
        #expect(
            try larder.get("/users", Self.mapped).text == #"[{"id":1,"login":"a"},{"id":2,"login":"b","kind":"a"}]"#
        )
    }
}
