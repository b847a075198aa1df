import TestSupport
import Testing

/// Upstreams whose entity tags are those of the content, whoever asks (`validate_across: etag`).
@Suite struct AcrossByTagTests {
    /// An origin whose pages differ by token where `bodies` says so, with tags that are given.
    private static func origin(
        tag: @escaping @Sendable (_ token: String) -> String = { _ in "\"v1\"" },
        body: @escaping @Sendable (_ token: String) -> String = { _ in #"{"id":1,"name":"Ada"}"# }
    ) throws -> Origin {
        try Origin { request in
            let token = request["Authorization"] ?? ""
            let fields: FieldLines = ["Cache-Control": "private, max-age=3600", "ETag": tag(token)]
            return request["If-None-Match"]?.contains(tag(token)) == true
                ? .notModified(fields) : .json(body(token), fields)
        }
    }

    private static func daemon(_ origin: Origin, _ top: String = "") throws -> Larder {
        try Larder(
            origin,
            config: """
                upstreams: { api: { url: "\(origin.url)", validate_across: etag, routes: [{ path: "users/{id}" }] } }
                \(top)
                """
        )
    }

    @discardableResult
    private static func get(_ larder: Larder, _ path: String, _ token: Int) throws -> Response {
        let response = try larder.get(path, ["Authorization": "Bearer number\(token)"])
        #expect(try larder.waitForQuiet())
        return response
    }

    /// The statuses that the origin gave to the requests since the last call.
    private static func statuses(_ origin: Origin) -> [Int] {
        defer { origin.forget() }
        return origin.requests.map { $0["If-None-Match"] == nil ? 200 : 304 }
    }

    @Test func `once a route's tags have been tested, a new token costs a 304`() throws {
        let origin = try Self.origin()
        let larder = try Self.daemon(origin)
        let first = try Self.get(larder, "/users/1", 1)
        #expect(Self.statuses(origin) == [200])
        // A tag that is wrong on purpose.
        try Self.get(larder, "/users/1", 2)
        #expect(origin.requests.count == 1 && origin.requests[0]["If-None-Match"]?.contains("v1") == false)
        origin.forget()
        // The first 304 of the route releases nothing.
        #expect(try Self.get(larder, "/users/1", 3).body == first.body)
        #expect(Self.statuses(origin) == [304, 200])
        var counts: [Int] = []
        for token in 4..<10 {
            let response = try Self.get(larder, "/users/1", token)
            #expect(response.body == first.body)
            counts.append(origin.requests.count)
            #expect(origin.requests.allSatisfy { $0["If-Modified-Since"] == nil })
            origin.forget()
        }
        // One of a hundred is compared again.
        #expect(counts.count { $0 == 1 } >= 4, "\(counts)")
        #expect(try Self.get(larder, "/users/1", 9).isHit)
        // Another route, which has none here, proves itself again.
        try Self.get(larder, "/other", 1)
        origin.forget()
        try Self.get(larder, "/other", 2)
        #expect(Self.statuses(origin) == [304, 200])
    }

    @Test func `two bodies with one entity tag end validation across principals, and each gets its own body`() throws {
        let origin = try Self.origin(body: { #"{"id":1,"of":"\#($0.suffix(1))"}"# })
        let larder = try Self.daemon(origin)
        for token in 1...6 {
            let response = try Self.get(larder, "/users/1", token)
            #expect(response.text == #"{"id":1,"of":"\#(token)"}"#)
        }
        #expect(
            larder.process.waitForErrors { $0.contains("two principals got different bodies with the same entity tag") }
        )
        origin.forget()
        try Self.get(larder, "/users/1", 7)
        #expect(origin.requests.map { $0["If-None-Match"] } == [nil])
    }

    @Test func `weak tags are not used`() throws {
        let origin = try Self.origin(tag: { _ in "W/\"v1\"" })
        let larder = try Self.daemon(origin)
        for token in 1...4 { try Self.get(larder, "/users/1", token) }
        #expect(origin.requests.map { $0["If-None-Match"] } == [nil, nil, nil, nil])
    }

    @Test func `responses are not validated across the addresses of clients`() throws {
        let origin = try Self.origin()
        let folder = TemporaryFolder()
        let socket = folder.file("api.sock")
        let config = """
            listen: ["127.0.0.1:0", "unix:\(socket)"]
            upstreams: { api: { url: "\(origin.url)", validate_across: etag } }
            """
        let larder = try Larder(
            arguments: ["--config", try folder.write(config, to: "larder.yaml")],
            folder: folder,
            addresses: ["--admin", "127.0.0.1:0"]
        )
        for token in 1...4 { try Self.get(larder, "/users/1", token) }
        origin.forget()
        let other = try Client(.unix(socket)).get("/users/1", ["Authorization": "Bearer number5"])
        #expect(other.status == 200)
        #expect(origin.requests.map { $0["If-None-Match"] } == [nil])
        origin.forget()
        try Self.get(larder, "/users/1", 6)
        #expect(origin.requests.first?["If-None-Match"] == "\"v1\"")
    }
}
