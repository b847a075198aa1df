import Foundation
import TestSupport
import Testing

/// A POST whose route says that it reads (`read:`), served like a GET by its body.
@Suite(.scripts) struct ReadingPostTests {
    private static let json: FieldLines = ["Content-Type": "application/json"]
    private static let query = #"{"query":"{ user { id name } }"}"#
    private static let mutation = #"{"query":"mutation { rename { id name } }"}"#

    private static func config(_ origin: Origin, read: String = "graphql, fresh: 1h", more: String = "") -> String {
        """
        upstreams: { a: { url: \(origin.url), lag: 0s } }
        store: { withhold: 10s }
        models: { User: { identity: id, properties: { name: name } } }
        routes:
          - { path: graphql, method: POST, model: User, root: data.user, read: \(read) }
          - { path: search, method: POST, read: true }
          - { path: "users/{id}", model: User, object: { id: id } }
        \(more)
        """
    }

    /// Responds to a POST with the text of its body, and says nothing of caching but `no-cache`.
    private static func echo() throws -> Origin {
        try Origin { request in
            let said = String(decoding: request.body, as: UTF8.self)
            return .json(
                #"{"data":{"said":\#(said.isEmpty ? "null" : said),"n":\#(request.number)}}"#,
                ["Cache-Control": "no-cache"]
            )
        }
    }

    private static func post(_ larder: Larder, _ body: String, _ path: String = "/graphql", _ fields: FieldLines = json)
        throws -> Response
    {
        try larder.request("POST", path, fields, body: body)
    }

    @Test func `a query is asked once, however it is spelled, and a different query separately`() throws {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin))
        let first = try Self.post(larder, Self.query)
        #expect(
            first.status == 200 && first.says("larder;fwd=uri-miss;ttl=3600;stored;detail=fresh-by-route"),
            "\(first.cacheStatus)"
        )
        for body in [Self.query, #" { "query" : "\u007b user { id name } }" } "#] {
            let answer = try Self.post(larder, body)
            #expect(answer.isHit && answer.body == first.body, "\(answer.cacheStatus)")
        }
        #expect(origin.count() == 1)
        #expect(String(decoding: origin.requests[0].body, as: UTF8.self) == Self.query)
        #expect(origin.requests[0].method == "POST")
        #expect(try !Self.post(larder, #"{"query":"{ user { id } }"}"#).isHit)
        #expect(try !Self.post(larder, #"{"query":"{ user { id name } }","variables":{"a":1}}"#).isHit)
        #expect(try !Self.post(larder, Self.query, "/graphql", Self.json + ["Authorization": "Bearer b"]).isHit)
        #expect(try !Self.post(larder, Self.query, "/graphql", Self.json + ["Accept-Language": "de"]).isHit)
        #expect(try !larder.get("/graphql").isHit)
        #expect(try Self.post(larder, Self.query).isHit)
    }

    @Test func `a stored response to a POST survives a restart, and is served offline`() throws {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin))
        let first = try Self.post(larder, Self.query)
        #expect(try larder.waitForDocuments(1))
        try larder.restart()
        #expect(try Self.post(larder, Self.query).isHit)
        origin.stop()
        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#).status == 200)
        let answer = try Self.post(larder, Self.query)
        #expect(answer.isHit && answer.body == first.body)
        #expect(try Self.post(larder, #"{"query":"{ other }"}"#).status == 504)
        #expect(try Self.post(larder, Self.mutation).status == 504)
    }

    @Test(arguments: [
        (#"{"query":"mutation { a }"}"#, "mutation"), (#"[{"query":"{ a }"},{"query":"mutation { b }"}]"#, "mutation"),
        (#"{"query":"query A { a } mutation B { b }","operationName":"A"}"#, "mutation"),
        (#"{"query":"subscription { a }"}"#, "subscription"), (#"{"query":"{ a"}"#, "document-malformed"),
        (#"{"query":"{ a }","query":"{ b }"}"#, "body-ambiguous"), (#"{"query""#, "body-not-json"),
        (#"{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"0a"}}}"#, "query-unknown"),
        (#"{"id":"0a"}"#, "query-elsewhere"),
    ])
    func `a POST that may write is passed on each time, and invalidates what is stored of its path`(
        body: String,
        word: String
    ) throws {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin))
        _ = try Self.post(larder, Self.query)
        #expect(try Self.post(larder, Self.query).isHit)
        for _ in 0..<2 {
            let answer = try Self.post(larder, body)
            #expect(answer.cacheStatus == "larder;fwd=method;detail=\(word)")
            #expect(String(decoding: origin.requests.last?.body ?? [], as: UTF8.self) == body)
        }
        #expect(origin.count() == 3)
        #expect(try !Self.post(larder, Self.query).isHit)
    }

    @Test func `a write to another path invalidates GraphQL queries, and no responses to other POSTs that read`() throws
    {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin))
        let found = { try Self.post(larder, #"{"q":1}"#, "/search") }
        origin.behave { request in
            .json(#"{"data":\#(request.number)}"#, Fresh.hour)
        }
        _ = try (Self.post(larder, Self.query), found())
        #expect(try Self.post(larder, Self.query).isHit && found().isHit)
        #expect(try larder.request("PATCH", "/users/1", Self.json, body: "{}").status == 200)
        #expect(try !Self.post(larder, Self.query).isHit)
        #expect(try found().isHit)
    }

    @Test func `without read in its route no POST is stored`() throws {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin))
        origin.always(.json(#"{"data":1}"#, Fresh.hour))
        for _ in 0..<2 { #expect(try Self.post(larder, Self.query, "/other").cacheStatus == "larder;fwd=method") }
        #expect(origin.count() == 2)
    }

    @Test func `a result with errors is passed on and not stored, and does not remove an older one`() throws {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin, read: "graphql, fresh: 0s"))
        for body in [
            #"{"data":{"a":1},"errors":[{"message":"x"}]}"#, #"{"data":null}"#, "[]", "<html>", #"{"errors":[]}"#,
        ] {
            origin.always(.json(body, Fresh.hour))
            let answer = try Self.post(larder, Self.query)
            #expect(answer.text == body && !answer.isHit)
        }
        #expect(try larder.waitForQuiet() && larder.documents() == 0)
        let said = try larder.command("explain", "/graphql", "--data", Self.query).output
        #expect(said.contains("it is no GraphQL result with data and without errors"), "\(said)")
        origin.always(.json(#"{"data":{"a":1},"errors":[]}"#))
        _ = try Self.post(larder, Self.query)
        #expect(try larder.waitForDocuments(1))
        origin.always(.json(#"{"errors":[{"message":"x"}]}"#))
        #expect(try Self.post(larder, Self.query).text.contains("errors"))
        origin.stop()
        #expect(
            try Self.post(larder, Self.query, "/graphql", Self.json + ["Cache-Control": "max-stale"]).text.contains(
                "data"
            )
        )
    }

    @Test(arguments: [304, 412])
    func `a stale response is validated by a POST with its body`(status: Int) throws {
        let origin = try Origin { request in
            guard request["If-None-Match"] == "\"a\"" else {
                return .json(#"{"data":{"n":\#(request.number)}}"#, Fresh.tagged("a", 0))
            }
            return status == 304 ? .empty(304, ["ETag": "\"a\""]) : .json(#"{"problem":1}"#, status: 412)
        }
        let larder = try Larder(config: Self.config(origin, read: "graphql"))
        let first = try Self.post(larder, Self.query)
        #expect(try larder.waitForDocuments(1))
        let second = try Self.post(larder, Self.query)
        #expect(second.status == 200)
        #expect(second.text.contains(status == 304 ? first.text : #"{"n":2}"#), "\(second.text)")
        #expect(origin.count() == (status == 304 ? 2 : 3))
        for request in origin.requests { #expect(String(decoding: request.body, as: UTF8.self) == Self.query) }
    }

    @Test func `50 clients with one query make one request`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json(#"{"data":1}"#, Fresh.hour).after(gate) }
        let larder = try Larder(config: Self.config(origin))
        let answers = Background { try together(50) { _ in try Self.post(larder, Self.query) } }
        #expect(try larder.waitForFollowers(49))
        gate.open()
        #expect(try answers.value().allSatisfy { $0.text == #"{"data":1}"# })
        #expect(origin.count() == 1)
    }

    @Test func `a stale response to a POST is served if allowed, and fetched again in the background`() throws {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin, read: "graphql, fresh: 0s, stale: 1h"))
        _ = try Self.post(larder, Self.query)
        #expect(try Self.post(larder, Self.query).text.contains(#""n":0"#))
        #expect(origin.waitForRequests(2))
        #expect(String(decoding: origin.requests[1].body, as: UTF8.self) == Self.query)
        #expect(try eventually { try Self.post(larder, Self.query).text.contains(#""n":1"#) })
        origin.stop()
        #expect(try Self.post(larder, Self.query).status == 200)
    }

    @Test func `an object in the response to a POST that reads is the same object as in responses to GET`() throws {
        let name = Monitor("Ann")
        let origin = try Origin { request in
            let user = #"{"id":1,"name":"\#(name.current)"}"#
            return request.method == "POST"
                ? .json(#"{"data":{"user":\#(user)}}"#, Fresh.hour) : .json(user, Fresh.hour)
        }
        let larder = try Larder(config: Self.config(origin))
        #expect(try Self.post(larder, Self.query).text == #"{"data":{"user":{"id":1,"name":"Ann"}}}"#)
        #expect(try larder.waitForObjects(1, of: "User"))
        let why = try larder.command("why", "User", "1").output
        #expect(why.contains("POST /graphql?#body="), "\(why)")
        name.withLock { $0 = "Bea" }
        #expect(try larder.get("/users/1").text.contains("Bea"))
        #expect(try larder.waitForQuiet())
        let answer = try Self.post(larder, Self.query)
        #expect(answer.text == #"{"data":{"user":{"id":1,"name":"Bea"}}}"# && answer.isHit)
        let mapped = try Self.post(larder, Self.query, "/graphql", Self.json + ["Larder-View": "mapped"])
        #expect(mapped.text.contains("Bea") && mapped.isHit)
        #expect(origin.count() == 2)
    }

    @Test func `a body that came in chunks is sent on unchanged, even if it is too large to be examined`() throws {
        let origin = try Origin { request in .json(#"{"data":\#(request.body.count)}"#, Fresh.hour) }
        let larder = try Larder(config: Self.config(origin))
        func chunked(_ body: String) throws -> Response {
            let client = try larder.client()
            try client.send(
                "POST /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            var rest = Array(body.utf8)[...]
            while !rest.isEmpty {
                let piece = rest.prefix(100_000)
                rest = rest.dropFirst(piece.count)
                try client.send(Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + Array("\r\n".utf8))
            }
            try client.send("0\r\n\r\n")
            return try client.response(to: "POST")
        }
        let count = Self.query.utf8.count
        #expect(try chunked(Self.query).text == #"{"data":\#(count)}"#)
        #expect(try Self.post(larder, Self.query).isHit)
        for size in [1_000_000, 3_000_000] {
            let body = #"{"query":"{ user { id } } #\#(String(repeating: "x", count: size))"}"#
            for isFirst in [true, false] {
                let answer = try isFirst ? chunked(body) : Self.post(larder, body)
                #expect(answer.text == #"{"data":\#(body.utf8.count)}"#)
                let expected =
                    size > 1 << 20
                    ? "larder;fwd=method;detail=body-too-large"
                    : isFirst ? "larder;fwd=uri-miss;ttl=" : "larder;hit"
                #expect(answer.cacheStatus.hasPrefix(expected), "\(answer.cacheStatus)")
            }
        }
    }

    @Test func `a POST with a coded body is passed on as received`() throws {
        let origin = try Origin { request in .json(#"{"data":\#(request.body.count)}"#, Fresh.hour) }
        let larder = try Larder(config: Self.config(origin))
        let answer = try Self.post(larder, Self.query, "/graphql", Self.json + ["Content-Encoding": "gzip"])
        #expect(answer.cacheStatus == "larder;fwd=method;detail=body-not-json")
        #expect(origin.requests[0]["Content-Encoding"] == "gzip")
    }

    @Test func `a client that leaves before its body is complete causes no request`() throws {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin))
        for _ in 0..<3 {
            let client = try larder.client()
            try client.send(
                "POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
            )
            client.socket.shutDown()
        }
        #expect(try !Self.post(larder, Self.query).isHit)
        #expect(try Self.post(larder, Self.query).isHit)
        #expect(origin.count() == 1)
    }

    @Test func `for a POST that reads, a range is ignored, a stream refused, and a condition evaluated`() throws {
        let origin = try Origin { _ in .json(#"{"data":1}"#, Fresh.tagged("a")) }
        let larder = try Larder(config: Self.config(origin))
        #expect(try Self.post(larder, Self.query, "/graphql", Self.json + ["Range": "bytes=0-1"]).status == 200)
        #expect(try Self.post(larder, Self.query, "/graphql", Self.json + ["Range": "bytes=0-1"]).isHit)
        #expect(try Self.post(larder, Self.query, "/graphql", Self.json + ["If-None-Match": "\"a\""]).status == 304)
        #expect(try Self.post(larder, Self.query, "/graphql", Self.json + ["Larder-Live": "on"]).status == 400)
        #expect(origin.count() == 1)
    }

    @Test func `explain, documents, clean and freeze name the response to a POST by the digest of its body`() throws {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin))
        let before = try larder.command("explain", "/graphql", "--data", Self.query).output
        #expect(before.contains("fetch: nothing is stored"), "\(before)")
        _ = try Self.post(larder, Self.query)
        #expect(try larder.waitForDocuments(1))
        let after = try larder.command("explain", "/graphql", "--data", Self.query).output
        #expect(after.hasPrefix("POST \(origin.url)/graphql\n") && after.contains("serve 200: it is fresh"), "\(after)")
        let mutation = try larder.command("explain", "/graphql", "--data", Self.mutation).output
        #expect(
            mutation.contains("write: its route says that it may read, but its GraphQL document has a mutation"),
            "\(mutation)"
        )
        let listed = try larder.admin("GET", "/documents").text
        let url = try #require(
            listed.firstMatch(of: /\/graphql\?#body=[0-9a-f]{32}/).map { String($0.output) },
            "\(listed)"
        )
        #expect(try larder.command("explain", url).output.contains("serve 200: it is fresh"))
        let folder = TemporaryFolder()
        let frozen = try larder.command("freeze", folder.file("recording"))
        #expect(
            (frozen.output + frozen.errors).contains("are responses to a POST, of whose body only the digest"),
            "\(frozen)"
        )
        #expect(try larder.command("clean", "--url", url).end == .exited(0))
        #expect(try larder.documents() == 0)
        #expect(try !Self.post(larder, Self.query).isHit)
    }

    @Test func `a recording replays a query by its body, however it is spelled`() throws {
        let origin = try Self.echo()
        let recording = RecordedFolder()
        try recording.record(origin, config: Self.config(origin)) { (larder: Larder) throws -> Void in
            for body in [Self.query, Self.query, Self.mutation] { _ = try Self.post(larder, body) }
        }
        #expect(origin.count() == 3)
        let larder = try Larder.replaying(recording.path)
        #expect(try Self.post(larder, Self.query).text.contains(#""n":0"#))
        #expect(try Self.post(larder, Self.query).text.contains(#""n":1"#))
        #expect(try Self.post(larder, #"{ "query": "{ user { id name } }" }"#).text.contains(#""n":1"#))
        #expect(try Self.post(larder, Self.mutation).text.contains(#""n":2"#))
        #expect(try Self.post(larder, #"{"query":"{ other }"}"#).status == 504)
    }

    @Test func `a replay stores objects from responses to queries, and none from responses to mutations`() throws {
        let origin = try Origin { request in
            let id = request.number + 1
            return .json(#"{"data":{"user":{"id":\#(id),"name":"Ann"}}}"#)
        }
        let recording = RecordedFolder()
        try recording.record(origin, config: Self.config(origin)) { (larder: Larder) throws -> Void in
            for body in [Self.query, Self.mutation] { _ = try Self.post(larder, body) }
        }
        let larder = try Larder.replaying(recording.path)
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.admin("GET", "/objects/User/1").status == 200)
    }

    @Test func `GitHub's preset asks once for a query that is sent twice, by either path`() throws {
        let origin = try Self.echo()
        let larder = try Larder(
            config: """
                include: \(Repository.root)/config/github.yaml
                upstreams: { github: { url: "\(origin.url)", budget: { write_gap: 0s } } }
                """
        )
        #expect(try !Self.post(larder, Self.query, "/api/graphql").isHit)
        #expect(try Self.post(larder, Self.query, "/api/graphql").isHit)
        #expect(try Self.post(larder, Self.query).isHit)
        #expect(origin.count() == 1)
        let off = """
            include: \(Repository.root)/config/github.yaml
            upstreams: { github: { url: "\(origin.url)" } }
            routes: [{ path: graphql, method: POST, read: false }]
            """
        let without = try Larder(config: off)
        for _ in 0..<2 { #expect(try Self.post(without, Self.query).cacheStatus == "larder;fwd=method") }
    }

    @Test func `a client that waits for 100 Continue gets it`() throws {
        let origin = try Self.echo()
        let larder = try Larder(config: Self.config(origin))
        for isFirst in [true, false] {
            let client = try larder.client()
            try client.send(
                "POST /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
                    + "Content-Length: \(Self.query.utf8.count)\r\n\r\n"
            )
            #expect(try client.interim() == 100)
            try client.send(Self.query)
            #expect(try client.response(to: "POST").isHit == !isFirst)
        }
    }

    @Test func `a persisted query is served once it is known, and its refusal is not stored`() throws {
        // The SHA-256 of `{ a }`.
        let extensions =
            #""extensions":{"persistedQuery":{"version":1,"sha256Hash":"1c7e1e347f726166b5b1c55afd61f278cc9b45e00c108ec33d540a566379811b"}}"#
        let origin = try Origin { _ in .json(#"{"errors":[{"message":"PersistedQueryNotFound"}]}"#) }
        let larder = try Larder(config: Self.config(origin))
        for _ in 0..<2 {
            let answer = try Self.post(larder, "{\(extensions)}")
            #expect(answer.cacheStatus == "larder;fwd=method;detail=query-unknown" && answer.text.contains("NotFound"))
        }
        origin.always(.json(#"{"data":1}"#))
        #expect(try !Self.post(larder, #"{"query":"{ a }",\#(extensions)}"#).isHit)
        for isFirst in [true, false] { #expect(try Self.post(larder, "{\(extensions)}").isHit == !isFirst) }
        #expect(origin.count() == 4)
    }
}
