import Foundation
import TestSupport
import Testing

/// RFC 9110 §15.3.7, RFC 9111 §3.3: parts that the upstream sent, stored and served as what they are.
@Suite(.scripts) struct RangeOfPartsTests: RangeOfPartsFixtures {
    // MARK: Stored, and served

    @Test func `§15.3.7 a range that misses goes upstream unchanged, without codings`() throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        let fields: FieldLines = ["Range": "bytes=2-6", "If-Range": "\"one\"", "Accept-Encoding": "gzip"]
        let answer = try larder.get("/x", fields)
        #expect(answer.status == 206 && answer.text == "23456" && answer["Content-Range"] == "bytes 2-6/10")
        #expect(answer.says("larder;fwd=uri-miss;ttl=3600;stored"))
        #expect(origin.requests[0]["Range"] == "bytes=2-6")
        #expect(origin.requests[0]["If-Range"] == "\"one\"")
        #expect(origin.requests[0].fields.all("Accept-Encoding") == ["identity"])
    }

    @Test(arguments: [
        ("bytes=2-6", "bytes 2-6/10", "23456"), ("bytes=3-4", "bytes 3-4/10", "34"), ("bytes=6-6", "bytes 6-6/10", "6"),
        ("bytes=2-3,3-5", "bytes 2-5/10", "2345"),
    ])
    func `RFC 9111 §3.3 a range within a stored part is served from it`(range: String, content: String, text: String)
        throws
    {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=2-6"])
        let answer = try larder.get("/x", ["Range": range])
        #expect(answer.status == 206 && answer.text == text && answer["Content-Range"] == content)
        #expect(answer.isHit)
        #expect(answer["ETag"] == "\"one\"" && answer["Content-Type"] == "text/plain")
        #expect(answer["Age"] != nil && answer["Content-Length"] == "\(text.utf8.count)")
        #expect(origin.count() == 1)
    }

    @Test func `RFC 9111 §3.3 a stored part at the end serves suffix and open ranges, and several ranges at once`()
        throws
    {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=-6"])
        for (range, text) in [("bytes=-3", "789"), ("bytes=7-", "789"), ("bytes=7-500", "789"), ("bytes=-6", "456789")]
        {
            let answer = try larder.get("/x", ["Range": range])
            #expect(answer.isHit && answer.status == 206 && answer.text == text, "\(range)")
        }
        let several = try larder.get("/x", ["Range": "bytes=4-5,8-8"])
        #expect(several.isHit)
        #expect(several.byteRanges == [["bytes 4-5/10", "45"], ["bytes 8-8/10", "8"]])
        #expect(try larder.get("/x", ["Range": "bytes=5-6", "If-None-Match": "\"one\""]).status == 304)
        #expect(origin.count() == 1)
        // The client's part is of another version, or that cannot be told: it wants the whole.
        #expect(try larder.get("/x", ["Range": "bytes=5-6", "If-Range": "\"two\""]).text == Self.digits)
        #expect(origin.count() == 2)
    }

    @Test(arguments: ["bytes=1-3", "bytes=5-7", "bytes=0-", "bytes=-8", "bytes=8-9", "bytes=3-4,8-9", "bytes=10-"])
    func `RFC 9211 §2.2 a range outside the stored parts is fetched, with fwd=partial`(range: String) throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=2-6"])
        let answer = try larder.get("/x", ["Range": range])
        #expect(answer.cacheStatus.hasPrefix("larder;fwd=partial"))
        #expect(origin.count() == 2)
        #expect(origin.requests[1]["Range"] == range)
    }

    @Test func `RFC 9111 §3.3 without a complete length only ranges with both ends are served`() throws {
        let origin = try Origin { request in
            .text("23456", Fresh.hour + ["Content-Range": "bytes 2-6/*", "ETag": "\"one\""], status: 206)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=2-6"])
        let answer = try larder.get("/x", ["Range": "bytes=3-4"])
        #expect(answer.isHit && answer.text == "34" && answer["Content-Range"] == "bytes 3-4/*")
        for range in ["bytes=-2", "bytes=5-"] { #expect(try !larder.get("/x", ["Range": range]).isHit, "\(range)") }
    }

    @Test func `RFC 9111 §4.3 a stale part is validated by its tag, and freshened by a 304`() throws {
        let origin = try Self.ranged(Self.digits, tag: "\"one\"", Fresh.never)
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=2-6"])
        origin.behave { RangedContent(Self.digits).answer($0) }
        let renewed = try larder.get("/x", ["Range": "bytes=3-4"])
        #expect(renewed.status == 206 && renewed.text == "34")
        #expect(renewed.cacheStatus.hasPrefix("larder;fwd=stale;fwd-status=304"))
        #expect(origin.requests[1]["If-None-Match"] == "\"one\"" && origin.requests[1]["Range"] == "bytes=3-4")
        #expect(try larder.get("/x", ["Range": "bytes=4-6"]).isHit)
        #expect(origin.count() == 2)
    }

    @Test func `RFC 9111 §3.3 parts survive a restart, and count as a document`() throws {
        let origin = try Self.ranged()
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-3"])
        _ = try larder.get("/x", ["Range": "bytes=6-7"])
        #expect(try larder.waitForDocuments(1))
        let listed = try larder.command("documents")
        #expect(listed.end == .exited(0) && listed.output.contains("206"))
        #expect(larder.terminate() == .exited(0))
        origin.stop()
        try larder.start()
        for (range, text) in [("bytes=1-2", "12"), ("bytes=6-7", "67")] {
            let answer = try larder.get("/x", ["Range": range])
            #expect(answer.isHit && answer.text == text)
        }
    }

    @Test func `RFC 9111 §3.3 a part is never taken for the whole`() throws {
        let origin = try Self.ranged(Self.digits, tag: nil, Fresh.never)
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-9"])
        _ = try larder.get("/y", ["Range": "bytes=0-8"])
        #expect(try larder.waitForDocuments(2))
        let requests = origin.count()
        #expect(try larder.get("/y", ["Larder-View": "raw", "Cache-Control": "no-store"]).text == Self.digits)
        #expect(try larder.request("HEAD", "/y")["Content-Length"] == "10")
        #expect(origin.count() == requests + 2)
        _ = try larder.command("mode", "online")
        origin.stop()
        for fields in [[:], ["Larder-View": "raw"], ["Cache-Control": "max-stale"]] as [FieldLines] {
            #expect(try larder.get("/y", fields).status == 502)
            #expect(try larder.request("HEAD", "/y", fields).status == 502)
        }
        // What is asked for is known, and nobody can be asked.
        #expect(try larder.get("/y", ["Range": "bytes=1-2"]).text == "12")
        #expect(try larder.get("/y", ["Cache-Control": "only-if-cached"]).status == 504)
        _ = try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#)
        #expect(try larder.get("/y").status == 504)
        #expect(try larder.request("HEAD", "/y").status == 504)
        #expect(try larder.get("/y", ["Range": "bytes=5-9"]).status == 504)
        let part = try larder.get("/y", ["Range": "bytes=1-2"])
        #expect(part.status == 206 && part.text == "12" && part.cacheStatus.contains("detail=offline"))
        // All of it came, though as a part.
        #expect(try larder.get("/x").text == Self.digits)
    }

    // MARK: Whose, and until when

    @Test func `parts belong to a principal and a variant as all responses do`() throws {
        let origin = try Origin { request in
            let text = "\(request["Authorization"]?.suffix(3) ?? "nil")-\(request["X-Shape"] ?? "none")-0123456789"
            return RangedContent(text, Fresh.hour + ["Vary": "X-Shape"]).answer(request)
        }
        let larder = try Larder(origin)
        let requests: [FieldLines] = [
            ["Authorization": "Bearer aaa", "X-Shape": "round"], ["Authorization": "Bearer bbb", "X-Shape": "round"],
            ["Authorization": "Bearer aaa", "X-Shape": "square"], ["X-Shape": "square"],
        ]
        for fields in requests { #expect(try !larder.get("/x", fields + ["Range": "bytes=0-9"]).isHit) }
        for fields in requests {
            let answer = try larder.get("/x", fields + ["Range": "bytes=0-6"])
            let whose = fields["Authorization"]?.suffix(3) ?? "nil"
            #expect(answer.isHit && answer.text == "\(whose)-\(fields["X-Shape"] ?? "")".prefix(7))
        }
        #expect(origin.count() == requests.count)
    }

    @Test func `RFC 9111 §4.4 a write or a clean removes stored parts, too`() throws {
        let origin = try Origin { request in
            request.method == "GET" ? RangedContent(Self.digits).answer(request) : .empty(204)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x/1", ["Range": "bytes=0-6"])
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.request("PUT", "/x/1", body: "new").status == 204)
        origin.behave { RangedContent("abcdefghij", tag: "\"two\"").answer($0) }
        let answer = try larder.get("/x/1", ["Range": "bytes=2-4"])
        #expect(!answer.isHit && answer.text == "cde")
        #expect(try larder.waitForDocuments(1))
        _ = try CleanTests.clean(larder, #"{"all":true}"#)
        #expect(try larder.documents() == 0)
        #expect(try !larder.get("/x/1", ["Range": "bytes=2-4"]).isHit)
    }

    @Test func `with a model, parts are stored only to complete the whole`() throws {
        let body = #"{"id":1,"login":"ada","name":"n"}"#
        let origin = try Origin { request in
            var content = RangedContent(body)
            content.fields.append("Content-Type", "application/json")
            let answer = content.answer(request)
            return OriginResponse(
                steps: answer.steps.map { step in
                    guard case .send(let bytes) = step else { return step }
                    return .send(
                        Array(
                            String(decoding: bytes, as: UTF8.self).replacing("Content-Type: text/plain\r\n", with: "")
                                .utf8
                        )
                    )
                }
            )
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users/1", ["Range": "bytes=0-9"])
        #expect(try !larder.get("/users/1", ["Range": "bytes=2-4"]).isHit)
        #expect(try larder.get("/users/1").text == body)
        #expect(origin.requests[2]["Range"] == "bytes=10-\(body.utf8.count - 1)")
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.get("/users/1", ["Range": "bytes=2-4"]).isHit)
    }

    @Test func `§14.2 a request that names one range many times gets no copies of it, also without a known length`()
        throws
    {
        let text = String(repeating: "x", count: 100_000)
        let origin = try Origin { request in
            request["Range"] == "bytes=0-99999"
                ? .text(text, Fresh.hour + ["Content-Range": "bytes 0-99999/*", "ETag": "\"one\""], status: 206)
                : .text("the whole", Fresh.hour)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["Range": "bytes=0-99999"])
        #expect(try larder.get("/x", ["Range": "bytes=5-6,1-2"]).byteRanges.count == 2)
        let many = Array(repeating: "0-99999", count: 20).joined(separator: ",")
        #expect(try larder.get("/x", ["Range": "bytes=1-99999,\(many)"]).text == "the whole")
    }

    // MARK: At the same time

    @Test func `clients that ask for the same part at once make one request`() throws {
        let gate = Gate()
        let content = RangedContent(Self.digits, tag: "\"one\"", Fresh.hour)
        let origin = try Origin { content.answer($0).after(gate) }
        let larder = try Larder.patient(origin)
        let answers = Background { try together(20) { _ in try larder.get("/x", ["Range": "bytes=2-6"]) } }
        let other = Background { try larder.get("/x", ["Range": "bytes=0-1"]) }
        #expect(try larder.waitForFollowers(19))
        #expect(origin.waitForRequests(2))
        gate.open()
        let all = try answers.value()
        #expect(all.allSatisfy { $0.status == 206 && $0.text == "23456" && $0["Content-Range"] == "bytes 2-6/10" })
        #expect(all.count { $0.cacheStatus.contains("collapsed") } == 19)
        #expect(try other.value().text == "01")
        #expect(origin.count() == 2)
        #expect(try larder.get("/x", ["Range": "bytes=3-4"]).isHit)
    }

    @Test func `a range request with If-Range, or for another variant, has its own fetch`() throws {
        let gate = Gate()
        let content = RangedContent(Self.digits, tag: "\"one\"", Fresh.hour + ["Vary": "X-Lang"])
        let origin = try Origin { content.answer($0).after(gate) }
        let larder = try Larder.patient(origin)
        let first = Background { try larder.get("/x", ["Range": "bytes=2-6", "X-Lang": "a"]) }
        origin.waitForRequests(1)
        let conditional = Background { try larder.get("/x", ["Range": "bytes=2-6", "If-Range": "\"two\""]) }
        origin.waitForRequests(2)
        let foreign = Background { try larder.get("/x", ["Range": "bytes=2-6", "X-Lang": "b"]) }
        #expect(try larder.waitForFollowers(1))
        gate.open()
        #expect(try first.value().text == "23456")
        #expect(try conditional.value().text == Self.digits)
        #expect(try foreign.value().text == "23456")
        #expect(origin.requests.map { $0["X-Lang"] } == ["a", nil, "b"])
    }
}
