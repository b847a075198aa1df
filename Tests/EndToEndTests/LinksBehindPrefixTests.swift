import Foundation
import TestSupport
import Testing

/// Links and cookies of an API with a base path, which clients reach under a prefix.
@Suite(.scripts) struct LinksBehindPrefixTests {
    private static func shop() throws -> (larder: Larder, origin: Origin) {
        let origin = try Origin { request in
            if request.path == "/v2/login" {
                return .json("{}", ["Set-Cookie": "sid=7; Domain=shop.example; Path=/v2; Secure; HttpOnly"])
            }
            let page = request.path.hasSuffix("2") ? "null" : #""/v2/orders/2?page=2""#
            return .json(
                #"{"next":\#(page),"cookie":"\#(request.fields["Cookie"] ?? "")"}"#,
                Fresh.hour + ["Next-Page": "/v2/orders/2?page=2", "Content-Location": "\(request.path)"]
            )
        }
        let config = "upstreams: { shop: { url: \"\(origin.url)/v2\", prefix: /shop, rewrite_links: true } }"
        return (try Larder(origin, config: config), origin)
    }

    @Test func `relative links lead to Larder, from the cache, too`() throws {
        let (larder, origin) = try Self.shop()
        for round in 0..<2 {
            let first = try larder.get("/shop/orders/1")
            #expect(first.isHit == (round == 1))
            #expect(first.object["next"] as? String == "/shop/orders/2?page=2")
            #expect(first["Next-Page"] == "/shop/orders/2?page=2" && first["Content-Location"] == "/shop/orders/1")
            #expect(try larder.get(first["Next-Page"] ?? "").object["next"] is NSNull)
            #expect(try larder.waitForQuiet())
        }
        #expect(origin.requests.map(\.path) == ["/v2/orders/1", "/v2/orders/2"])
        #expect(try larder.get("/shop/orders/1", ["Larder-View": "raw"]).text.contains("/v2/orders/2"))
    }

    @Test(arguments: ["POST", "PUT", "PATCH"])
    func `links in the response to a write lead to Larder, too`(method: String) throws {
        let (larder, _) = try Self.shop()
        let json: FieldLines = ["Content-Type": "application/json"]
        let answer = try larder.request(method, "/shop/orders/1", json, body: "{}")
        #expect(answer.status == 200 && answer.object["next"] as? String == "/shop/orders/2?page=2")
        #expect(answer["Content-Length"] == "\(answer.body.count)")
        let mapped = try larder.request(method, "/shop/orders/1", json + ["Larder-View": "mapped"], body: "{}")
        #expect(mapped.object["next"] as? String == "/shop/orders/2?page=2")
        let raw = try larder.request(method, "/shop/orders/1", json + ["Larder-View": "raw"], body: "{}")
        #expect(raw.text.contains(#""/v2/orders/2?page=2""#))
    }

    @Test func `curl keeps the upstream's session cookie behind a prefix`() throws {
        let (larder, _) = try Self.shop()
        let jar = larder.folder.file("cookies")
        func curl(_ path: String) throws -> String {
            try TestProcess.run("curl", ["-sS", "-b", jar, "-c", jar, "http://127.0.0.1:\(larder.port)\(path)"])
        }
        _ = try curl("/shop/login")
        #expect(try curl("/shop/orders/1").contains(#""cookie":"sid=7""#))
    }

    @Test func `a recording has the API's own links, and a replay's lead to Larder as its settings say`() throws {
        let next = "/base/v2/orders?page=2"
        let origin = try Origin { _ in .json(#"{"next":"\#(next)"}"#, ["Link": "<\(next)>; rel=next"]) }
        func links(_ larder: Larder) throws -> [String] {
            let first = try larder.get("/v2/orders")
            #expect(try larder.get("/v2/orders?page=2").status == 200)
            return [first["Link"] ?? "", first.object["next"] as? String ?? ""]
        }
        let all = ["</v2/orders?page=2>; rel=next", "/v2/orders?page=2"]
        let fieldsOnly = [all[0], next]
        for (settings, expected) in [(", rewrite_links: true", all), ("", fieldsOnly)] {
            let recording = RecordedFolder()
            let config = "upstreams: { api: { url: \"\(origin.url)/base\"\(settings) } }"
            try recording.record(origin, config: config) { (larder: Larder) throws -> Void in
                #expect(try links(larder) == expected)
            }
            #expect(recording.lines[0].contains("Link: <\(next)>"))
            #expect(recording.files["bodies/000001.indented.json"]?.contains(next) == true)
            #expect(try links(Larder.replaying(recording.path)) == expected)
            guard settings.isEmpty else { continue }
            let manifest = String(decoding: recording.files["recording.yaml"] ?? [], as: UTF8.self)
            let changed = manifest.replacing("    url:", with: "    rewrite_links: true\n    url:")
            try recording.write(changed, to: "recording.yaml")
            #expect(try links(Larder.replaying(recording.path)) == all)
        }
    }
}
