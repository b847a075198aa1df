import Foundation
import TestSupport
import Testing

/// `larder seed`: objects that did not come in a response.
@Suite(.scripts) struct SeedTests {
    private static let list = #"[{"id":1,"login":"ada","name":"old"},{"id":2,"login":"bob","name":"old"}]"#

    private static func daemon(upstream: [String] = [], top: [String] = [], _ list: String = list) throws -> (
        origin: Origin, larder: Larder
    ) {
        let origin = try Origin { request in
            request.path == "/users" ? .json(list, Fresh.hour) : .json(#"{"message":"no"}"#, status: 404)
        }
        return (origin, try Larder(origin, config: Configs.blog(origin, upstream: upstream, top: top)))
    }

    private func seed(_ larder: Larder, _ model: String, _ text: String, _ more: String...) throws -> (
        end: TestProcess.End?, output: String, errors: String
    ) {
        let file = try larder.folder.write(text, to: "seed-\(UInt32.random(in: 0 ... .max)).json")
        return try Larder.run(
            [
                "seed", model, file, "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
                larder.folder.file("larder.db"),
            ]
                + more
        )
    }

    @Test(arguments: [
        #"{"id":7,"login":"eve","name":"Eve"}"#, #"[{"id":7,"login":"eve","name":"Eve"}]"#,
        "{\n  \"id\": 7,\n  \"login\": \"eve\", \"name\": \"Eve\"\n}\n",
    ]) func `an object, a list and lines become objects, and each command shows them`(text: String) throws {
        let (origin, larder) = try Self.daemon()
        let seeded = try seed(larder, "User", text)
        #expect(seeded.end == .exited(0) && seeded.output == "seeded 1 value: 1 created, 0 changed\n", "\(seeded)")
        #expect(try larder.command("objects", "User", "eve").output.contains(#""name": "Eve""#))
        #expect(try larder.sql("SELECT login, name FROM User") == ["eve|Eve"])
        let why = try larder.command("why", "User", "7").output
        #expect(why.contains("larder seed") && why.contains("No document shows it"), "\(why)")
        let member = try #require(
            (try larder.admin("GET", "/objects/User/7/why?member=name").object["objects"] as? [[String: Any]])?.first
        )
        let from = (member["members"] as? [[String: Any]])?.first?["from"] as? [String: Any]
        #expect(from?["seeded"] as? Bool == true && from?["url"] == nil)
        #expect(origin.count() == 0)
        // It survives a restart, and the same again is nothing new.
        try larder.restart()
        #expect(try seed(larder, "User", text).output == "seeded 1 value: 0 created, 0 changed, 1 value unchanged\n")
    }

    @Test func `stored responses and streams show seeded values until the upstream sends a later response`() throws {
        let (origin, larder) = try Self.daemon(upstream: ["lag: 1h"])
        _ = try larder.get("/users")
        let follower = try Follower(larder, "/users")
        #expect(follower.wait(for: Self.list))
        #expect(try seed(larder, "User", #"{"id":1,"name":"new"}"#).output.contains("0 created, 1 changed"))
        let shown = Self.list.replacing(#""ada","name":"old""#, with: #""ada","name":"new""#)
        let hit = try larder.get("/users")
        #expect(hit.isHit && hit.cacheStatus.hasSuffix("detail=composed") && hit.text == shown)
        #expect(follower.wait(for: shown))
        #expect(try larder.get("/users", ["Larder-View": "raw"]).text == Self.list)
        // The list may lag by an hour, and yet it is later.
        let asked = origin.count()
        #expect(try larder.get("/users", ["Cache-Control": "no-cache"]).text == Self.list)
        let later = try larder.get("/users")
        #expect(later.isHit && later.text == Self.list && !later.cacheStatus.contains("doubt"))
        #expect(origin.count() == asked + 1)
    }

    @Test func `a response that is under way while objects are seeded replaces the seeded values`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json(Self.list, Fresh.hour).after(gate) }
        let larder = try Larder(config: Configs.blog(origin))
        let fetch = Background { try larder.get("/users").text }
        #expect(origin.waitForRequests(1))
        #expect(try seed(larder, "User", #"{"id":1,"login":"ada","name":"seeded"}"#).end == .exited(0))
        gate.open()
        #expect(try fetch.value() == Self.list)
        let hit = try larder.get("/users")
        #expect(hit.isHit && hit.text == Self.list)
        #expect(try larder.command("objects", "User", "1").output.contains(#""name": "old""#))
    }

    @Test func `a seed with an older stamp is ignored, and one from the future keeps no response away`() throws {
        let note = Monitor(#"{"id":1,"text":"a","updated_at":"2024-05-01T00:00:00Z"}"#)
        let origin = try Origin { _ in .json(note.current, Fresh.never) }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/notes/1")
        let older = try seed(larder, "Note", #"{"id":1,"text":"b","updated_at":"2023-01-01T00:00:00Z"}"#)
        #expect(older.output.contains("1 value unchanged"))
        #expect(try larder.sql("SELECT text FROM Note") == ["a"])
        _ = try seed(larder, "Note", #"{"id":1,"text":"c","updated_at":"2099-01-01T00:00:00Z"}"#)
        #expect(try larder.sql("SELECT text FROM Note") == ["c"])
        note.withLock { $0 = #"{"id":1,"text":"d","updated_at":"2024-06-01T00:00:00Z"}"# }
        _ = try larder.get("/notes/1")
        #expect(try larder.sql("SELECT text FROM Note") == ["d"])
    }

    @Test func `each batch is stored whole or not at all, and a failure names the line`() throws {
        let (_, larder) = try Self.daemon()
        var lines = (1...1_200).map { #"{"id":\#($0),"login":"u\#($0)","name":"n"}"# }
        lines[1_099] = #"{"id":1100,"login":"#
        lines[1_100] = "}"
        let failed = try seed(larder, "User", lines.joined(separator: "\n"))
        #expect(failed.end == .exited(1))
        #expect(failed.errors.contains("line 1100 is not JSON: nothing from line 1001 on was stored"), "\(failed)")
        #expect(failed.errors.contains("the 1000 values before were"), "\(failed)")
        #expect(try larder.count()["objects"] as? Int == 1_000)
        lines[1_099] = #"{"id":1100}"#
        lines[1_100] = "{}"
        let more = try seed(larder, "User", lines.joined(separator: "\n"))
        #expect(more.output.hasPrefix("seeded 1199 values: 199 created, 0 changed, 1000 values unchanged"), "\(more)")
        #expect(more.output.contains("skipped 1 value:\n  line 1101: "), "\(more)")
        #expect(more.output.contains("[identity-missing]"))
        let cut = try seed(larder, "User", "[{\"id\":5000},\n{\"id\":5001}")
        #expect(cut.end == .exited(1) && cut.errors.contains("line 1 is not closed"), "\(cut)")
        #expect(try seed(larder, "User", " \n").errors.contains("no JSON value"))
        let none = try seed(larder, "User", #"[{"login":"x"},5]"#)
        #expect(none.end == .exited(1) && none.output.contains("skipped 2 values"), "\(none)")
        #expect(try larder.count()["objects"] as? Int == 1_199)
    }

    @Test func `a file has no limit, and each value that of a document`() throws {
        let (_, larder) = try Self.daemon(top: ["limits: { document: 100KiB }"])
        let padding = String(repeating: "x", count: 1_000)
        let lines = (1...2_000).map { #"{"id":\#($0),"login":"u\#($0)","pad":"\#(padding)"}"# }
        let seeded = try seed(larder, "User", lines.joined(separator: "\n"))
        #expect(seeded.output.contains("2000 created"), "\(seeded)")
        let long = #"{"id":1,"login":"\#(String(repeating: "x", count: 200_000))"}"#
        let refused = try seed(larder, "User", "{\"id\":3000}\n" + long)
        #expect(refused.end == .exited(1) && refused.errors.contains("begins in line 2 has more than 102400 bytes"))
        #expect(refused.errors.contains("nothing from line 1 on was stored"), "\(refused)")
    }

    @Test func `the standard input is read as it comes, and its lines are counted`() throws {
        let (_, larder) = try Self.daemon()
        let script = #"for i in 1 2 3; do echo "{\"id\":$i,\"login\":\"u$i\"}"; done | "$0" seed User - "$@""#
        let process = try TestProcess(
            "/bin/sh",
            [
                "-c", script, Larder.binary, "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
                larder.folder.file("larder.db"), "--json",
            ],
            environment: Larder.environment
        )
        #expect(process.waitForEnd() == .exited(0))
        #expect(
            process.output.contains(#""created":3"#) && process.output.contains(#""values":3"#),
            "\(process.output)"
        )
    }

    @Test func `a person sees the progress of what takes longer than a second`() throws {
        let (_, larder) = try Self.daemon()
        let terminal = try PseudoTerminal(columns: 100)
        let script = #"(echo '{"id":1}'; sleep 1.5; echo '{"id":2}'; sleep 1; echo '{"id":3}') | "$0" "$@""#
        let process = try terminal.start(
            [
                "/bin/sh", "-c", script, Larder.binary, "seed", "User", "-", "--admin",
                "127.0.0.1:\(larder.adminPort)", "--store", larder.folder.file("larder.db"),
            ],
            errors: true
        )
        #expect(process.waitForEnd() == .exited(0))
        #expect(terminal.waitFor("seeded 3 values"))
        #expect(terminal.text.contains("sent ") && terminal.text.contains(" B"), "\(terminal.text)")
    }

    @Test func `objects belong to the principal, the upstream and the representation that are named`() throws {
        let (origin, larder) = try Self.daemon()
        let (bob, french): (FieldLines, FieldLines) = (["Authorization": "Bearer b"], ["Accept-Language": "fr"])
        for fields in [[:], bob, french] { _ = try larder.get("/users", fields) }
        let label = try #require(try larder.sql("SELECT DISTINCT principal FROM User").first { $0 != "anonymous" })
        #expect(try seed(larder, "User", #"{"id":1,"name":"his"}"#, "--principal", label).end == .exited(0))
        #expect(try seed(larder, "User", #"{"id":1,"name":"sien"}"#, "-H", "Accept-Language: fr").end == .exited(0))
        #expect(try larder.get("/users", bob).text.contains("his"))
        #expect(try larder.get("/users", french).text.contains("sien"))
        #expect(try larder.get("/users").text == Self.list)
        #expect(origin.count() == 3)
        let refusals = [
            (["--principal", "p-00000000"], "no principal has the label p-00000000"),
            (["--principal", "bob"], "not a principal's label"),
            (["--upstream", "x"], "no upstream \"x\" has a model User"),
            (["-H", "nonsense"], "a header is"),
        ]
        for (options, words) in refusals {
            let file = try larder.folder.write("{}", to: "one.json")
            let refusal = try Larder.run(
                ["seed", "User", file, "--admin", "127.0.0.1:\(larder.adminPort)", "--store"]
                    + [larder.folder.file("larder.db")] + options
            )
            #expect(refusal.end == .exited(1) && refusal.errors.contains(words), "\(refusal)")
        }
        let wrong = try seed(larder, "Usr", "{}")
        #expect(wrong.end == .exited(1) && wrong.errors.contains("the config declares Note, Post, Tag, User"))
        #expect(wrong.errors.contains("did you mean User?"))
        #expect(try Larder.run(["seed", "User", "/no/such"]).errors.contains("/no/such"))
    }

    @Test func `a model of several upstreams needs the upstream's name`() throws {
        let origin = try Origin { _ in .json("{}") }
        let config = """
            upstreams:
              one: { url: "\(origin.url)/1", prefix: /one, models: { User: { identity: id } } }
              two: { url: "\(origin.url)/2", prefix: /two, models: { User: { identity: id } } }
            """
        let larder = try Larder(config: config)
        let refusal = try seed(larder, "User", #"{"id":1}"#)
        #expect(refusal.end == .exited(1) && refusal.errors.contains("say which (one, two)"), "\(refusal)")
        #expect(try seed(larder, "User", #"{"id":1}"#, "--upstream", "two").end == .exited(0))
        let row = (try larder.admin("GET", "/objects/User").object["objects"] as? [[String: Any]])?.first
        #expect(row?["upstream"] as? String == "two")
    }

    @Test func `objects within objects, clusters and values that do not fit are as in a response`() throws {
        let (_, larder) = try Self.daemon()
        let post = #"{"id":1,"title":"t","author":{"id":9,"login":"z"},"tags":[{"name":"a"},{"name":"b"}]}"#
        #expect(try seed(larder, "Post", post).output.contains("4 created"))
        #expect(try larder.sql("SELECT login FROM User") == ["z"])
        #expect(try larder.sql("SELECT name FROM Tag ORDER BY name") == ["a", "b"])
        // What occurs twice in one object is no observation.
        #expect(try seed(larder, "User", #"{"id":9,"login":"y","login":"x","name":"N"}"#).end == .exited(0))
        #expect(try larder.sql("SELECT login, name FROM User") == ["z|N"])
        let twice = try seed(larder, "User", #"{"id":3,"id":4}"#)
        #expect(twice.end == .exited(1) && twice.output.contains("[identity-repeated]"), "\(twice)")
        let config = """
            upstreams: { api: { url: "\(try Origin { _ in .json("{}") }.url)" } }
            models:
              Acc: { identity: id, cluster: [ { model: Org, if: { member: type, is: org } }, { model: Person } ] }
              Org: { base: Acc, properties: { plan: plan } }
              Person: { base: Acc, properties: { bio: { from: bio, type: string } } }
            """
        let other = try Larder(config: config)
        let lines = "{\"id\":1,\"type\":\"org\",\"plan\":\"p\"}\n{\"id\":2,\"bio\":5}\n{\"id\":3,\"bio\":\"b\"}"
        let seeded = try seed(other, "Acc", lines)
        #expect(seeded.output.contains("3 created") && seeded.output.contains("line 2 at /bio: "), "\(seeded)")
        #expect(try other.sql("SELECT plan FROM Org") == ["p"])
        #expect(try other.sql("SELECT id FROM Person ORDER BY id") == ["2", "3"])
    }

    @Test func `a replay takes no objects`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in _ = try larder.get("/x") }
        let larder = try Larder.replaying(recording.path)
        let refusal = try larder.admin("POST", "/objects/User", body: "{}")
        #expect(refusal.status == 409 && refusal.text.contains("a replay serves what was recorded"), "\(refusal.text)")
    }
}
