import Store
import Testing

@testable import HTTPSemantics
@testable import Proxy
@testable import Settings

@Suite struct RenderingTests {
    @Test func `a response shown as received keeps its validators and bytes`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request(of: upstream)
        let ready = ProxyFixture.answer(
            [("ETag", "\"a\""), ("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT"), ("X-Own", "b")],
            body: #"{"a":1.0}"#,
            of: upstream,
            for: request
        )
        #expect(ready.fields.text("etag") == "\"a\"")
        #expect(ready.fields.contains("last-modified"))
        #expect(ready.body == Array(#"{"a":1.0}"#.utf8))
        #expect(ready.base == nil)
        let head = String(decoding: ready.head, as: UTF8.self)
        #expect(head.hasPrefix("HTTP/1.1 200 OK\r\nETag: \"a\"\r\n"))
        #expect(head.hasSuffix("Content-Length: 9\r\n"))
    }

    @Test func `a composed response has Larder's own entity tag, and no field about other bytes`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request(of: upstream)
        let fields = [
            ("ETag", "\"a\""), ("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT"), ("Content-Digest", "sha-256=:x:"),
            ("Signature", "x"),
        ]
        let one = ProxyFixture.answer(fields, body: "[1]", form: .composed, of: upstream, for: request)
        let other = ProxyFixture.answer(fields, body: "[2]", form: .composed, of: upstream, for: request)
        #expect(one.fields.text("etag")?.hasPrefix("\"larder-") == true)
        #expect(one.fields.text("etag") != other.fields.text("etag"))
        for name in ["last-modified", "content-digest", "signature"] {
            #expect(one.fields.combined(name) == nil)
        }
        let again = ProxyFixture.answer(fields, body: "[1]", form: .composed, of: upstream, for: request)
        #expect(again.fields.text("etag") == one.fields.text("etag"))
    }

    @Test func `links lead back to the address that the client used`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request(of: upstream)
        let ready = ProxyFixture.answer(
            [("Link", "<https://api.example.com/x?page=2>; rel=\"next\", <https://other.example/>; rel=\"up\"")],
            of: upstream,
            for: request
        )
        #expect(
            ready.fields.text("link")
                == "<http://localhost:8787/x?page=2>; rel=\"next\", <https://other.example/>; rel=\"up\""
        )
        #expect(ready.base == ClientAuthority(authority: "localhost:8787"))
    }

    @Test func `links in bodies are rewritten only where configured, and the body has its own entity tag`() throws {
        let body = #"{"url":"https://api.example.com/users/1","text":"see https://api.example.com"}"#
        let fields = [("Content-Type", "application/json"), ("ETag", "\"a\"")]
        let plain = try ProxyFixture.upstream()
        let request = ProxyFixture.request(of: plain)
        #expect(ProxyFixture.answer(fields, body: body, of: plain, for: request).body == Array(body.utf8))

        let rewriting = try ProxyFixture.upstream { $0.rewriteLinks = true }
        let ready = ProxyFixture.answer(fields, body: body, of: rewriting, for: request)
        #expect(
            String(decoding: ready.body, as: UTF8.self)
                == #"{"url":"http://localhost:8787/users/1","text":"see https://api.example.com"}"#
        )
        #expect(ready.fields.text("etag")?.hasPrefix("\"larder-") == true)
        #expect(ready.response.body == Array(body.utf8))
    }
}
