import Foundation
import TestSupport
import Testing

/// `larder replay`: the sequence decides, and nothing is asked of anybody.
@Suite(.scripts) struct ReplayTests {
    /// A recording of a list that grows by one with each POST.
    private static func growing() throws -> RecordedFolder {
        let count = Monitor(0)
        let origin = try Origin { request in
            if request.method == "POST" { count.withLock { $0 += 1 } }
            return .json("[\(count.current)]", Fresh.hour + ["Date": "Mon, 05 Jan 2026 10:00:00 GMT", "ETag": #""a""#])
        }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for _ in 0..<2 {
                _ = try larder.get("/list")
                _ = try larder.request(
                    "POST",
                    "/list",
                    ["Content-Type": "application/json"],
                    body: #"{"a": 1, "b": 2}"#
                )
            }
            _ = try larder.get("/list")
        }
        return recording
    }

    @Test func `a repeated request gets its responses in order, in each session, and the last one repeats`() throws {
        let recording = try Self.growing()
        let larder = try Larder.replaying(recording.path)
        func list(_ fields: FieldLines = [:]) throws -> String { try larder.get("/list", fields).text }
        #expect(try [list(), list(), list(), list()] == ["[0]", "[1]", "[2]", "[2]"])
        #expect(try [list(["Larder-Session": "one"]), list(["Larder-Session": "two"])] == ["[0]", "[0]"])
        #expect(try larder.command("status").output.contains("- responses come from the recording \(recording.path)\n"))
        #expect(try larder.admin("POST", "/replay/reset").status == 200)
        // None is ready any more.
        #expect(
            try [list(), list(), list(["Larder-Session": "one"]), list(), list()] == [
                "[0]", "[1]", "[0]", "[2]", "[2]",
            ]
        )
        #expect(try larder.get("/list", ["If-None-Match": #""a""#]).status == 304)
        #expect(try larder.get("/list", ["Accept": "text/html"]).status == 504)
        #expect(try larder.get("/list")["Date"] == "Mon, 05 Jan 2026 10:00:00 GMT")
    }

    @Test func `a strict replay gives each response once`() throws {
        let recording = try Self.growing()
        let larder = try Larder.replaying(recording.path, "--strict")
        for _ in 0..<2 {
            for _ in 0..<3 { #expect(try larder.get("/list").status == 200) }
            #expect(try larder.get("/list").status == 504)
            #expect(try larder.admin("POST", "/replay/reset").status == 200)
        }
        for _ in 0..<3 { #expect(try larder.get("/list").status == 200) }
        let last = try larder.get("/list")
        #expect(last.status == 504)
        #expect(last.object["type"] as? String == "urn:larder:recording-exhausted")
    }

    @Test func `JSON bodies are compared by value, and equivalent queries are equal`() throws {
        let origin = try Origin { .json("\"\($0.target)\"") }
        let recording = RecordedFolder()
        let type: FieldLines = ["Content-Type": "application/json"]
        try recording.record(origin) { (larder: Larder) throws -> Void in
            _ = try larder.request("POST", "/a", type, body: #"{"a": 1.0, "b": "é"}"#)
            _ = try larder.get("/q?b=2&a=x%20y")
        }
        let replay = try Larder.replaying(recording.path)
        #expect(try replay.request("POST", "/a", type, body: #"{"b":"\u00e9","a":1}"#).status == 200)
        #expect(try replay.request("POST", "/a", type, body: #"{"b":"e","a":1}"#).status == 504)
        #expect(try replay.get("/q?a=x+y&b=2").status == 200)
        #expect(try replay.get("/q?a=x+y&b=3").status == 504)
        #expect(try replay.get("/q?a=x+y&b=2", ["Accept": "text/html"]).status == 504)
    }

    @Test(
        arguments: [
            #"{"x":"SECRET"}"#, #"{"SECRET":1}"#, "plain SECRET text", "SECRET-world", "x=SECRET&y=1",
            "{\"a\":\"SECRET\"}\n{\"b\":\"SECRET\"}\n", "<a t=\"SECRET\">SECRET</a>", #"{"x":"BASE64"}"#,
            #"{"x":"USER64"}"#,
            #"{"pem":"-----BEGIN PRIVATE KEY-----\nMIISECRET\n-----END PRIVATE KEY-----\n"}"#,
        ]
    )
    func `a body that repeats a credential matches with any credential, and no other body does`(_ body: String) throws {
        let origin = try Origin { .text("\($0.body.count)") }
        let recording = RecordedFolder()
        func send(_ larder: Larder, _ secret: String, after: String = "") throws -> Int {
            let text = body.replacing("SECRET", with: secret + after)
                .replacing("BASE64", with: Data((secret + after).utf8).base64EncodedString())
                .replacing("USER64", with: Data("user:\(secret)\(after)".utf8).base64EncodedString())
            let form = "application/x-www-form-urlencoded"
            let type = body.hasPrefix("{") ? "application/json" : body.hasPrefix("x=") ? form : "text/plain"
            return try larder.request(
                "POST",
                "/a",
                ["Content-Type": type, "Authorization": "Bearer \(secret)"],
                body: text
            ).status
        }
        try recording.record(origin) { (larder: Larder) throws -> Void in
            #expect(try send(larder, "s3cr3tT0kenAbcdef123456") == 200)
        }
        let replay = try Larder.replaying(recording.path)
        #expect(try send(replay, "s3cr3tT0kenAbcdef123456") == 200)
        #expect(try send(replay, "An0therT0kenGhijkl789012") == 200)
        // Another key is as good as the recorded one, and in Base64 what looks like a number belongs to the placeholder.
        if !body.contains("PRIVATE KEY") {
            if !body.contains("64") { #expect(try send(replay, "s3cr3tT0kenAbcdef123456", after: "-1") == 504) }
            #expect(try send(replay, "s3cr3tT0kenAbcdef123456", after: "7") == 504)
        }
    }

    @Test func `coded bodies of requests are compared by what they contain`() throws {
        let origin = try Origin { .text("\($0.body.count)") }
        let recording = RecordedFolder()
        let text = #"{"a": 1, "b": "\#(String(repeating: "x", count: 100))"}"#
        let fields: FieldLines = ["Content-Type": "application/json"]
        func send(_ larder: Larder, _ path: String, _ body: [UInt8], _ coding: String? = nil) throws -> Int {
            let coded = coding.map { fields + ["Content-Encoding": $0] } ?? fields
            let client = try larder.client()
            try client.send(
                Client.message("POST", path, coded + ["Connection": "close"], body: body, host: "localhost")
            )
            return try client.response(to: "POST").status
        }
        try recording.record(origin) { (larder: Larder) throws -> Void in
            _ = try send(larder, "/coded", gzipStored(Array(text.utf8)), "gzip")
            _ = try send(larder, "/plain", Array(text.utf8))
        }
        let replay = try Larder.replaying(recording.path)
        let other = #"{"b":"\#(String(repeating: "x", count: 100))","a":1.0}"#
        for path in ["/coded", "/plain"] {
            #expect(try send(replay, path, Array(text.utf8)) == 200, "\(path)")
            #expect(try send(replay, path, gzipStored(Array(other.utf8)), "gzip") == 200, "\(path)")
            #expect(try send(replay, path, gzipStored(Array("{}".utf8)), "gzip") == 504, "\(path)")
        }
    }

    @Test func `a recorded delay is kept, unless the replay is to have none`() throws {
        let recording = try Self.growing()
        func delay(_ milliseconds: Int) throws {
            let lines = recording.lines.map {
                $0.replacing(/("delay":[0-9]+,)?"status":/, with: #""delay":\#(milliseconds),"status":"#)
            }
            try recording.write(lines.joined(separator: "\n") + "\n", to: "exchanges.jsonl")
        }
        try delay(300)
        let larder = try Larder.replaying(recording.path)
        // The last one comes a second time: it is not ready in memory, either.
        let time = try ContinuousClock().measure { for _ in 0..<4 { _ = try larder.get("/list") } }
        #expect(time >= .milliseconds(1200))
        try delay(3_600_000)
        #expect(try Larder.replaying(recording.path, "--no-delays").get("/list").text == "[0]")
    }

    @Test func `large uploads are compared by their bytes, except the boundary`() throws {
        let origin = try Origin { .text("\($0.body.count)") }
        let recording = RecordedFolder()
        let content = String(repeating: "0123456789abcdef", count: 600_000)
        func upload(_ larder: Larder, _ boundary: String, _ end: String) throws -> Response {
            try larder.request(
                "POST",
                "/files",
                ["Content-Type": "multipart/form-data; boundary=\(boundary)"],
                body: "--\(boundary)\r\n\r\n\(content)\(end)\r\n--\(boundary)--\r\n"
            )
        }
        try recording.record(origin) { _ = try upload($0, "aaaa", "x") }
        let replay = try Larder.replaying(recording.path)
        #expect(try upload(replay, "bbbbbb", "x").status == 200)
        #expect(try upload(replay, "aaaa", "y").status == 504)
    }

    @Test func `a route says what a replay ignores and compares`() throws {
        let origin = try Origin { .json("\"\($0["X-Kind"] ?? "")\"") }
        let config = """
            upstreams: { api: { url: \(origin.url) } }
            routes:
              - path: "**"
                match: { query: { ignore: ["t*"] }, headers: [X-Kind], body: { ignore: [/nonce] } }
            """
        let recording = RecordedFolder()
        let type: FieldLines = ["Content-Type": "application/json"]
        try recording.record(origin, config: config) { (larder: Larder) throws -> Void in
            _ = try larder.request("POST", "/a?t1=1", type + ["X-Kind": "x"], body: #"{"nonce":1,"a":1}"#)
        }
        let replay = try Larder.replaying(recording.path)
        func ask(_ kind: String, _ body: String) throws -> Int {
            try replay.request("POST", "/a?time=9", type + ["X-Kind": kind], body: body).status
        }
        #expect(try ask("x", #"{"a":1,"nonce":2}"#) == 200)
        #expect(try ask("y", #"{"a":1,"nonce":2}"#) == 504)
        #expect(try ask("x", #"{"a":2,"nonce":1}"#) == 504)
    }

    @Test func `an unrecorded request gets 504 with the nearest requests and their differences`() throws {
        let origin = try Origin { .text($0.target) }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for target in ["/users/1", "/users/1/posts?page=1", "/users/2/posts?page=1", "/health", "/a/b/c/d"] {
                _ = try larder.get(target)
            }
        }
        let larder = try Larder.replaying(recording.path)
        let response = try larder.get("/users/1/posts?page=2")
        #expect(response.status == 504 && response.isProblem)
        let nearest = response.object["nearest"] as? [[String: Any]] ?? []
        #expect(nearest.count == 3)
        #expect(nearest.first?["request"] as? String == "GET /users/1/posts?page=1")
        #expect(nearest.first?["differences"] as? [String] == [#"query page: recorded "1", asked "2""#])
        // What most clients print has it in one line.
        let detail = response.object["detail"] as? String ?? ""
        #expect(detail.contains(#"The nearest is GET /users/1/posts?page=1; query page: recorded "1", asked "2"."#))
        #expect(!detail.contains("\n"), "\(detail)")
        #expect(eventually { larder.log.contains("nearest: GET /users/1/posts?page=1") })
        #expect(origin.count() == 5)
    }

    @Test func `in a replay the n-th credential matches the n-th recorded one, and its absence is matched, too`() throws
    {
        let origin = try Origin { .text($0["Authorization"].map { String($0.suffix(3)) } ?? "none") }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for name in ["ada", "bob"] { _ = try larder.get("/me", ["Authorization": "Bearer token-of-\(name)"]) }
            _ = try larder.get("/me")
        }
        let larder = try Larder.replaying(recording.path)
        #expect(try larder.get("/me").text == "none")
        #expect(try larder.get("/me", ["Authorization": "Bearer another-one"]).text == "ada")
        #expect(try larder.get("/me", ["Authorization": "Bearer and-a-second"]).text == "bob")
        #expect(try larder.get("/me", ["Authorization": "Bearer another-one"]).text == "ada")
        #expect(try larder.get("/me", ["Authorization": "Bearer a-third"]).status == 504)
    }

    @Test func `a session gets its own exchanges first, then those of no session`() throws {
        let count = Monitor(0)
        let origin = try Origin { _ in .text("\(count.withLock { $0 += 1; return $0 })") }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for session in ["a", "a", "b"] { _ = try larder.get("/n", ["Larder-Session": session]) }
            _ = try larder.get("/n")
            for session in ["a", "b"] { _ = try larder.get("/own", ["Larder-Session": session]) }
        }
        #expect(recording.lines.map { $0.contains(#""session":""#) } == [true, true, true, false, true, true])
        let larder = try Larder.replaying(recording.path)
        func get(_ path: String, _ session: String? = nil, times: Int) throws -> [String] {
            try (0..<times).map { _ in try larder.get(path, session.map { ["Larder-Session": $0] } ?? [:]).text }
        }
        #expect(try get("/n", "b", times: 3) == ["3", "4", "4"])
        #expect(try get("/n", times: 2) == ["4", "4"])
        #expect(try get("/n", "a", times: 4) == ["1", "2", "4", "4"])
        #expect(try get("/n", "c", times: 1) == ["4"])
        // Nothing but sessions has this one: whoever names none gets it in the order of the recording.
        #expect(try get("/own", times: 3) == ["5", "6", "6"])
        let other = try larder.get("/own", ["Larder-Session": "c"])
        #expect(other.status == 504)
        let detail = other.object["detail"] as? String ?? ""
        #expect(detail.contains(#"The nearest is GET /own; session: recorded "a", asked "c"."#), "\(detail)")
    }

    @Test func `each process goes through a session from its beginning`() throws {
        let origin = try Origin { .text($0["Authorization"].map { String($0.suffix(3)) } ?? "none") }
        let recording = RecordedFolder()
        func me(_ larder: Larder, _ credential: String, _ process: String? = nil) throws -> Response {
            var fields: FieldLines = ["Authorization": "Bearer \(credential)", "Larder-Session": "a"]
            if let process { fields = fields + ["Larder-Process": process] }
            return try larder.get("/me", fields)
        }
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for name in ["ada", "bob"] { _ = try me(larder, "token-of-\(name)") }
        }
        #expect(origin.requests.allSatisfy { $0["Larder-Process"] == nil })
        let larder = try Larder.replaying(recording.path, "--strict")
        for process in ["gw0", "gw1", nil] {
            #expect(try me(larder, "first-of-a", process).text == "ada")
            #expect(try me(larder, "second-of-a", process).text == "bob")
            #expect(try me(larder, "first-of-a", process).status == 504)
        }
    }

    @Test func `credentials are matched separately in each session`() throws {
        let origin = try Origin { .text($0["Authorization"].map { String($0.suffix(3)) } ?? "none") }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for (name, session) in [("ada", "a"), ("bob", "b"), ("ada", "b")] {
                let fields: FieldLines = ["Authorization": "Bearer token-of-\(name)", "Larder-Session": session]
                _ = try larder.get("/me", fields)
            }
        }
        let larder = try Larder.replaying(recording.path)
        func me(_ credential: String, _ session: String) throws -> String {
            try larder.get("/me", ["Authorization": "Bearer \(credential)", "Larder-Session": session]).text
        }
        #expect(try me("first-of-b", "b") == "bob")
        #expect(try me("second-of-b", "b") == "ada")
        #expect(try me("first-of-a", "a") == "ada")
    }

    @Test func `a request without a credential gets a response recorded with one only if there is just one`() throws {
        let origin = try Origin { .text($0.path + ($0["Authorization"].map { String($0.suffix(4)) } ?? "")) }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for (path, name) in [("/me", "ada"), ("/me", "bob"), ("/bobs", "bob")] {
                _ = try larder.get(path, ["Authorization": "Bearer token-of-\(name)"])
            }
        }
        let larder = try Larder.replaying(recording.path)
        #expect(try larder.get("/bobs").text == "/bobs-bob")
        let other = try larder.get("/me")
        let detail = other.object["detail"] as? String ?? ""
        #expect(other.status == 504)
        #expect(detail.contains("The nearest is GET /me; credential: recorded number 1, asked none."), "\(detail)")
        #expect(try larder.get("/me", ["Authorization": "Bearer any"]).text == "/me-ada")
    }

    @Test func `a HEAD gets the head of the response that a GET would get, with its length`() throws {
        let recording = try Self.growing()
        let larder = try Larder.replaying(recording.path, "--strict")
        for list in ["[0]", "[1]", "[2]"] {
            let head = try larder.request("HEAD", "/list")
            #expect(head.status == 200 && head["Content-Length"] == "3" && head["ETag"] == #""a""#)
            #expect(try larder.get("/list").text == list)
        }
    }

    @Test func `conditions, ranges, views and events work on recorded responses`() throws {
        let body = #"{"id":1,"login":"ada","url":"ORIGIN/users/1"}"#
        let root = Monitor("")
        let origin = try Origin { _ in
            .json(body.replacing("ORIGIN", with: root.current), Fresh.hour + ["ETag": #""a""#])
        }
        root.withLock { $0 = origin.url }
        let config = """
            upstreams: { api: { url: \(origin.url), rewrite_links: true, hosts: ["https://api.lan"] } }
            models: { User: { identity: id, properties: { name: login, url: url } } }
            routes: [{ path: "users/{id:#}", model: User }]
            """
        let recording = RecordedFolder()
        try recording.record(origin, config: config) { (larder: Larder) throws -> Void in
            #expect(try larder.get("/users/1").object["url"] as? String == "\(larder.url)/users/1")
            let secure = try larder.get("/users/2", ["Host": "api.lan"])
            #expect(secure.object["url"] as? String == "https://api.lan/users/1")
        }
        // The links are the upstream's own in the recording, and lead to wherever it is replayed.
        #expect(recording.files["bodies/000001.indented.json"]?.contains("\(origin.url)/users/1") == true)
        #expect(!recording.files.values.contains { $0.contains("api.lan/users") })
        let larder = try Larder.replaying(recording.path)
        let plain = try larder.get("/users/1")
        #expect(plain.object["url"] as? String == "\(larder.url)/users/1")
        let tag = try #require(plain["ETag"])
        #expect(try larder.get("/users/1", ["If-None-Match": tag]).status == 304)
        let part = try larder.get("/users/1", ["Range": "bytes=0-5", "Larder-View": "raw"])
        #expect(part.status == 206 && part.text == #"{"id":"#)
        #expect(try larder.get("/users/1", ["Larder-View": "mapped"]).object["name"] as? String == "ada")
        let events = try larder.get("/users/1", ["Larder-Live": "once"])
        #expect(events.text.contains("event: fresh") && events.text.contains(#""status":200"#))
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.sql("SELECT name FROM User") == ["ada"])
    }

    @Test func `a body edited by hand is replayed`() throws {
        let recording = try Self.growing()
        try recording.write("[\r\n 41,\r\n 42]\r\n", to: "bodies/000001.indented.json")
        let edited = recording.lines.joined(separator: "\r\n") + "\r\n"
        try recording.write(edited, to: "exchanges.jsonl")
        #expect(try Larder.replaying(recording.path).get("/list").text == "[41,42]")
    }

    @Test func `bodies in any charset, with any line ends, empty and very large ones replay byte for byte`() throws {
        let bodies: [(path: String, type: String, bytes: [UInt8])] = [
            ("/latin1", "text/plain; charset=iso-8859-1", [0xE9, 0x20, 0xFC]),
            ("/utf16", "application/json; charset=utf-16", [0xFF, 0xFE, 0x7B, 0, 0x7D, 0]),
            ("/lines", "text/plain", Array("a\r\nb\nc\r".utf8)),
            ("/zeros", "application/octet-stream", [0, 0, 0]),
            ("/empty", "text/plain", []),
            ("/large", "application/octet-stream", (0..<(32 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7) }),
        ]
        let origin = try Origin { request in
            guard let body = bodies.first(where: { $0.path == request.path }) else { return .empty(404) }
            return .body(body.bytes, ["Content-Type": body.type])
        }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for body in bodies { #expect(try larder.get(body.path).body == body.bytes, "\(body.path)") }
        }
        let replay = try Larder.replaying(recording.path)
        for body in bodies {
            let response = try replay.get(body.path)
            #expect(response.body == body.bytes && response["Content-Type"] == body.type, "\(body.path)")
        }
    }

    @Test func `with --clock now recorded dates are shifted to the present`() throws {
        let origin = try Origin { _ in
            .json("{}", ["Date": "Mon, 05 Jan 2026 10:00:00 GMT", "Expires": "Mon, 05 Jan 2026 11:00:00 GMT"])
        }
        let recording = RecordedFolder()
        try recording.record(origin) { _ = try $0.get("/x") }
        try recording.write(
            recording.lines[0].replacing(/"time":"[^"]*"/, with: #""time":"2026-01-05T10:00:00.000Z""#) + "\n",
            to: "exchanges.jsonl"
        )
        #expect(try Larder.replaying(recording.path).get("/x")["Expires"] == "Mon, 05 Jan 2026 11:00:00 GMT")
        let shifted = try #require(try Larder.replaying(recording.path, "--clock", "now").get("/x")["Date"])
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
        let date = try #require(format.date(from: shifted))
        #expect(abs(date.timeIntervalSinceNow) < 600)
    }

    @Test(.enabled(if: isTraceable, "network namespaces or strace are not to be had"))
    func `a replay opens no network connection, as strace shows in a namespace without a network`() throws {
        let recording = try Self.growing()
        let trace = TemporaryFolder()
        let script = """
            ip link set lo up
            strace -f -qq -e trace=connect -o \(trace.file("trace")) \(Larder.binary) replay \(recording.path) \
              --listen 127.0.0.1:8787 --admin 127.0.0.1:8788 2>/dev/null &
            until curl -sf -o /dev/null http://127.0.0.1:8788/readyz; do sleep 0.1; done
            curl -s http://127.0.0.1:8787/list http://127.0.0.1:8787/other http://127.0.0.1:8787/list -w ' %{http_code} '
            pkill -TERM -P $! ; wait
            """
        let output = try TestProcess.run("unshare", ["-n", "sh", "-c", script])
        #expect(output.hasPrefix("[0] 200 "))
        #expect(output.contains(" 504 ") && output.hasSuffix("[1] 200 "))
        #expect(!trace.names.isEmpty)
        #expect(!trace.bytes("trace").contains("AF_INET"), "\(String(decoding: trace.bytes("trace"), as: UTF8.self))")
    }

    /// Whether a namespace and a trace can be had here.
    private static let isTraceable =
        (try? TestProcess.run("unshare", ["-n", "sh", "-c", "ip link set lo up && strace -f -o /dev/null true"]))
        != nil
}
