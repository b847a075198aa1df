import Foundation
import TestSupport
import Testing

@Suite("RFC 9111 §3 Storing Responses in Caches", .scripts) struct StoringTests {
    private static let statuses = [
        200, 201, 203, 204, 205, 299, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 412, 414, 416, 418, 422,
        429, 451,
        499, 500, 501, 502, 503, 504, 599,
    ]

    @Test func `a final status with a lifetime of its own is stored and reused`() throws {
        let fields: FieldLines = .dated() + ["Expires": CacheTests.date(in: 3600)]
        try Readings().check(
            Self.statuses.map { .reused(.control("max-age=3600"), status: $0) }
                + [299, 404, 503].map { .reused(fields, status: $0) }
        )
    }

    @Test func `a status without a heuristic lifetime is not reused without an explicit one`() throws {
        let fields: FieldLines = .dated() + ["Last-Modified": CacheTests.date(in: -1_000_000)]
        try Readings().check(
            [201, 299, 302, 303, 307, 400, 403, 422, 451, 499, 500, 502, 599].map { .asked(fields, status: $0) }
        )
    }

    @Test func `a 202 is not reused, even with a lifetime`() throws {
        try Readings().check([202].map { .asked(.control("max-age=3600"), status: $0) })
    }

    @Test func `no-store in the response or the request prevents storing`() throws {
        try Readings().check([
            .asked(.control("no-store")), .asked(.control("no-store, max-age=3600")),
            .asked(.control("NO-STORE, max-age=3600")),
            .asked(["Cache-Control": "max-age=3600", "cache-control": "no-store"]),
            .asked(.control("max-age=3600"), first: .control("no-store")),
            .asked(.control("max-age=3600"), first: .control("max-age=60, No-Store")),
        ])
    }

    @Test func `a request with no-store can be served from the cache`() throws {
        try Readings().check([.reused(.control("max-age=3600"), second: .control("no-store"))])
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "FOO", "get"])
    func `the response to another method, known or unknown, is not stored`(method: String) throws {
        let readings = try Readings()
        for reading in Reading.allCases {
            let path = readings.path(reading) { request, number in
                .text("\(request.method) \(number)", .control("max-age=3600"))
            }
            for _ in 1...2 { #expect(try readings.larder.request(method, path).status == 200) }
            #expect(readings.origin.count(path, method: method) == 2)
            #expect(try readings.larder.get(path).text == "GET 3")
        }
    }

    @Test func `an error never replaces a good response`() throws {
        let readings = try Readings()
        for reading in Reading.allCases {
            let path = readings.path(reading) { request, number in
                number == 1
                    ? .text("good", ["Cache-Control": "max-age=0, must-revalidate", "ETag": "\"good\""])
                    : request["If-None-Match"] == "\"good\"" && number > 2
                        ? .notModified(.control("max-age=3600"))
                        : .text("bad", .control("max-age=3600"), status: 503)
            }
            #expect(try readings.larder.get(path).text == "good")
            #expect(try readings.larder.get(path).status == 503)
            let third = try readings.larder.get(path)
            #expect(third.status == 200 && third.text == "good")
            #expect(readings.requests(path) == 3)
        }
    }

    @Test func `a stored error is replaced by the next response`() throws {
        let readings = try Readings()
        for reading in Reading.allCases {
            let path = readings.path(reading) { _, number in
                .text("error \(number)", .control(number == 1 ? "max-age=0" : "max-age=3600"), status: 503)
            }
            #expect(try readings.larder.get(path).text == "error 1")
            #expect(try readings.larder.get(path).text == "error 2")
            let third = try readings.larder.get(path)
            #expect(third.isHit && third.text == "error 2")
        }
    }

    @Test func `a response without Date gets one, and keeps it`() throws {
        let readings = try Readings()
        let path = readings.path(.private) { _, _ in .text("x", .control("max-age=3600")) }
        let arrival = try readings.larder.get(path)["Date"]
        let first = try readings.larder.get(path)
        #expect(first.isHit && first["Date"] != nil && arrival != nil)
        #expect(try readings.larder.get(path)["Date"] == first["Date"])
    }
}

@Suite("RFC 9111 §3.5 Storing Responses to Authenticated Requests", .scripts) struct AuthenticatedTests {
    private static let one: FieldLines = ["Authorization": "Bearer one"]
    private static let two: FieldLines = ["Authorization": "Bearer two"]

    @Test func `a private cache keeps the responses of different credentials separate`() throws {
        let readings = try Readings()
        try readings.check([
            .reused(by: .private, .control("max-age=3600"), first: Self.one, second: Self.one),
            .reused(by: .private, .control("max-age=3600, private"), first: Self.one, second: Self.one),
            .asked(.control("max-age=3600"), first: Self.one, second: Self.two),
            .asked(.control("max-age=3600"), first: Self.one),
        ])
    }

    @Test func `a shared cache serves a response to all clients if the upstream allows it`() throws {
        try Readings().check(
            ["public, max-age=3600", "must-revalidate, max-age=3600", "s-maxage=3600", "max-age=1, s-maxage=3600"]
                .flatMap { control -> [Row] in
                    [
                        .reused(by: .shared, .control(control), first: Self.one, second: Self.two),
                        .reused(by: .shared, .control(control), first: Self.one),
                    ]
                } + [
                    .reused(by: .shared, .control("max-age=3600"), second: Self.one),
                    .asked(.control("max-age=3600, proxy-revalidate"), first: Self.one, second: Self.two),
                    .asked(.control("max-age=3600, public=1"), first: Self.one, second: Self.two),
                    .asked(.control("public, private, max-age=3600"), first: Self.one, second: Self.two),
                    .asked(.control("public, no-store, max-age=3600"), first: Self.one, second: Self.two),
                    .asked(
                        ["Cache-Control": "public, max-age=3600", "Vary": "Authorization"],
                        first: Self.one,
                        second: Self.two
                    ),
                    .asked(["Cache-Control": "public, max-age=3600", "Vary": "Authorization"], first: Self.one),
                    .asked(["Cache-Control": "public, max-age=3600", "Vary": "Authorization"], second: Self.one),
                    .reused(["Cache-Control": "max-age=3600", "Vary": "Accept, Authorization"]),
                ]
        )
    }

    @Test func `credentials other than Authorization divide principals in private and shared caches`() throws {
        let (one, two): (FieldLines, FieldLines) = (["Cookie": "s=1"], ["Cookie": "s=2"])
        try Readings().check([
            .reused(.control("public, max-age=3600"), first: one, second: one),
            .asked(.control("public, max-age=3600"), first: one, second: two),
            .asked(.control("public, max-age=3600"), first: one),
            .reused(by: .shared, .control("public, max-age=3600"), first: one + Self.one, second: one + Self.two),
            .asked(.control("public, max-age=3600"), first: one + Self.one, second: two + Self.one),
        ])
    }

    @Test(arguments: Reading.allCases)
    func `concurrent requests with different credentials do not share a response`(reading: Reading) throws {
        let readings = try Readings()
        let gate = Gate()
        let path = readings.path(reading) { request, _ in
            OriginResponse.text(request["Authorization"] ?? "nobody", .control("max-age=3600")).after(gate)
        }
        let larder = readings.larder
        let answers = Background { try together(4) { try larder.get(path, ["Authorization": "Bearer \($0)"]).text } }
        #expect(readings.origin.waitForRequests(4))
        gate.open()
        #expect(try answers.value() == (0..<4).map { "Bearer \($0)" })
    }

    @Test func `a credential from the config counts as Authorization`() throws {
        let origin = try Origin { request in
            .text("x", .control(request.path == "/public" ? "public, max-age=3600" : "max-age=3600"))
        }
        let folder = TemporaryFolder()
        try folder.write("secret\n", to: "credential")
        chmod(folder.file("credential"), 0o600)
        let credential = #"credential: { header: Private-Token, from: "\#(folder.file("credential"))" }"#
        let shared = try Larder(config: Configs.plain(origin, upstream: ["shared: true", credential]))
        for path in ["/public", "/other"] {
            _ = try shared.get(path)
            #expect(try shared.get(path).isHit == (path == "/public"))
        }
        let own = try Larder(config: Configs.plain(origin, upstream: [credential]))
        _ = try own.get("/other")
        #expect(try own.get("/other").isHit)
    }

    @Test func `a write's response shows its objects to no other principal`() throws {
        let origin = try Origin { request in
            request.method == "PATCH"
                ? .json(#"{"id":1,"login":"ada","name":"secret"}"#, .control("max-age=60"))
                : .json(#"{"items":[{"id":1,"login":"ada","name":"public"}]}"#, .control("public, max-age=3600"))
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["shared: true"]))
        _ = try larder.get("/search/users", Self.one)
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.request("PATCH", "/users/1", Self.one, body: "{}").status == 200)
        // It is asked for again, because the path of the write seems to name the user.
        #expect(try larder.get("/search/users").text.contains("public"))
    }
}

@Suite("RFC 9111 §3.1 Storing Header and Trailer Fields", .scripts) struct StoredFieldTests {
    @Test func `all fields except those of the connection are stored`() throws {
        let readings = try Readings()
        for reading in Reading.allCases {
            let path = readings.path(reading) { _, _ in
                .text(
                    "x",
                    .control("max-age=3600") + [
                        "Connection": "X-Hop, close-not", "X-Hop": "1", "Keep-Alive": "timeout=5",
                        "Proxy-Authenticate": "Basic",
                        "Proxy-Authentication-Info": "a=b", "Upgrade": "h2c", "TE": "x", "Trailer": "X-Trailer",
                        "X-Kept": "1", "x-kept": "2", "Content-Language": "de", "Server": "origin", "X-Empty": "",
                        "Warning": "199 - \"x\"", "Pragma": "no-cache",
                    ]
                )
            }
            for isHit in [false, true] {
                let answer = try readings.larder.get(path)
                #expect(answer.isHit == isHit)
                for name in ["X-Hop", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Upgrade", "TE"]
                {
                    #expect(answer[name] == nil, "\(name)")
                }
                #expect(answer.fields.all("X-Kept") == ["1", "2"])
                #expect(answer["Content-Language"] == "de" && answer["Server"] == "origin" && answer["X-Empty"] == "")
                #expect(answer["Warning"] == "199 - \"x\"" && answer["Pragma"] == "no-cache")
                #expect(answer["Cache-Control"] == "max-age=3600")
            }
        }
    }
}

@Suite("RFC 9111 §3.3 Storing Incomplete Responses", .scripts) struct IncompleteTests {
    @Test func `a truncated body is not stored`() throws {
        let readings = try Readings()
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n"
        for reading in Reading.allCases {
            for cut in [
                "Content-Length: 10\r\n\r\n12345", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
                "Transfer-Encoding: chunked\r\n\r\n9\r\n12345",
            ] {
                let path = readings.path(reading) { _, number in
                    number == 1 ? .raw(head + cut) : .text("whole", .control("max-age=3600"))
                }
                _ = try? readings.larder.get(path)
                let second = try readings.larder.get(path)
                #expect(!second.isHit && second.text == "whole", "\(cut)")
                #expect(readings.requests(path) == 2)
            }
        }
    }
}
