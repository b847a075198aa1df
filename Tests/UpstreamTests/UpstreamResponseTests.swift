import Foundation
import Testing

@testable import HTTPSemantics
@testable import Upstream

@Suite struct `Upstream responses` {
    @Test func `a response's head and body arrive as they were sent`() async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil {
                connection.write(
                    "HTTP/1.1 299 Fine, \u{FC}ber\r\nX-One: 1\r\nx-two:  b  c \t\r\nX-One: 2\r\nX-Empty:\r\n"
                        + "Content-Length: 5\r\n\r\nhello"
                )
            }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url + "/x")
        #expect(answer.error == nil)
        #expect(answer.head?.status == 299)
        #expect(answer.head?.version == .http11)
        #expect(answer.head?.reason == Array("Fine, \u{FC}ber".utf8))
        #expect(
            answer.head?.fields.lines == [
                Field("X-One", "1"), Field("x-two", "b  c"), Field("X-One", "2"), Field("X-Empty", ""),
                Field("Content-Length", "5"),
            ]
        )
        #expect(answer.text == "hello")
        #expect(answer.summary == TransferSummary(bodyBytes: 5, wireBytes: 5, reusedConnection: false, attempts: 1))
    }

    @Test func `libcurl adds no field of its own to a request`() async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil { connection.answer("") }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        _ = await bench.get(server.url + "/", Fields([Field("Host", "api.example"), Field("X-Empty", "")]))
        #expect(
            server.heads == [
                "GET / HTTP/1.1\r\nHost: api.example\r\nX-Empty:\r\nAccept-Encoding: \(ContentDecoder.codings)\r\n\r\n"
            ]
        )
        var undecoded = UpstreamRequest(
            method: "GET",
            url: server.url + "/",
            fields: Fields([Field("Range", "bytes=0-1")])
        )
        undecoded.decodes = false
        _ = await bench.send(undecoded)
        #expect(server.heads[1] == "GET / HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nRange: bytes=0-1\r\n\r\n")
    }

    @Test(arguments: [
        "/a/../b/./c", "/%2e%2E/%7euser", "//double//", "/a?", "/a?b?c=%zz&d", "/?", "/a;b,c'd(e)|f\"g<h>",
    ])
    func `a target is sent as it is spelled`(target: String) async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil { connection.answer("") }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url + target)
        #expect(answer.error == nil)
        #expect(server.heads.first?.hasPrefix("GET \(target) HTTP/1.1\r\n") == true)
    }

    @Test(arguments: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "x-Own"])
    func `a method is sent as it is`(method: String) async throws {
        let server = RawServer { connection in
            while let head = connection.readHead() {
                if head.hasPrefix("HEAD ") {
                    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n")
                } else {
                    connection.answer("ok")
                }
            }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        for _ in 0..<2 {
            let answer = await bench.send(UpstreamRequest(method: method, url: server.url + "/"))
            #expect(answer.error == nil)
            #expect(answer.text == (method == "HEAD" ? "" : "ok"))
        }
        #expect(server.heads.count == 2)
        #expect(server.connectionCount == 1)
        for head in server.heads {
            #expect(head.hasPrefix("\(method) / HTTP/1.1\r\n"))
            #expect(head.contains("Content-Length: 0") == ["POST", "PUT", "PATCH"].contains(method))
            #expect(!head.contains("Transfer-Encoding"))
        }
    }

    @Test(arguments: ["Content-Length: 4\r\n\r\nfour", "Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n"])
    func `bytes after a 205 are no body, and the next response is not taken for it`(rest: String) async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil { connection.write("HTTP/1.1 205 Reset Content\r\n\(rest)") }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        for _ in 0..<2 {
            let answer = await bench.get(server.url)
            #expect(answer.error == nil)
            #expect(answer.head?.status == 205)
            #expect(answer.head?.fields.lines == [Field("Content-Length", "0")])
            #expect(answer.text == "")
        }
        #expect(server.connectionCount == 1)
    }

    @Test func `hop-by-hop fields, and those that Connection names, are not forwarded`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write(
                "HTTP/1.1 200 OK\r\nConnection: close, X-Private , cache-control\r\nKeep-Alive: timeout=5\r\nX-Private: 1\r\n"
                    + "Cache-Control: no-store\r\nTrailer: X-T\r\nProxy-Authenticate: Basic\r\nX-Public: 1\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: dropped\r\n\r\n"
            )
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(
            server.url,
            Fields([Field("Connection", "x-hop"), Field("X-Hop", "1"), Field("TE", "trailers"), Field("X-End", "1")])
        )
        #expect(answer.head?.fields.lines == [Field("Cache-Control", "no-store"), Field("X-Public", "1")])
        #expect(answer.text == "ok")
        #expect(answer.error == nil)
        let head = try #require(server.heads.first).lowercased()
        #expect(
            head.contains("x-end: 1") && !head.contains("x-hop") && !head.contains("te:")
                && !head.contains("connection")
        )
    }

    @Test func `interim responses except 100 are passed on`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 100 Continue\r\n\r\n")
            connection.write("HTTP/1.1 102 Processing\r\n\r\n")
            connection.write("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nLink: </b>\r\n\r\n")
            connection.answer("done")
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.informational.map(\.status) == [102, 103])
        #expect(answer.informational.last?.fields.all("link").count == 2)
        #expect(answer.head?.status == 200)
        #expect(answer.text == "done")
    }

    @Test(arguments: ["301 Moved", "302 Found", "307 Temporary", "401 Unauthorized", "407 Proxy", "417 No"])
    func `redirects and challenges are passed on`(status: String) async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil {
                connection.answer(
                    "see",
                    status: status,
                    fields: "Location: /other\r\nWWW-Authenticate: Basic\r\nSet-Cookie: a=b\r\n"
                )
            }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        for _ in 0..<2 {
            let answer = await bench.get(server.url)
            #expect(answer.head?.status == Int(status.prefix(3)))
            #expect(answer.head?.fields.text("location") == "/other")
            #expect(answer.text == "see")
        }
        #expect(server.heads.count == 2)
        #expect(server.heads.allSatisfy { !$0.contains("Cookie") })
    }

    @Test func `a body may end with its connection`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nuntil the end")
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == nil)
        #expect(answer.head?.version == .http10)
        #expect(answer.text == "until the end")
    }

    @Test func `folded lines are joined, equal lengths merged, and blanks before the colon removed`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write(
                "HTTP/1.1 200 OK\r\nX-Fold: a\r\n  b\r\n\tc\r\nContent-Length: 2, 2\r\nX-Space : y\r\nContent-Length: 2\r\n\r\nok"
            )
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(
            answer.head?.fields.lines == [
                Field("X-Fold", "a b c"), Field("Content-Length", "2"), Field("X-Space", "y"),
            ]
        )
        #expect(answer.text == "ok")
    }

    @Test func `a Unix socket serves as an upstream`() async throws {
        let path = NSTemporaryDirectory() + "larder-\(UUID().uuidString.prefix(8)).sock"
        let server = RawServer(unixPath: path) { connection in
            while connection.readHead() != nil { connection.answer("local") }
        }
        defer {
            server.stop()
            unlink(path)
        }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        for _ in 0..<2 {
            let answer = await bench.send(UpstreamRequest(method: "GET", url: "http://service/x", unixSocket: path))
            #expect(answer.text == "local")
        }
        #expect(server.connectionCount == 1)
        #expect(server.heads.first?.contains("Host: service\r\n") == true)
        let missing = await bench.send(UpstreamRequest(method: "GET", url: "http://service/x", unixSocket: path + "-"))
        #expect(missing.error?.label == "refused")
    }

    @Test func `a request that cannot be put on the wire is refused`() async throws {
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let bad = [
            UpstreamRequest(method: "GE T", url: "http://127.0.0.1:1/"),
            UpstreamRequest(method: "GET", url: "http://127.0.0.1:1/a b"),
            UpstreamRequest(method: "GET", url: "ftp://127.0.0.1:1/"),
            UpstreamRequest(method: "GET", url: "http://[::1/"),
            UpstreamRequest(method: "GET", url: "http://127.0.0.1:1/", fields: Fields([Field("A", "b\r\nC: d")])),
            UpstreamRequest(method: "GET", url: "http://127.0.0.1:1/", fields: Fields([Field("A b", "c")])),
        ]
        for request in bad {
            let answer = await bench.send(request)
            #expect(answer.error?.label == "invalid_request")
            #expect(answer.error?.requestMayHaveBeenProcessed == false)
        }
    }
}
