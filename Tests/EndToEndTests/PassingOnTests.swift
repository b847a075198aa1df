import Foundation
import TestSupport
import Testing

/// What becomes of a response on its way through: its fields, codings, chunks, redirects and links.
@Suite(.scripts) struct PassingOnTests {
    @Test func `connection fields are not passed on, and cookies are not replayed to other clients`() throws {
        let origin = try Origin { _ in
            .json(
                "{}",
                Fresh.hour + [
                    "Connection": "X-Private", "X-Private": "1", "Keep-Alive": "timeout=5", "Set-Cookie": "s=1",
                    "X-Public": "2",
                ]
            )
        }
        let larder = try Larder(origin)
        let first = try larder.get("/x", ["Connection": "X-Mine", "X-Mine": "1", "TE": "trailers", "X-Yours": "2"])
        #expect(origin.requests[0]["X-Mine"] == nil)
        #expect(origin.requests[0]["TE"] == nil)
        #expect(origin.requests[0]["X-Yours"] == "2")
        #expect(first["X-Private"] == nil)
        #expect(first["X-Public"] == "2")
        #expect(first["Set-Cookie"] == "s=1")
        let second = try larder.get("/x")
        #expect(second.isHit)
        #expect(second["Set-Cookie"] == nil)
        #expect(second["X-Public"] == "2")
    }

    @Test func `coded bodies are decoded before they are passed on and stored`() throws {
        let text = #"{"name":"encoded"}"#
        let origin = try Origin { request in
            .body(
                gzipStored(Array(text.utf8)),
                Fresh.hour + ["Content-Encoding": "gzip", "Content-Type": "application/json"]
            )
        }
        let larder = try Larder(origin)
        for _ in 1...2 {
            let answer = try larder.get("/x")
            #expect(answer.text == text)
            #expect(answer["Content-Encoding"] == nil)
        }
        #expect(origin.count() == 1)
    }

    @Test func `chunks arrive as they are sent, and the whole is a hit afterwards`() throws {
        let gate = Gate()
        let origin = try Origin { _ in
            OriginResponse(steps: [
                .send(
                    OriginResponse.head(
                        200,
                        "OK",
                        Fresh.hour + ["Transfer-Encoding": "chunked", "Content-Type": "text/plain"]
                    )
                ), .send(OriginResponse.framed(Array("first ".utf8))), .wait(gate),
                .send(OriginResponse.framed(Array("second".utf8))),
                .send(Array("0\r\n\r\n".utf8)),
            ])
        }
        let larder = try Larder(origin)
        let client = try larder.client()
        try client.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let head = try client.head()
        #expect(head.status == 200)
        #expect(head.fields["Transfer-Encoding"] == "chunked")
        // The first chunk is here although the origin has not sent the second.
        #expect(String(decoding: try client.bytes(11), as: UTF8.self) == "6\r\nfirst \r\n")
        gate.open()
        #expect(String(decoding: try client.bytes(11), as: UTF8.self) == "6\r\nsecond\r\n")
        #expect(try eventually { try larder.get("/x").isHit })
        #expect(try larder.get("/x").text == "first second")
    }

    @Test func `redirects are passed on, with addresses rewritten to Larder's`() throws {
        let origin = try Origin { request in
            let host = request["Host"] ?? ""
            return request.path == "/from"
                ? .empty(302, ["Location": "http://\(host)/to", "Content-Length": "0"])
                : .json("[]", Fresh.hour + ["Link": "<http://\(host)/list?page=2>; rel=\"next\""])
        }
        let larder = try Larder(origin)
        let redirect = try larder.get("/from")
        #expect(redirect.status == 302)
        #expect(redirect["Location"] == "\(larder.url)/to")
        for _ in 1...2 {
            #expect(try larder.get("/list")["Link"] == "<\(larder.url)/list?page=2>; rel=\"next\"")
        }
        #expect(origin.requests[0]["Host"] == "127.0.0.1:\(origin.port)")
    }

    @Test func `links in bodies are rewritten only where configured`() throws {
        let origin = try Origin { request in
            .json(
                #"{"id":1,"url":"http:\/\/\#(request["Host"] ?? "")/users/1","next":"http://\#(request["Host"] ?? "")/x"}"#,
                Fresh.hour
            )
        }
        let plain = try Larder(origin)
        #expect(try plain.get("/x").text.contains(":\(origin.port)"))
        let rewriting = try Larder(config: Configs.plain(origin, upstream: ["rewrite_links: true"]))
        for _ in 1...2 {
            let answer = try rewriting.get("/x")
            #expect(answer.object["url"] as? String == "\(rewriting.url)/users/1")
            #expect(answer.object["next"] as? String == "\(rewriting.url)/x")
        }
        #expect(try rewriting.get("/x", ["Larder-View": "raw"]).text.contains(":\(origin.port)"))
    }

    @Test func `links use HTTPS for clients of a proxy that serves the name over HTTPS`() throws {
        let origin = try Origin { request in
            let root = "http://\(request["Host"] ?? "")"
            return .json(#"{"url":"\#(root)/x"}"#, Fresh.hour + ["Link": "<\(root)/x?page=2>; rel=\"next\""])
        }
        let larder = try Larder(
            config: Configs.plain(
                origin,
                upstream: ["rewrite_links: true", #"hosts: ["https://api.lan", "https://api.lan:8443", plain.lan]"#]
            )
        )
        for (host, root) in [
            ("api.lan", "https://api.lan"), ("api.lan:8443", "https://api.lan:8443"), ("plain.lan", "http://plain.lan"),
            ("localhost:\(larder.port)", "http://localhost:\(larder.port)"), ("api.lan", "https://api.lan"),
        ] {
            let response = try larder.get("/x", ["Host": host])
            #expect(response["Link"] == "<\(root)/x?page=2>; rel=\"next\"")
            #expect(response.object["url"] as? String == "\(root)/x")
        }
        #expect(origin.count() == 1)
        #expect(try larder.get("/x", ["Host": "api.lan:\(larder.port)"]).status == 421)
    }
}
