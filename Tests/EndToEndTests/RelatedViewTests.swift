import Foundation
import TestSupport
import Testing

/// The mapped view of documents that name objects by their bare identities.
@Suite(.scripts) struct RelatedViewTests {
    private static let mapped: FieldLines = ["Larder-View": "mapped"]
    private static let bare = #"{"id":1,"author":7,"likers":[8,7]}"#
    private static let ada = #"{"id":7,"login":"ada","friend":8}"#

    private static func config(_ origin: Origin) -> String {
        """
        upstreams: { api: { url: "\(origin.url)" } }
        models:
          User: { identity: id, properties: { login: login, friend: { from: friend, model: User } } }
          Post:
            identity: id
            properties:
              author: { from: author, model: User }
              likers: { from: likers, models: User }
        routes:
          - { path: "users/{id:#}", model: User, object: { id: id } }
          - { path: "posts/{id:#}", model: Post }
        """
    }

    private static func daemon(_ fields: FieldLines = Fresh.hour) throws -> (
        bodies: Monitor<[String: String]>, origin: Origin, larder: Larder
    ) {
        let bodies = Monitor(["/posts/1": bare, "/users/7": ada, "/users/8": #"{"id":8,"login":"bo"}"#])
        let origin = try Origin { request in
            if request.method == "DELETE" { return .empty(204) }
            if request.method == "PATCH" { return .json(#"{"id":7,"login":"countess","friend":8}"#) }
            return .json(bodies.current[request.path] ?? "{}", request.path == "/posts/1" ? fields : Fresh.hour)
        }
        return (bodies, origin, try Larder(origin, config: config(origin)))
    }

    @Test
    func `FJ-15 FJ-16 FJ-28: a bare identity is shown as its object once known, with changes, until deleted`()
        throws
    {
        let (_, origin, larder) = try Self.daemon()
        #expect(try larder.get("/posts/1", Self.mapped).text == Self.bare)
        let before = try larder.get("/posts/1", Self.mapped)["ETag"]
        _ = try larder.get("/users/7", Self.mapped)
        #expect(
            try larder.get("/posts/1", Self.mapped).text == #"{"id":1,"author":\#(Self.ada),"likers":[8,\#(Self.ada)]}"#
        )
        _ = try larder.get("/users/8", Self.mapped)
        let shown = #"{"id":1,"author":\#(Self.ada),"likers":[{"id":8,"login":"bo"},\#(Self.ada)]}"#
        // Made once, then from memory.
        for _ in 0..<2 {
            let whole = try larder.get("/posts/1", Self.mapped)
            #expect(whole.isHit && whole.text == shown && whole["ETag"] != before)
            #expect(whole["Larder-Synthetic"] == #""/author", "/likers/0", "/likers/1""#)
            #expect(try larder.get("/posts/1", Self.mapped + ["If-None-Match": whole["ETag"] ?? ""]).status == 304)
        }
        #expect(try larder.request("PATCH", "/users/7", body: "{}").status == 200)
        #expect(try larder.get("/posts/1", Self.mapped).text == shown.replacing("ada", with: "countess"))
        #expect(try larder.request("DELETE", "/users/7").status == 204)
        #expect(
            try larder.get("/posts/1", Self.mapped).text == #"{"id":1,"author":7,"likers":[{"id":8,"login":"bo"},7]}"#
        )
        for view in ["wire", "raw"] { #expect(try larder.get("/posts/1", ["Larder-View": view]).text == Self.bare) }
        #expect(origin.count("/posts/1") == 1)
    }

    @Test func `an object shown for a bare identity is written back as the identity`() throws {
        let (_, _, larder) = try Self.daemon()
        for path in ["/users/7", "/users/8"] { _ = try larder.get(path, Self.mapped) }
        let view = try larder.get("/posts/1", Self.mapped)
        let file = try larder.folder.write(view.text, to: "in.json")
        func back(_ options: String...) throws -> String {
            let arguments = [
                "map", file, "--url", "/posts/1", "--config", larder.folder.file("larder.yaml"), "--reverse",
            ]
            let process = try TestProcess(Larder.binary, arguments + options, environment: Larder.environment)
            process.waitForEnd()
            return process.output.trimmingCharacters(in: .newlines) + process.errors
        }
        #expect(try back("--synthetic", try #require(view["Larder-Synthetic"])) == Self.bare)
        #expect(try back("--synthetic", "/author").contains("a list of JSON pointers in quotes"))
    }

    @Test(arguments: [Fresh.hour, ["Cache-Control": "no-store"]])
    func `a miss shows known objects for bare identities, also if it is not stored`(fields: FieldLines) throws {
        let (_, _, larder) = try Self.daemon(fields)
        _ = try larder.get("/users/7", Self.mapped)
        let miss = try larder.get("/posts/1", Self.mapped)
        #expect(!miss.isHit)
        #expect(miss.text == #"{"id":1,"author":\#(Self.ada),"likers":[8,\#(Self.ada)]}"#)
    }

    @Test func `an object that only another principal knows is not shown for a bare identity`() throws {
        let (_, _, larder) = try Self.daemon()
        _ = try larder.get("/users/7", Self.mapped + ["Authorization": "Bearer a"])
        #expect(try larder.get("/posts/1", Self.mapped + ["Authorization": "Bearer b"]).text == Self.bare)
        #expect(try larder.get("/posts/1", Self.mapped).text == Self.bare)
        #expect(
            try larder.get("/posts/1", Self.mapped + ["Authorization": "Bearer a"]).text
                == #"{"id":1,"author":\#(Self.ada),"likers":[8,\#(Self.ada)]}"#
        )
    }

    @Test func `a bare identity is shown as the store has it after a clean or a restart`() throws {
        let (_, _, larder) = try Self.daemon()
        _ = try larder.get("/posts/1", Self.mapped)
        for user in [7, 8] { _ = try larder.get("/users/\(user)", Self.mapped) }
        let shown = try larder.get("/posts/1", Self.mapped).text
        #expect(shown.contains("ada") && shown.contains("bo"))
        #expect(try larder.waitForDocuments(3))
        try larder.restart()
        #expect(try larder.get("/posts/1", Self.mapped).text == shown)
        #expect(try larder.admin("POST", "/clean", body: #"{"model":"User","id":"7"}"#).status == 200)
        #expect(try !larder.get("/posts/1", Self.mapped).text.contains("ada"))
    }

    @Test func `a stream of the mapped view gets changes of objects shown for bare identities`() throws {
        let (_, _, larder) = try Self.daemon()
        for path in ["/users/7", "/users/8", "/posts/1"] { _ = try larder.get(path, Self.mapped) }
        let stream = try Follower(larder, "/posts/1", Self.mapped)
        #expect(stream.wait(for: 2))
        #expect(stream.text?.contains("ada") == true)
        #expect(try larder.request("PATCH", "/users/7", body: "{}").status == 200)
        #expect(stream.wait(for: 3))
        #expect(stream.text?.contains("countess") == true)
    }

    // MARK: Objects that become known while a stream is open

    private static let chain = """
        models:
          Team: { identity: id, properties: { name: name } }
          User: { identity: id, keys: [login], properties: { login: login, team: { from: team, model: Team } } }
          Post:
            identity: id
            properties:
              by: { from: by, model: User }
              login: by.login
              team: by.team.name
              reader: { from: reader, model: User, by: login }
        routes:
          - { path: "posts/{id:#}", model: Post }
          - { path: "users/{id:#}", model: User, object: { id: id } }
          - { path: "teams/{id:#}", model: Team, object: { id: id } }
        """

    private static func chained(_ post: String) throws -> (origin: Origin, larder: Larder) {
        let bodies = [
            "/posts/1": post, "/users/7": #"{"id":7,"login":"ada","team":3}"#, "/teams/3": #"{"id":3,"name":"core"}"#,
        ]
        let origin = try Origin { request in
            switch (request.method, request.path) {
            case ("PATCH", "/users/7"): .json(#"{"id":7,"login":"countess","team":3}"#)
            case ("PATCH", _): .json(#"{"id":3,"name":"kernel"}"#)
            case ("PUT", _): .empty(204)
            default: .json(bodies[request.path] ?? "{}", Fresh.hour)
            }
        }
        return (origin, try Larder(origin, config: "upstreams: { api: { url: \"\(origin.url)\" } }\n" + chain))
    }

    /// Takes each step, and expects the plain mapped view, and the stream's last event, to be this then.
    private func follow(_ post: String, _ steps: [(method: String, path: String, shown: String)]) throws {
        let (origin, larder) = try Self.chained(post)
        _ = try larder.get("/posts/1", Self.mapped)
        let stream = try Follower(larder, "/posts/1", Self.mapped)
        #expect(stream.wait(for: 2))
        for (method, path, shown) in steps {
            #expect(try larder.request(method, path, Self.mapped, body: method == "GET" ? "" : "{}").status < 300)
            #expect(try larder.get("/posts/1", Self.mapped).text == shown, "\(method) \(path)")
            #expect(stream.wait(for: shown), "\(method) \(path): \(stream.text ?? "nothing")")
        }
        #expect(origin.count("/posts/1") == 2)
    }

    @Test func `a stream gets an object that is put in for a bare identity and becomes known, and its changes`() throws
    {
        try follow(
            #"{"id":1,"by":7}"#,
            [
                ("GET", "/users/7", #"{"id":1,"by":{"id":7,"login":"ada","team":3},"login":"ada"}"#),
                ("PATCH", "/users/7", #"{"id":1,"by":{"id":7,"login":"countess","team":3},"login":"countess"}"#),
                ("PUT", "/users/7", #"{"id":1,"by":7}"#),
                ("GET", "/users/7", #"{"id":1,"by":{"id":7,"login":"ada","team":3},"login":"ada"}"#),
            ]
        )
    }

    @Test func `a stream gets the value at the end of a key path through two identities, in either order`() throws {
        func shown(_ login: String, _ team: String?) -> String {
            #"{"id":1,"by":{"id":7,"login":"\#(login)","team":3},"login":"\#(login)""#
                + (team.map { #","team":"\#($0)"}"# } ?? "}")
        }
        try follow(
            #"{"id":1,"by":{"id":7}}"#,
            [
                ("GET", "/users/7", shown("ada", nil)), ("GET", "/teams/3", shown("ada", "core")),
                ("PATCH", "/teams/3", shown("ada", "kernel")), ("PATCH", "/users/7", shown("countess", "kernel")),
            ]
        )
        try follow(
            #"{"id":1,"by":7}"#,
            [("GET", "/teams/3", #"{"id":1,"by":7}"#), ("GET", "/users/7", shown("ada", "core"))]
        )
    }

    @Test func `a stream gets an object that is named by a key and becomes known`() throws {
        try follow(
            #"{"id":1,"reader":"ada"}"#,
            [("GET", "/users/7", #"{"id":1,"reader":{"id":7,"login":"ada","team":3}}"#)]
        )
    }
}
