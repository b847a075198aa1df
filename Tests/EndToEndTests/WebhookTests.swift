import CCrypto
import Foundation
import TestSupport
import Testing

/// What an upstream sends on its own when an object has changed.
@Suite(.scripts) struct WebhookTests {
    private static let path = "/.well-known/larder/webhooks/notes"
    private static let secret = "It's a Secret to Everybody"
    private static let (ada, bob): (FieldLines, FieldLines) = (
        ["Authorization": "Bearer ada"], ["Authorization": "Bearer bob"]
    )

    private static func note(_ text: String, at day: Int) -> String {
        #"{"id":1,"text":"\#(text)","updated_at":"2026-11-0\#(day)T00:00:00Z"}"#
    }

    /// An origin with one note, which all may see, and a daemon with a webhook for it.
    private struct Notes {
        let note = Monitor(WebhookTests.note("one", at: 1))
        let origin: Origin
        let larder: Larder

        init(signature: String = "github", _ keys: [String] = [], upstream: [String] = [], top: [String] = []) throws {
            let note = note
            origin = try Origin { request in
                switch request.path {
                case "/notes": .json("[\(note.current)]", Fresh.hour)
                case "/users": .json(#"[{"id":1,"login":"ada","name":"Ada"}]"#, Fresh.hour)
                default: .json(note.current, Fresh.hour)
                }
            }
            let folder = TemporaryFolder()
            let file = try folder.write(WebhookTests.secret + "\n", to: "secret")
            let hook = ["secret: \(file)", "objects: { note: Note }"] + keys
            let config = Configs.blog(
                origin,
                upstream: [
                    "webhook_signature: \(signature)", "webhooks: { notes: { \(hook.joined(separator: ", ")) } }",
                ] + upstream,
                top: top + ["log: { level: debug }"]
            )
            larder = try Larder(config: config, store: folder)
        }

        /// Fills the cache for some principals.
        func fill(_ principals: [FieldLines] = [WebhookTests.ada]) throws {
            for fields in principals {
                for path in ["/notes", "/notes/1", "/users"] { _ = try larder.get(path, fields) }
            }
            #expect(try larder.waitForDocuments(3 * principals.count))
            for fields in principals {
                for path in ["/notes", "/notes/1", "/users"] { #expect(try larder.get(path, fields).isHit) }
            }
        }

        /// Sends a delivery as GitHub does.
        func deliver(_ body: String, id: String = "1", event: String = "note", _ more: FieldLines = [:]) throws
            -> Response
        {
            let fields: FieldLines = [
                "Content-Type": "application/json", "X-GitHub-Event": event, "X-GitHub-Delivery": id,
                "X-Hub-Signature-256": "sha256=\(WebhookTests.code(body))",
            ]
            return try larder.request("POST", WebhookTests.path, fields + more, body: body)
        }

        func payload() -> String { #"{"action":"edited","note":\#(note.current),"sender":{"id":9}}"# }

        /// How many deliveries were taken, and how many of them had come before.
        func taken() -> (all: Int, repeated: Int) {
            let lines = larder.log.split(separator: "\n").filter { $0.contains("a delivery was committed") }
            return (lines.count, lines.count { $0.contains("repeated=true") })
        }
    }

    /// The HMAC-SHA-256 of a text in hexadecimal digits.
    private static func code(_ text: String, key: String = secret) -> String {
        var (code, count) = ([UInt8](repeating: 0, count: 32), UInt32(0))
        let (key, message) = (Array(key.utf8), Array(text.utf8))
        _ = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &code, &count)
        return code.map { String(Int($0) + 256, radix: 16).dropFirst() }.joined()
    }

    @Test func `a delivery invalidates what shows its object, for every principal, and nothing else`() throws {
        let notes = try Notes()
        try notes.fill([Self.ada, Self.bob])
        notes.note.withLock { $0 = Self.note("two", at: 2) }
        let taken = try notes.deliver(notes.payload())
        #expect(taken.status == 204 && taken.body.isEmpty)
        for fields in [Self.ada, Self.bob] {
            for path in ["/notes", "/notes/1"] {
                let response = try notes.larder.get(path, fields)
                #expect(!response.isHit && response.text.contains("two"), "\(path)")
                #expect(try eventually { try notes.larder.get(path, fields).isHit })
            }
            #expect(try notes.larder.get("/users", fields).isHit)
        }
        let why = try notes.larder.command("why", "Note", "1").output
        #expect(why.contains("two"), "\(why)")
        let requests = try notes.larder.admin("GET", "/requests").text
        #expect(requests.contains(Self.path), "\(requests)")
    }

    @Test func `a repeated delivery does nothing, not even after a crash`() throws {
        let notes = try Notes()
        try notes.fill()
        let asked = notes.origin.count("/notes/1")
        let first = notes.payload()
        #expect(try notes.deliver(first).status == 204)
        // The response is the sender's proof: it is on disk.
        notes.larder.kill()
        try notes.larder.start()
        #expect(try !notes.larder.get("/notes/1", Self.ada).isHit)
        #expect(notes.origin.count("/notes/1") == asked + 1)
        #expect(try eventually { try notes.larder.get("/notes/1", Self.ada).isHit })
        for _ in 0..<3 { #expect(try notes.deliver(first).status == 204) }
        #expect(try notes.larder.get("/notes/1", Self.ada).isHit)
        #expect(eventually { notes.taken() == (3, 3) })
        #expect(try notes.deliver(first, id: "2").status == 204)
        #expect(try !notes.larder.get("/notes/1", Self.ada).isHit)
    }

    @Test func `of simultaneous copies of a delivery one counts`() throws {
        let notes = try Notes()
        try notes.fill()
        let payload = notes.payload()
        let statuses = try together(8) { _ in try notes.deliver(payload).status }
        #expect(statuses.allSatisfy { $0 == 204 })
        #expect(eventually { notes.taken() == (8, 7) })
    }

    @Test func `a response that was requested before a delivery does not count as newer`() throws {
        let notes = try Notes()
        try notes.fill()
        let (note, gate) = (notes.note, Gate())
        let former = note.current
        notes.origin.behave { request in
            request.path == "/slow" || request.path == "/notes/1" && request["Cache-Control"] != nil
                ? OriginResponse.json(former, Fresh.hour).after(gate) : .json(note.current, Fresh.hour)
        }
        let asked = notes.origin.count("/notes/1")
        let fetch = Background { try notes.larder.get("/notes/1", Self.ada + ["Cache-Control": "no-cache"]).text }
        #expect(notes.origin.waitForRequests(asked + 1, "/notes/1"))
        note.withLock { $0 = Self.note("two", at: 2) }
        #expect(try notes.deliver(notes.payload()).status == 204)
        // It joins no fetch from before.
        #expect(try notes.larder.get("/notes/1", Self.ada).text.contains("two"))
        gate.open()
        #expect(try fetch.value().contains("one"))
        #expect(try eventually { try notes.larder.get("/notes/1", Self.ada).isHit })
        #expect(try notes.larder.get("/notes/1", Self.ada).text.contains("two"))
    }

    @Test func `a response under way is older than a delivery, even if it shows the object first`() throws {
        let notes = try Notes()
        let (note, gate) = (notes.note, Gate())
        let former = note.current
        notes.origin.behave { request in
            request.number == 0 ? OriginResponse.json(former, Fresh.hour).after(gate) : .json(note.current, Fresh.hour)
        }
        let fetch = Background { try notes.larder.get("/notes/1", Self.ada).text }
        #expect(notes.origin.waitForRequests(1))
        note.withLock { $0 = Self.note("two", at: 2) }
        #expect(try notes.deliver(notes.payload()).status == 204)
        gate.open()
        #expect(try fetch.value().contains("one"))
        #expect(try notes.larder.get("/notes/1", Self.ada).text.contains("two"))
    }

    // MARK: Observations

    /// The text of the note as SQL shows it for a principal.
    private static func known(_ notes: Notes) throws -> [String] {
        try notes.larder.sql("SELECT text FROM Note ORDER BY principal")
    }

    @Test func `for the configured principal a payload with a later time changes the known values`() throws {
        var notes = try Notes()
        try notes.fill([Self.ada])
        let label = try #require(try notes.larder.sql("SELECT principal FROM Note").first)
        notes = try Notes(["principal: \(label)"])
        #expect(label.hasPrefix("p-"))
        // Labels are made with a key of each store.
        try notes.fill([Self.ada, Self.bob])
        let own = try #require(
            try notes.larder.sql("SELECT principal FROM Note").first
        )
        let config = String(decoding: notes.larder.folder.bytes("larder.yaml"), as: UTF8.self)
        try notes.larder.folder.write(config.replacing(label, with: own), to: "larder.yaml")
        #expect(try notes.larder.admin("POST", "/reload").status == 200)
        let newer = #"{"note":\#(Self.note("three", at: 3))}"#
        #expect(try notes.deliver(newer, id: "3").status == 204)
        #expect(try Set(Self.known(notes)) == ["one", "three"])
        let why = try notes.larder.command("why", "Note", "1").output
        #expect(why.contains(Self.path), "\(why)")
        // Older ones, and those without a time, change nothing.
        #expect(try notes.deliver(#"{"note":\#(Self.note("two", at: 2))}"#, id: "2").status == 204)
        #expect(try notes.deliver(#"{"note":{"id":1,"text":"none"}}"#, id: "none").status == 204)
        #expect(try notes.deliver(#"{"action":"deleted","note":\#(Self.note("four", at: 4))}"#, id: "4").status == 204)
        #expect(try Set(Self.known(notes)) == ["one", "three"])
        // An object that nobody has requested does not begin with a delivery.
        let other = #"{"note":{"id":2,"text":"two","updated_at":"2026-11-02T00:00:00Z"}}"#
        #expect(try notes.deliver(other, id: "5").status == 204)
        #expect(try notes.larder.sql("SELECT count(*) FROM Note") == ["2"])
        // What the upstream says afterwards counts.
        #expect(try notes.larder.get("/notes/1", Self.ada).text.contains("one"))
    }

    @Test func `after a deletion's delivery the object is unknown, and fetched again`() throws {
        let notes = try Notes()
        try notes.fill()
        #expect(try notes.deliver(#"{"action":"deleted","note":\#(notes.note.current)}"#).status == 204)
        let objects = try notes.larder.command("objects", "Note", "1").output
        #expect(!objects.contains("deleted"), "\(objects)")
        notes.origin.always(.json(#"{"message":"Not Found"}"#, status: 404))
        #expect(try notes.larder.get("/notes/1", Self.ada).status == 404)
        #expect(try notes.larder.get("/notes", Self.ada).status == 404)
    }

    // MARK: Refusals

    @Test func `a delivery without a valid signature gets 401, invalidates nothing, and has one line in the log`()
        throws
    {
        let notes = try Notes()
        try notes.fill()
        let body = notes.payload()
        let code = Self.code(body)
        let signatures: [FieldLines] = [
            [:], ["X-Hub-Signature-256": ""], ["X-Hub-Signature-256": code], ["X-Hub-Signature-256": "sha256="],
            ["X-Hub-Signature-256": "sha256=\(code.dropLast())"], ["X-Hub-Signature-256": "sha256=\(code)0"],
            ["X-Hub-Signature-256": "sha256=\(String(repeating: "z", count: 64))"],
            ["X-Hub-Signature-256": "sha256=\(Self.code(body, key: "guessed"))"],
            ["X-Hub-Signature-256": "sha256=\(Self.code(body + " "))"], ["X-Hub-Signature": "sha1=\(code.prefix(40))"],
            ["X-Hub-Signature-256": "sha256=\(code)", "x-hub-signature-256": "sha256=\(code)"],
            ["X-Gitlab-Token": Self.secret, "Authorization": "Bearer ada"],
        ]
        for (number, signature) in signatures.enumerated() {
            let fields: FieldLines = ["Content-Type": "application/json", "X-GitHub-Delivery": "\(number)"]
            let refused = try notes.larder.request("POST", Self.path, fields + signature, body: body)
            #expect(refused.status == 401 && refused.isProblem && refused["WWW-Authenticate"] != nil, "\(signature)")
        }
        #expect(try notes.larder.get("/notes/1", Self.ada).isHit)
        #expect(notes.larder.log.components(separatedBy: "a delivery was refused").count == 2)
        #expect(notes.larder.log.contains("X-Hub-Signature-256 is missing"))
        #expect(!notes.larder.log.contains(Self.secret) && !notes.larder.log.contains(code))
        // No refused delivery counts as taken.
        #expect(try notes.deliver(body, id: "0").status == 204)
        #expect(try !notes.larder.get("/notes/1", Self.ada).isHit)
    }

    @Test(arguments: [
        (#"{"action":"edited""#, 400), ("", 400), ("[1]", 204),
        (#"{"zen":"Keep it logically awesome.","hook_id":1}"#, 204),
        (#"{"note":null}"#, 204), (#"{"note":{"text":"no id"}}"#, 400), (#"{"note":7}"#, 400),
        (#"{"note":{"id":{},"text":"x"}}"#, 400), (#"{"note":{"id":1,"id":1}}"#, 400),
        (String(repeating: "[", count: 5_000) + String(repeating: "]", count: 5_000), 400),
    ]) func `a payload without a usable object invalidates nothing, and a problem says what is wrong`(
        body: String,
        status: Int
    ) throws {
        let notes = try Notes()
        try notes.fill()
        let response = try notes.deliver(body, event: status == 204 ? "ping" : "note")
        #expect(response.status == status && (status == 204 || response.isProblem), "\(response.text)")
        #expect(try notes.larder.get("/notes/1", Self.ada).isHit)
    }

    @Test func `a delivery of an event that the config does not list invalidates nothing`() throws {
        let notes = try Notes(["events: [\"note*\"]"])
        try notes.fill()
        #expect(try notes.deliver(notes.payload(), id: "1", event: "star").status == 204)
        #expect(try notes.larder.get("/notes/1", Self.ada).isHit)
        #expect(try notes.deliver(notes.payload(), id: "1", event: "note_comment").status == 204)
        #expect(try !notes.larder.get("/notes/1", Self.ada).isHit)
    }

    @Test func `a delivery of 25 MB is accepted, and a larger one gets 413`() throws {
        let notes = try Notes()
        try notes.fill()
        func body(_ count: Int) -> String {
            let start = #"{"note":\#(notes.note.current),"filler":""#
            return start + String(repeating: "x", count: count - start.utf8.count - 2) + "\"}"
        }
        #expect(try notes.deliver(body(25 << 20)).status == 204)
        #expect(try !notes.larder.get("/notes/1", Self.ada).isHit)
        let large = body(27 << 20)
        let refused = try notes.deliver(large, id: "2")
        #expect(refused.status == 413 && refused.isProblem)
        let code = Self.code(large)
        let client = try notes.larder.client()
        try client.send(
            "POST \(Self.path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "X-Hub-Signature-256: sha256=\(code)\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        let chunk = OriginResponse.framed(Array(repeating: UInt8(ascii: "x"), count: 1 << 20))
        // It may stop reading before everything is sent.
        for _ in 0..<27 { guard (try? client.send(chunk)) != nil else { break } }
        #expect(try client.response(to: "POST").status == 413)
    }

    @Test func `a delivery must be a POST of JSON to a webhook of this address and host`() throws {
        let notes = try Notes(upstream: ["hosts: [hooks.example.org]"])
        let body = notes.payload()
        for type in ["application/x-www-form-urlencoded", "text/plain"] {
            let fields: FieldLines = ["Content-Type": type, "X-Hub-Signature-256": "sha256=\(Self.code(body))"]
            #expect(try notes.larder.request("POST", Self.path, fields, body: body).status == 415)
        }
        for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
            let response = try notes.larder.request(method, Self.path)
            #expect(response.status == 405 && response["Allow"] == "POST", "\(method)")
        }
        for name in ["other", "", "notes/", "notes/more", "NOTES", "..%2Fnotes"] {
            let unknown = try notes.larder.request("POST", "/.well-known/larder/webhooks/\(name)", body: body)
            #expect(unknown.status == 404 && unknown.isProblem, "\(name)")
        }
        #expect(try notes.deliver(body, ["Host": "elsewhere.example"]).status == 421)
        #expect(try notes.deliver(body, ["Host": "hooks.example.org"]).status == 204)
        #expect(try notes.deliver(body, id: "2", ["Origin": "https://evil.example"]).status == 403)
        #expect(notes.origin.requests.allSatisfy { !$0.target.contains("webhooks/n") })
    }

    @Test func `while the disk is full a delivery gets 503, and counts when it is repeated`() throws {
        let disk = UncommittedWriteTests.Disk()
        let notes = try Notes()
        disk.isUsed(by: notes.larder)
        try notes.fill()
        try disk.fill()
        let refused = try notes.deliver(notes.payload())
        #expect(refused.status == 503 && refused.isProblem)
        #expect(notes.larder.log.contains("a delivery could not be taken"))
        try disk.makeRoom()
        #expect(try eventually { try notes.deliver(notes.payload()).status == 204 })
        #expect(try !notes.larder.get("/notes/1", Self.ada).isHit)
        #expect(eventually { notes.taken() == (1, 0) })
    }

    // MARK: Secrets

    @Test func `a secret is read again when its file changes, and two count while one replaces the other`() throws {
        let notes = try Notes()
        func status(_ key: String, _ id: String) throws -> Int {
            let body = notes.payload()
            let fields: FieldLines = [
                "Content-Type": "application/json", "X-GitHub-Delivery": id,
                "X-Hub-Signature-256": "sha256=\(Self.code(body, key: key))",
            ]
            return try notes.larder.request("POST", Self.path, fields, body: body).status
        }
        #expect(try status("next", "1") == 401)
        try notes.larder.folder.write("\(Self.secret)\r\nnext\n", to: "secret")
        #expect(try eventually { try status("next", "2") == 204 })
        #expect(try status(Self.secret, "3") == 204)
        try notes.larder.folder.write("next", to: "secret")
        #expect(try eventually { try status(Self.secret, "4") == 401 })
        #expect(try status("next", "5") == 204)
        // What cannot be used changes nothing.
        try notes.larder.folder.write("\n\n", to: "secret")
        #expect(notes.larder.process.waitForErrors { $0.contains("the secret of a webhook cannot be read again") })
        #expect(try status("next", "6") == 204)
        #expect(try status("", "7") == 401)
        #expect(try notes.larder.command("status").output.contains("the secret of webhook notes is the former one"))
        try FileManager.default.removeItem(atPath: notes.larder.folder.file("secret"))
        try notes.larder.folder.write("third", to: "secret")
        #expect(try eventually { try status("third", "8") == 204 })
        #expect(try !notes.larder.command("status").output.contains("the secret of webhook"))
    }

    // MARK: Other services

    @Test func `GitLab's token is the secret itself, and its idempotency key names the delivery`() throws {
        let notes = try Notes(signature: "gitlab")
        try notes.fill()
        func status(_ token: String, _ key: String) throws -> Int {
            let fields: FieldLines = [
                "Content-Type": "application/json", "X-Gitlab-Token": token, "Idempotency-Key": key,
            ]
            return try notes.larder.request("POST", Self.path, fields, body: notes.payload()).status
        }
        for token in ["", "It's", Self.secret + " more", Self.secret.lowercased()] {
            #expect(try status(token, "1") == 401)
        }
        #expect(try notes.larder.get("/notes/1", Self.ada).isHit)
        for key in ["1", "1", "2"] { #expect(try status(Self.secret, key) == 204) }
        #expect(eventually { notes.taken() == (3, 1) })
    }

    @Test func `Stripe's signature is refused if its time is not of now`() throws {
        let notes = try Notes(signature: "stripe")
        try notes.fill()
        func status(_ time: Int, id: String = "evt_1", _ form: (Int, String) -> String = { "t=\($0),v1=\($1)" }) throws
            -> Int
        {
            let body = #"{"id":"\#(id)","type":"note.updated","note":\#(notes.note.current)}"#
            let fields: FieldLines = [
                "Content-Type": "application/json; charset=utf-8",
                "Stripe-Signature": form(time, Self.code("\(time).\(body)")),
            ]
            return try notes.larder.request("POST", Self.path, fields, body: body).status
        }
        let now = Int(Date().timeIntervalSince1970)
        for time in [now - 3600, now + 3600, 0, -1, .max, .min] { #expect(try status(time) == 401, "\(time)") }
        #expect(try status(now) { time, code in "t=\(time + 1),v1=\(code)" } == 401)
        #expect(try status(now) { time, code in "t=\(time),v0=\(code)" } == 401)
        #expect(try status(now) { time, code in "t=\(time - 3600),t=\(time),v1=\(code)" } == 401)
        #expect(try status(now) { _, code in "v1=\(code)" } == 401)
        #expect(try notes.larder.get("/notes/1", Self.ada).isHit)
        #expect(try status(now) { time, code in "t=\(time),v1=\(Self.code("other")),v1=\(code),v0=x" } == 204)
        // Each attempt has a new time; the event keeps its id.
        #expect(try status(now - 100) == 204)
        #expect(try status(now, id: "evt_2") == 204)
        #expect(eventually { notes.taken() == (3, 1) })
        #expect(try !notes.larder.get("/notes/1", Self.ada).isHit)
    }
}
