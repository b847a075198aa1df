import TestSupport
import Testing

/// `larder diff` of recordings in which a request occurs several times, and of an API that wants a credential.
@Suite(.scripts) struct RecordingDiffTests {
    @Test func `a recorded write affects its own session, and without a session all, and every recording is updated`()
        throws
    {
        let isLater = Monitor(false)
        let origin = try Origin { request in
            if request.method == "POST" { return .json(#"{"id":7}"#, status: 201) }
            guard isLater.current else { return .json(#"{"n":1}"#) }
            return request.path == "/orders/7" ? .json("{}", status: 404) : .json(#"{"n":2}"#)
        }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            func send(_ method: String, _ path: String, _ session: String? = nil) throws {
                let fields: FieldLines = session.map { ["Larder-Session": $0] } ?? [:]
                _ = try larder.request(method, path, fields, body: method == "POST" ? "{}" : nil)
            }
            try send("GET", "/orders", "a")
            try send("POST", "/orders", "a")
            try send("GET", "/orders", "a")
            for path in ["/orders", "/orders/7"] { try send("GET", path, "b") }
            try send("GET", "/orders")
            try send("POST", "/users")
            for session in ["a", nil] { try send("GET", "/users", session) }
        }
        isLater.withLock { $0 = true }
        let asked = origin.count()
        let result = try Larder.run(["diff", recording.path, "--update"])
        #expect(result.end == .exited(0), "\(result.errors)")
        #expect(result.output == "GET /orders\n  info: n: other values\n")
        for line in [
            "larder: not compared: GET /orders: it follows a recorded POST /orders, which is not sent again\n",
            "larder: not compared: GET /users: it follows a recorded POST /users, which is not sent again\n",
            "larder: not compared: GET /orders/7: the API does not have it, and a recorded POST /orders of another session may "
                + "have made it\n",
            "larder: 1 compared, 1 differs\n", "larder: updated 3 responses in \(recording.path)\n",
        ] {
            #expect(result.errors.contains(line), "\(line)\(result.errors)")
        }
        // Each request is sent once.
        #expect(origin.count() - asked == 2)
        let larder = try Larder.replaying(recording.path)
        func replayed(_ session: String? = nil) throws -> String {
            try larder.get("/orders", session.map { ["Larder-Session": $0] } ?? [:]).text
        }
        #expect(try replayed() == #"{"n":2}"#)
        #expect(try replayed("b") == #"{"n":2}"#)
        #expect(try [replayed("a"), replayed("a")] == [#"{"n":2}"#, #"{"n":1}"#])
        #expect(try Larder.run(["diff", recording.path]).output == "")
    }

    @Test func `only each session's last response is compared; earlier different ones stay, and are listed`() throws {
        let text = Monitor("")
        let origin = try Origin { _ in .json("{\"state\":\(text.current)}") }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for (state, session) in [(#""new""#, "a"), (#""done""#, "a"), (#""done""#, "a"), ("1", "b")] {
                text.withLock { $0 = state }
                _ = try larder.get("/job", ["Larder-Session": session])
            }
        }
        text.withLock { $0 = "2" }
        let result = try Larder.run(["diff", recording.path, "--update", "--accept-breaking"])
        #expect(
            result.output == """
                GET /job (session a)
                  breaking: state: was string, is now number
                GET /job (session b)
                  info: state: other values

                """
        )
        let words = "GET /job: these responses came before another one, and the API has only one now\n"
        #expect(result.errors.contains("larder: not compared: \(words)"), "\(result.errors)")
        // What was breaking is in the recording now.
        #expect(result.end == .exited(0), "\(result.errors)")
        let larder = try Larder.replaying(recording.path)
        let jobs = try (0..<3).map { _ in try larder.get("/job", ["Larder-Session": "a"]).text }
        #expect(jobs == [#"{"state":"new"}"#, #"{"state":2}"#, #"{"state":2}"#])
    }

    @Test func `a response that only says that a credential is missing is never taken over`() throws {
        let isOpen = Monitor(true)
        let origin = try Origin { request in
            let name = request["Authorization"]?.suffix(3)
            if isOpen.current || name == "new" && request.path == "/a" { return .json(#"{"n":1}"#) }
            return .json("{}", status: request.path == "/a" ? 401 : 403)
        }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for path in ["/a", "/b"] { _ = try larder.get(path, ["Authorization": "Bearer a-token-of-old"]) }
        }
        isOpen.withLock { $0 = false }
        let files = recording.files
        let update = ["diff", recording.path, "--update", "--accept-breaking"]
        let anonymous = try Larder.run(update)
        #expect(anonymous.end == .exited(1) && recording.files == files)
        for (path, status) in [("/a", 401), ("/b", 403)] {
            let line =
                "larder: not updated: GET \(path): its \(status) says that a credential is missing; send one with "
                + "--header NAME=@VARIABLE\n"
            #expect(anonymous.errors.contains(line), "\(anonymous.errors)")
        }
        func send(_ token: String) throws -> (end: TestProcess.End?, output: String, errors: String) {
            try Larder.run(update + ["--header", "Authorization=@TOKEN"], environment: ["TOKEN": "Bearer \(token)"])
        }
        let expired = try send("a-token-of-old")
        #expect(expired.end == .exited(1))
        #expect(expired.errors.contains("larder: not updated: GET /a: its 401 says that the credential is not valid\n"))
        // A valid credential is refused: the API has changed.
        let valid = try send("a-token-of-new")
        #expect(valid.end == .exited(0), "\(valid.errors)")
        let larder = try Larder.replaying(recording.path)
        #expect(try larder.get("/a", ["Authorization": "Bearer any"]).status == 200)
        #expect(try larder.get("/b", ["Authorization": "Bearer any"]).status == 403)
    }

    @Test func `an updated HEAD keeps the length that the API has sent`() throws {
        let isLater = Monitor(false)
        let origin = try Origin { _ in isLater.current ? .json("[1,2,3]", status: 203) : .json("[]") }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in _ = try larder.request("HEAD", "/list") }
        isLater.withLock { $0 = true }
        let result = try Larder.run(["diff", recording.path, "--update", "--accept-breaking"])
        #expect(result.end == .exited(0), "\(result.errors)")
        let head = try Larder.replaying(recording.path).request("HEAD", "/list")
        #expect(head.status == 203 && head["Content-Length"] == "7", "\(head.fields)")
    }

    @Test func `two recordings are compared session by session, whatever their order`() throws {
        let text = Monitor("")
        let origin = try Origin { _ in .json(#"{"n":\#(text.current)}"#) }
        func recorded(_ requests: [(session: String?, n: String)]) throws -> RecordedFolder {
            let recording = RecordedFolder()
            try recording.record(origin) { (larder: Larder) throws -> Void in
                for (session, n) in requests {
                    text.withLock { $0 = n }
                    _ = try larder.get("/job", session.map { ["Larder-Session": $0] } ?? [:])
                }
            }
            return recording
        }
        func diff(_ one: RecordedFolder, _ other: RecordedFolder) throws -> String {
            try Larder.run(["diff", one.path, other.path]).output
        }
        let one = try recorded([("a", "1"), ("b", "2"), ("b", "3")])
        let other = try recorded([("b", "2"), ("b", "3"), ("a", "1")])
        #expect(try diff(one, other) == "")
        let changed = try recorded([("b", "2"), ("a", "1"), ("b", "4")])
        #expect(try diff(one, changed) == "GET /job (session b)\n  info: n: other values\n")
        // What has no session serves any, and what is another session's serves none.
        let partly = try recorded([("a", "1"), ("c", "2"), (nil, "2")])
        #expect(
            try diff(one, partly) == """
                GET /job (session b)
                  breaking: not in \(partly.path)
                GET /job
                  notice: not in \(one.path)

                """
        )
    }
}
