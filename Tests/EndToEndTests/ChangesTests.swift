import Foundation
import TestSupport
import Testing

/// `/changes`: what became of which object, as a stream and by the command, and what may be asked of it.
@Suite(.scripts) struct ChangesTests: ChangesFixtures {
    // MARK: The stream

    @Test func `a client gets the changes of other clients' requests, each with its own number`() throws {
        let blog = try Changing(["/users": Self.users(2, "a"), "/posts/1": #"{"id":1,"title":"t","author":{"id":1}}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let listener = try ChangeListener(larder)
        #expect(listener.status == 200)
        #expect(listener.fields["Content-Type"] == "text/event-stream")
        #expect(listener.fields["Cache-Control"] == "no-store")

        _ = try larder.get("/users")
        #expect(try listener.next(2).map(\.text) == ["created User 1", "created User 2"])
        // The same again is nothing.
        _ = try larder.get("/users", Self.again)
        blog["/users"] = #"[{"id":1, "name" : "\u0061"},{"id":2.0,"name":"b"}]"#
        _ = try larder.get("/users", Self.again)
        _ = try larder.get("/posts/1")
        let rest = try listener.next(2)
        // Another spelling of an identity alone is no change, nor another identity.
        #expect(rest.map(\.text) == ["changed User 2", "created Post 1"])
        let change = rest[0]
        #expect(change.members["upstream"] as? String == "blog")
        #expect(change.members["principal"] as? String == "anonymous")
        #expect(change.members["context"] as? String == "")
        #expect(change.members["kind"] as? String == "changed")
        #expect(change.sequence == change.id && rest[1].id > change.id)
        #expect((change.members["time"] as? String)?.hasPrefix("20") == true)
        #expect(change.members["object"] == nil)
    }

    @Test func `another client's PATCH is reported with all members of the object`() throws {
        let blog = try Changing(["/users/1": #"{"id":1, "login":"ada"}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users/1")
        #expect(try larder.waitForObjects(1, of: "User"))
        let listener = try ChangeListener(larder, "values=true")
        blog["/users/1"] = "{\"id\":1,\n \"login\":\"bela\"}"
        #expect(try larder.request("PATCH", "/users/1", body: #"{"login":"bela"}"#).status == 200)
        let change = try #require(try listener.next())
        #expect(change.text == "changed User 1")
        #expect((change.members["object"] as? [String: Any])?["login"] as? String == "bela")
    }

    @Test func `an object that a write left unknown is changed, not created, when it is shown again`() throws {
        let name = Monitor("a")
        let origin = try Origin { request in
            guard request.method == "GET" else {
                name.withLock { $0 = "b" }
                return .empty(204)
            }
            return .json(#"{"id":1,"name":"\#(name.current)"}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["lag: 0s"]))
        let listener = try ChangeListener(larder)
        _ = try larder.get("/users/1")
        #expect(try listener.next(1).map(\.text) == ["created User 1"])
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 204)
        _ = try larder.get("/users/1")
        #expect(try listener.next(2).map(\.text) == ["unknown User 1", "changed User 1"])
    }

    @Test func `a client that returns with its last number continues after it, also if it saw no change`() throws {
        let blog = try Changing(["/users": Self.users(5, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let early = try ChangeListener(larder)
        _ = try larder.get("/users")
        let seen = try early.next(2)
        // Within what one commit brought.
        let back = try ChangeListener(larder, after: seen[1].id)
        #expect(try back.next(3).map(\.identity) == ["3", "4", "5"])
        // The field of a browser that comes back outdoes its URL.
        let browser = try ChangeListener(larder, "since=0", after: seen[0].id)
        #expect(try browser.next(4).map(\.identity) == ["2", "3", "4", "5"])
        let all = try ChangeListener(larder, "since=0")
        #expect(try all.next(5).map(\.identity) == ["1", "2", "3", "4", "5"])
        let some = try ChangeListener(larder, "since=\(seen[0].id)")
        #expect(try some.next(1).map(\.identity) == ["2"])

        // A stream that tells of nothing gives a number at its head.
        let quiet = try ChangeListener(larder, "model=Post")
        var head: [UInt8] = []
        while head.isEmpty || !String(decoding: head, as: UTF8.self).contains("id: ") {
            head += try quiet.client.chunk() ?? []
        }
        let number = try #require(String(decoding: head, as: UTF8.self).firstMatch(of: /id: ([0-9]+)\n\n/)?.1)
        blog["/users"] = Self.users(5, "a").replacingOccurrences(of: #""name":"a"}]"#, with: #""name":"z"}]"#)
        _ = try larder.get("/users", Self.again)
        let later = try ChangeListener(larder, after: Int64(number))
        #expect(try later.next(1).map(\.text) == ["changed User 5"])
    }

    @Test func `different filters must all match, and repeated ones are alternatives`() throws {
        let blog = try Changing(["/users": Self.users(4, "a"), "/posts/1": #"{"id":1,"author":{"id":9}}"#])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        _ = try larder.get("/posts/1")
        #expect(try eventually { try larder.changes().count == 6 })
        func told(_ query: String) throws -> [String] {
            try larder.changes(query).map { "\($0["model"] ?? "") \($0["id"] ?? "")" }
        }
        #expect(try told("model=Post") == ["Post 1"])
        #expect(try told("model=Post&model=User&id=1&id=9").sorted() == ["Post 1", "User 1", "User 9"])
        #expect(try told("upstream=blog&model=User&id=3") == ["User 3"])
        #expect(try told("principal=anonymous&model=Post") == ["Post 1"])
        #expect(try told("principal=p-00000000").isEmpty)
        let listener = try ChangeListener(larder, "since=0&model=User&id=2&id=4")
        #expect(try listener.next(2).map(\.text) == ["created User 2", "created User 4"])
    }

    // MARK: The face

    @Test func `a wrong request for changes is refused with the reason`() throws {
        let blog = try Changing(["/users": Self.users(1, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        let refused: [(query: String, part: String)] = [
            ("model=Nothing", "the config declares Note, Post, Tag, User"), ("model=", "model is empty"),
            ("upstream=github", "the config has blog"), ("principal=me", "p- and eight hexadecimal digits"),
            ("id=", "id is empty"), ("since=-1", "since must be the number of a change"),
            ("since=1e3", "since must be the number of a change"), ("since=", "since must be the number of a change"),
            ("since=99999999999999999999", "since must be the number of a change"), ("since=1&since=2", "given twice"),
            ("values=maybe", "values is true or false"), ("limit=5", "limit goes with Accept: application/json"),
            ("modell=User", "modell is not a parameter of /changes"),
        ]
        for (query, part) in refused {
            let answer = try larder.admin("GET", "/changes?\(query)")
            #expect(answer.status == 400 && answer.isProblem, "\(query)")
            #expect((answer.object["detail"] as? String)?.contains(part) == true, "\(query): \(answer.text)")
        }
        for limit in ["0", "1001", "ten"] {
            #expect(try larder.admin("GET", "/changes?limit=\(limit)", ["Accept": "application/json"]).status == 400)
        }
        #expect(try larder.admin("GET", "/changes", ["Accept": "text/plain"]).status == 406)
        #expect(try larder.admin("POST", "/changes").status == 405)
        for wrong in ["Bearer nonsense", "Basic abc"] {
            #expect(try larder.admin("GET", "/changes", ["Authorization": wrong]).status == 401)
        }
        let head = try larder.admin("HEAD", "/changes")
        #expect(head.status == 200 && head["Content-Type"] == "text/event-stream" && head.body.isEmpty)
        let paths = try larder.admin("GET", "/openapi.json").object["paths"] as? [String: Any]
        #expect(paths?["/changes"] != nil)
    }

    @Test func `without a journal a request for changes is refused with the reason`() throws {
        let blog = try Changing(["/users": Self.users(1, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin, top: ["store: { changes: 0 }"]))
        _ = try larder.get("/users")
        let answer = try larder.admin("GET", "/changes")
        #expect(answer.status == 404)
        #expect(answer.text.contains("changes: 0"))
    }

    @Test func `larder changes shows the kept changes, and follows new ones`() throws {
        let blog = try Changing(["/users": Self.users(2, "a")])
        let larder = try Larder(config: Configs.blog(blog.origin))
        _ = try larder.get("/users")
        #expect(try eventually { try larder.changes().count == 2 })
        let listed = try larder.command("changes", "--model", "User")
        #expect(listed.end == .exited(0), "\(listed.errors)")
        let lines = listed.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        let wanted = [1, 2].map { ["created", "User", "\($0)", "blog", "anonymous"] }
        #expect(lines.map { Array($0.dropFirst(2)) } == wanted)
        let behind = try larder.command("changes", "--since", lines[0][0], "--values")
        #expect(behind.output.contains(#"{"id":2,"login":"u2","name":"a"}"#) && !behind.output.contains("u1"))
        #expect(try larder.command("changes", "--json").output.hasPrefix(#"{"changes":[{"context":"#))
        #expect(try larder.command("changes", "--limit", "1").output.split(separator: "\n").count == 1)
        #expect(try larder.command("changes", "--limit", "1", "--follow").end == .exited(64))
        let unknown = try larder.command("changes", "--model", "Nobody")
        #expect(unknown.end == .exited(1) && unknown.errors.contains("no model is named \"Nobody\""))
        #expect(try larder.command("changes", "--since", "x").end == .exited(64))

        let follower = try TestProcess(
            Larder.binary,
            [
                "changes", "--follow", "--json", "--since", "0", "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
                larder.folder.file("larder.db"),
            ],
            environment: Larder.environment
        )
        #expect(eventually { follower.output.split(separator: "\n").count == 2 })
        blog["/users"] = Self.users(2, "c")
        _ = try larder.get("/users", Self.again)
        #expect(eventually { follower.output.split(separator: "\n").count == 4 })
        #expect(follower.output.split(separator: "\n").last?.contains(#""kind":"changed""#) == true)

        #expect(larder.terminate() == .exited(0))
        #expect(eventually { follower.errors.hasSuffix("has ended; waiting until it is back (Ctrl-C ends this)\n") })
        let next = try Larder(
            arguments: ["--config", larder.folder.file("larder.yaml")],
            folder: larder.folder,
            addresses: ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:\(larder.adminPort)"]
        )
        #expect(eventually { follower.errors.hasSuffix("is back\n") })
        blog["/users"] = Self.users(2, "d")
        _ = try next.get("/users", Self.again)
        #expect(eventually { follower.output.split(separator: "\n").count == 6 })
        follower.signal(SIGTERM)
        follower.waitForEnd()
    }
}
