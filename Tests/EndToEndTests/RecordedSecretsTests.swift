import Foundation
import TestSupport
import Testing

/// Secrets planted in every place, looked for in every byte of a recording.
@Suite(.scripts) struct RecordedSecretsTests {
    @Test func `no secret from any place reaches any file of a recording`() throws {
        let canaries = Monitor(0)
        @Sendable func canary() -> String {
            "canary-\(canaries.withLock { $0 += 1; return $0 })-5ecret/+=value"
        }
        let (bearer, query, matrix, cookie) = (canary(), "canary-query-5ecretvalue", "canary-matrix-5ecret", canary())
        let (setCookie, token, declared, form) = (canary(), canary(), canary(), "canary-form-5ecretvalue")
        let (password, own, header, link) = (
            "canary-basic-5ecret", "canary-own-5ecretvalue", canary(), "canary-link-5ecret"
        )
        let (posted, user, configured) = (canary(), "canary-user-5ecret", canary())
        let origin = try Origin { request in
            .json(
                """
                {"id": 1, "pin": "\(declared)", "access_token": "\(token)", "echo": "\(request["Authorization"] ?? "")",
                 "cookies": "\(request["Cookie"] ?? "")", "own": "\(request["X-Own-Key"] ?? "")", "asked": "\(request.target)",
                 "escaped": "\(bearer.replacing("/", with: "\\/"))", "configured": "\(request["X-Internal"] ?? "")"}
                """,
                [
                    "Set-Cookie": "session=\(setCookie); HttpOnly", "X-Auth-Token": header,
                    "Location": "http://\(user):\(password)x@example.com/?access_token=\(link)",
                    "Link": "</next?api_key=\(query)&page=2>; rel=next",
                ]
            )
        }
        let folder = TemporaryFolder()
        let file = try folder.write(own, to: "own")
        let config = """
            upstreams:
              api:
                url: \(origin.url)
                credential: { header: X-Own-Key, from: "\(file)", writes: true }
                principal: [auto, +X-Internal]
            models: { Thing: { identity: id, secret: [pin] } }
            routes: [{ path: "**", model: Thing }]
            """
        let recording = RecordedFolder()
        let log = try recording.record(origin, config: config) { larder in
            let basic = Data("user:\(password)".utf8).base64EncodedString()
            _ = try larder.get("/a;token=\(matrix)?api_key=\(query)&page=2", ["Authorization": "Bearer \(bearer)"])
            _ = try larder.get(
                "/b",
                ["Authorization": "Basic \(basic)", "Cookie": "s=\(cookie)", "X-Internal": configured]
            )
            let type: FieldLines = ["Content-Type": "application/x-www-form-urlencoded"]
            _ = try larder.request("POST", "/c", type, body: "client_secret=\(form)&grant_type=x")
            _ = try larder.request(
                "POST",
                "/d",
                ["Content-Type": "application/json"],
                body: #"{"password":"\#(posted)"}"#
            )
            // What was learned in one exchange is known in the next.
            _ = try larder.get("/e", ["X-Note": "\(bearer) \(cookie)", "Referer": "http://x/?api_key=\(query)"])
        }
        let secrets = [
            bearer, query, matrix, cookie, setCookie, token, declared, form, password, own, header, link, posted, user,
            configured,
        ]
        #expect(recording.lines.count == 5)
        for (name, bytes) in recording.files {
            #expect(!bytes.contains("5ecret"), "\(name): \(String(decoding: bytes.prefix(2_000), as: UTF8.self))")
        }
        for secret in secrets { #expect(!log.contains(secret)) }
        // The same requests with other secrets are the same to a replay.
        let larder = try Larder.replaying(recording.path)
        #expect(try larder.get("/a;token=x?api_key=other&page=2", ["Authorization": "Bearer else"]).status == 200)
        let other = try larder.request(
            "POST",
            "/d",
            ["Content-Type": "application/json"],
            body: #"{"password":"else"}"#
        )
        #expect(other.status == 200)
    }

    @Test func `a token in a response is redacted once a request uses it`() throws {
        let origin = try Origin { request in
            request.path == "/login" ? .json(#"{"token":"given-5ecret-token"}"#) : .json(#"{"n":1}"#)
        }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            _ = try larder.request("POST", "/login?note=given-5ecret-token", body: "x")
            #expect(eventually { recording.lines.count == 1 })
            _ = try larder.get("/me", ["Authorization": "Bearer given-5ecret-token"])
            _ = try larder.get("/other")
        }
        #expect(recording.lines.count == 3)
        for (name, bytes) in recording.files { #expect(!bytes.contains("5ecret"), "\(name)") }
        let larder = try Larder.replaying(recording.path)
        let token = try larder.request("POST", "/login?note=REDACTED-1", body: "x").object["token"] as? String
        #expect(token == "REDACTED-1")
        #expect(try larder.get("/me", ["Authorization": "Bearer \(token ?? "")"]).status == 200)
        #expect(try larder.get("/other").status == 200)
    }

    @Test func `a token that an earlier run recorded is redacted once a later run uses it`() throws {
        let origin = try Origin { $0.path == "/login" ? .json(#"{"token":"given-5ecret-token"}"#) : .json("{}") }
        let recording = RecordedFolder()
        try recording.record(origin) { _ = try $0.request("POST", "/login", body: "x") }
        #expect(recording.files.values.contains { $0.contains("5ecret") })
        try recording.record(origin) { _ = try $0.get("/me", ["Authorization": "Bearer given-5ecret-token"]) }
        #expect(recording.lines.count == 2)
        for (name, bytes) in recording.files { #expect(!bytes.contains("5ecret"), "\(name)") }
    }

    @Test func `secrets in any form of body reach no file, and the recording is replayed with other secrets`() throws {
        let token = "tok+5ecret/value=1"
        let spelled = #"{"a":"tok\u002B5ecret\/value=1","b":"tok%2b5ecret%2fvalue=1"}"#
        let origin = try Origin { request in
            switch request.path {
            case "/login":
                .text("access_token=\(token)&token_type=bearer", ["Content-Type": "application/x-www-form-urlencoded"])
            case "/twice":
                .body(gzipStored(gzipStored(Array(spelled.utf8))), ["Content-Encoding": "gzip, gzip"])
            case "/unknown": .body(Array("5ecret".utf8), ["Content-Encoding": "compress"])
            default: .json(spelled)
            }
        }
        func ask(_ larder: Larder, _ secret: String, _ token: String) throws -> [Int] {
            let form: FieldLines = ["Content-Type": "application/x-www-form-urlencoded"]
            let grant = "grant_type=authorization_code&code=\(secret)&code_verifier=\(secret)-1"
            let part = "--b\r\nContent-Disposition: form-data; name=\"client_secret\"\r\n\r\n\(secret)\r\n--b--\r\n"
            let responses = [
                try larder.request("POST", "/login", form, body: grant),
                try larder.request("POST", "/plain", body: "password=\(secret)"),
                try larder.request("POST", "/parts", ["Content-Type": "multipart/form-data; boundary=b"], body: part),
                try larder.get("/twice", ["Authorization": "Bearer \(token)", "Cookie": secret]),
                try larder.get(
                    "/once",
                    ["Authorization": "Bearer \(token)", "X-Original-URL": "?access_token=\(secret)"]
                ),
                try larder.get("/unknown", ["Authorization": "Bearer \(token)"]),
            ]
            return responses.map(\.status)
        }
        let recording = RecordedFolder()
        let log = try recording.record(origin) { (larder: Larder) throws -> Void in
            #expect(try ask(larder, "given-5ecret", token) == [200, 200, 200, 200, 200, 200])
        }
        #expect(recording.lines.count == 5)
        #expect(log.contains("not recorded: 1 that could not be searched for secrets"))
        #expect(log.contains("GET /unknown has a content coding that cannot be decoded: compress"))
        for (name, bytes) in recording.files { #expect(!bytes.contains("5ecret"), "\(name)") }
        let larder = try Larder.replaying(recording.path)
        #expect(try ask(larder, "other-secret", "another") == [200, 200, 200, 200, 200, 504])
        let given = try larder.request(
            "POST",
            "/login",
            ["Content-Type": "application/x-www-form-urlencoded"],
            body: "grant_type=authorization_code&code=x&code_verifier=y"
        )
        #expect(given.text.hasPrefix("access_token=REDACTED-") && given.text.hasSuffix("&token_type=bearer"))
    }

    @Test func `a replay distinguishes requests by parameters whose names only resemble credentials`() throws {
        let targets = [
            "/a?code=DE&state=CA", "/a?code=FR&state=CA", "/a?code=DE&client_id=x", "/a?code=FR&client_id=x",
            "/a?ticket=17&service=s3", "/a?ticket=18&service=s3", "/a?pin=560001", "/a?pin=560002",
        ]
        let bodies = [
            #"{"code":"DE","state":"CA"}"#, #"{"code":"FR","state":"CA"}"#, #"{"pin":"560001","city":"B"}"#,
            #"{"pin":"560002","city":"B"}"#,
        ]
        let origin = try Origin { request in
            let body = String(decoding: request.body, as: UTF8.self).replacing("\"", with: "'")
            return .json(#"{"asked":"\#(request.target)","body":"\#(body)"}"#)
        }
        var received: [String: String] = [:]
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for target in targets { received[target] = try larder.get(target).text }
            for body in bodies { received[body] = try larder.request("POST", "/p", body: body).text }
            _ = try larder.get("/a?code=a1b2c3d4e5f6&state=CA")
        }
        let larder = try Larder.replaying(recording.path)
        for target in targets.reversed() { #expect(try larder.get(target).text == received[target]) }
        for body in bodies.reversed() { #expect(try larder.request("POST", "/p", body: body).text == received[body]) }
        #expect(try larder.get("/a?code=f1e2d3c4b5a6&state=CA").text.contains("REDACTED"))
    }
}
