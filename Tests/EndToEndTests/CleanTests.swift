import Foundation
import TestSupport
import Testing

/// What was cleaned is gone: from responses, from the file, and for good.
@Suite(.scripts) struct CleanTests {
    static func origin() throws -> Origin {
        try Origin { request in
            switch request.path {
            case "/users": .json(#"[{"id":1,"login":"ada-marker"},{"id":2,"login":"bela-marker"}]"#, Fresh.hour)
            case "/users/1": .json(#"{"id":1,"login":"ada-marker"}"#, Fresh.hour)
            default: .json(#"{"id":7,"title":"post-marker"}"#, Fresh.hour)
            }
        }
    }

    static func filled() throws -> (origin: Origin, larder: Larder) {
        let origin = try origin()
        let larder = try Larder(config: Configs.blog(origin))
        for path in ["/users", "/users/1", "/posts/7", "/other"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(4))
        return (origin, larder)
    }

    static func clean(_ larder: Larder, _ body: String) throws -> [String: Any] {
        let answer = try larder.admin("POST", "/clean", body: body)
        #expect(answer.status == 200, "\(answer.text)")
        return answer.object
    }

    @Test func `a clean of everything removes all documents and objects`() throws {
        let (origin, larder) = try Self.filled()
        let removed = try Self.clean(larder, #"{"all":true}"#)
        #expect(removed["documents"] as? Int == 4)
        #expect(removed["objects"] as? Int == 3)
        #expect(try larder.documents() == 0)
        #expect(try larder.count()["objects"] as? Int == 0)
        origin.stop()
        for path in ["/users", "/users/1", "/posts/7", "/other"] { #expect(try larder.get(path).status != 200) }
    }

    @Test(arguments: [
        (#"{"model":"User"}"#, ["/users", "/users/1"]), (#"{"model":"User","id":"2"}"#, ["/users"]),
        (#"{"model":"Post"}"#, ["/posts/7"]), (#"{"route":"users/{id:#}"}"#, ["/users/1"]),
        (#"{"url":"/users/1"}"#, ["/users/1"]),
        (#"{"upstream":"blog"}"#, ["/users", "/users/1", "/posts/7", "/other"]), (#"{"older_than":"1h"}"#, []),
        (#"{"older_than":"0s"}"#, ["/users", "/users/1", "/posts/7", "/other"]),
    ])
    func `a clean with a filter removes what its dry run counted, and nothing else`(filter: String, gone: [String])
        throws
    {
        let (origin, larder) = try Self.filled()
        let dry = try Self.clean(larder, filter.dropLast() + #","dry_run":true}"#)
        #expect(try larder.documents() == 4)
        let removed = try Self.clean(larder, filter)
        #expect(removed["documents"] as? Int == gone.count)
        #expect(dry["documents"] as? Int == gone.count)
        origin.stop()
        for path in ["/users", "/users/1", "/posts/7", "/other"] {
            #expect(try (larder.get(path).status == 200) == !gone.contains(path), "\(path)")
        }
    }

    @Test func `a clean removes one URL, spelled as a client requests it`() throws {
        let (_, larder) = try Self.filled()
        let address = "http://127.0.0.1:\(larder.port)"
        let done = try larder.command("clean", "--url", "\(address)/users/1")
        #expect(done.output.contains("1 document"))
        #expect(try larder.get("/users").isHit && !larder.get("/users/1").isHit)
        let elsewhere = try larder.command("clean", "--url", "http://elsewhere.example/users/1")
        #expect(elsewhere.end == .exited(1) && elsewhere.errors.contains("neither Larder nor an upstream is at"))
        let nothing = try larder.command("clean")
        #expect(nothing.end == .exited(64) && nothing.errors.contains("say what to remove"))
        let misspelled = try larder.command("clean", "--modle", "User")
        #expect(misspelled.end == .exited(64) && misspelled.errors.contains("--modle"))
    }

    @Test func `documents are listed by the URL that a client requests`() throws {
        let (_, larder) = try Self.filled()
        let found = try larder.command("documents", "--url", "http://127.0.0.1:\(larder.port)/users/1")
        #expect(found.output.contains("/users/1 ") && !found.output.contains("/posts/7"), "\(found)")
        let elsewhere = try larder.command("documents", "--url", "http://elsewhere.example/users/1")
        #expect(elsewhere.end == .exited(1) && elsewhere.errors.contains("neither Larder nor an upstream is at"))
        let word = try larder.command("documents", "--url", "users")
        #expect(word.end == .exited(1) && word.errors.contains("write a path such as"), "\(word)")
    }

    @Test func `documents and clean select by the whole URL, or with a star by its beginning`() throws {
        let (_, larder) = try Self.filled()
        func documents(_ arguments: String...) throws -> [String] {
            let listed = try larder.admin("GET", "/documents?" + arguments.joined(separator: "&")).object["documents"]
            return (listed as? [[String: Any]] ?? []).compactMap { $0["url"] as? String }.sorted()
        }
        #expect(try documents("url=/users") == ["/users"])
        let users = try documents("url=/users*")
        #expect(users.count > 1 && users.allSatisfy { $0.hasPrefix("/users") }, "\(users)")
        #expect(try documents("url=/users/1*") == documents("url=/users/1"))
        #expect(try documents("route=users/%7Bid:%23%7D") == users.filter { $0 != "/users" })
        let unknown = try larder.command("documents", "--route", "users/{ix:#}")
        #expect(unknown.errors.contains("did you mean users/{id:#}?"), "\(unknown)")
        let done = try larder.command("clean", "--url", "/users*")
        #expect(done.output.contains("\(users.count) documents"), "\(done)")
        #expect(try documents("url=/users*") == [])
    }

    @Test(arguments: [#"{"url":"/users/1"}"#, #"{"model":"User","id":"2"}"#, #"{"all":true}"#])
    func `a clean removes as many bytes as its dry run announced, also of small objects`(filter: String) throws {
        let (_, larder) = try Self.filled()
        let dry = try Self.clean(larder, filter.dropLast() + #","dry_run":true}"#)
        let removed = try Self.clean(larder, filter)
        let bytes = try #require(removed["bytes"] as? Int)
        #expect(bytes > 50 && dry["bytes"] as? Int == bytes, "\(dry) \(removed)")
    }

    @Test func `a clean counts no versions of objects that stay`() throws {
        let origin = try Origin { request in
            let user = #"{"id":1,"login":"ada","name":"\#(request.path) \#(String(repeating: "x", count: 500))"}"#
            return .json(request.path == "/users" ? "[\(user)]" : user, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        for path in ["/users", "/users/1"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(2))
        let dry = try Self.clean(larder, #"{"url":"/users/1","dry_run":true}"#)
        let removed = try Self.clean(larder, #"{"url":"/users/1"}"#)
        #expect(removed["objects"] as? Int == 0)
        #expect(removed["bytes"] as? Int == dry["bytes"] as? Int, "\(dry) \(removed)")
    }

    @Test func `larder clean says what it removes, and how many objects no document shows any more`() throws {
        let (_, larder) = try Self.filled()
        let dry = try larder.command("clean", "--model", "User", "--id", "2", "--dry-run")
        #expect(dry.output.hasPrefix("would remove 1 object (1 User), 1 document, "), "\(dry.output)\(dry.errors)")
        #expect(try larder.documents() == 4)
        let done = try larder.command("clean", "--model", "User", "--id", "2", "--json")
        let answer = try #require(try JSONSerialization.jsonObject(with: Data(done.output.utf8)) as? [String: Any])
        #expect(answer["documents"] as? Int == 1 && answer["objects"] as? Int == 1)
        #expect(answer["models"] as? [String: Int] == ["User": 1] && answer["orphaned"] as? Int == 0)
        let all = try larder.command("clean", "--all")
        #expect(
            all.end == .exited(0) && all.output.hasPrefix("removed 2 objects (1 Post, 1 User), 3 documents"),
            "\(all.output)"
        )
        #expect(try larder.command("clean", "--model", "Ghost").end == .exited(1))
    }

    @Test func `the event stream of a clean ends with the counts of what was removed`() throws {
        let (_, larder) = try Self.filled()
        let answer = try larder.admin("POST", "/clean", ["Accept": "text/event-stream"], body: #"{"all":true}"#)
        #expect(answer.status == 200)
        #expect(
            answer.text.contains("event: done\ndata: {") && answer.text.contains("\"documents\":4,"),
            "\(answer.text)"
        )
        #expect(try larder.documents() == 0)
        let bad = try larder.admin("POST", "/clean", ["Accept": "text/event-stream"], body: #"{"modell":"x"}"#)
        #expect(bad.status == 400)
    }

    @Test func `cleaned documents stay removed after a restart`() throws {
        let (origin, larder) = try Self.filled()
        _ = try Self.clean(larder, #"{"model":"User"}"#)
        larder.kill()
        origin.stop()
        try larder.start()
        #expect(try larder.get("/users").status != 200)
        #expect(try larder.get("/posts/7").status == 200)
    }

    @Test func `a fetch that began before a clean does not bring its response back`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json(#"{"id":1,"login":"ada"}"#, Fresh.hour).after(gate) }
        let larder = try Larder(config: Configs.blog(origin))
        let fetch = Background { try larder.get("/users/1") }
        origin.waitForRequests(1)
        _ = try Self.clean(larder, #"{"all":true}"#)
        gate.open()
        #expect(try fetch.value().text == #"{"id":1,"login":"ada"}"#)
        #expect(try larder.waitForQuiet())
        #expect(try larder.documents() == 0)
        origin.stop()
        #expect(try larder.get("/users/1").status != 200)
    }

    @Test func `a clean of one principal removes its response under way, and keeps those of others`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json(#"{"id":1,"login":"ada"}"#, Fresh.hour).after(gate) }
        let larder = try Larder(config: Configs.blog(origin))
        @Sendable func get(_ token: String) throws -> Response {
            try larder.get("/users/1", ["Authorization": "Bearer \(token)"])
        }
        let first = Background { try get("first") }
        origin.waitForRequests(1)
        let second = Background { try get("second") }
        origin.waitForRequests(2)
        let labels = try larder.sql("SELECT label FROM _principals WHERE label <> 'anonymous' ORDER BY id")
        try #require(labels.count == 2)
        _ = try Self.clean(larder, #"{"principal":"\#(labels[0])"}"#)
        gate.open()
        #expect(try first.value().status == 200 && second.value().status == 200)
        #expect(try larder.waitForQuiet())
        #expect(try larder.documents() == 1)
        #expect(try get("second").isHit && !get("first").isHit)
        // In memory, too, only one of them is outdated.
        #expect(try larder.waitForDocuments(2))
        _ = try Self.clean(larder, #"{"principal":"\#(labels[0])"}"#)
        #expect(try get("second").isHit && !get("first").isHit)
    }

    @Test func `a clean's bytes are gone from the store's file and its WAL`() throws {
        let (_, larder) = try Self.filled()
        let isThere = eventually { larder.storeBytes.contains("ada-marker") }
        #expect(isThere)
        _ = try Self.clean(larder, #"{"model":"User"}"#)
        #expect(!larder.storeBytes.contains("ada-marker"))
        #expect(!larder.storeBytes.contains("bela-marker"))
        #expect(larder.storeBytes.contains("post-marker"))
    }

    @Test func `another program that reads the store delays the erasure, and the clean says so`() throws {
        let (_, larder) = try Self.filled()
        // A reader that holds its view of the file until it is ended.
        let script = """
            import signal, sqlite3, sys
            store = sqlite3.connect(sys.argv[1])
            store.execute("BEGIN"); store.execute("SELECT count(*) FROM User").fetchall()
            print("reading", file=sys.stderr, flush=True)
            signal.pause()
            """
        let reader = try TestProcess("python3", ["-c", script, larder.folder.file("larder.db")])
        #expect(reader.waitForErrors { $0.contains("reading") })
        let answer = try Self.clean(larder, #"{"all":true}"#)
        #expect(answer["disk"] as? String == "pending")
        reader.signal(SIGKILL)
        reader.waitForEnd()
        let isErased = eventually { !larder.storeBytes.contains("ada-marker") }
        #expect(isErased)
    }
}
