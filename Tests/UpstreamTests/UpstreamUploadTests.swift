import Foundation
import Glibc
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Upstream

@Suite struct `Upstream uploads` {
    /// Responses with the body it got, whatever its framing.
    static func echo() -> RawServer {
        RawServer { connection in
            while let head = connection.readHead() {
                let isChunked = head.contains("Transfer-Encoding: chunked")
                let body =
                    isChunked
                    ? connection.readChunkedBody() : connection.readBody(`Upstream connections`.contentLength(head))
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n")
                connection.write(body)
            }
        }
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "GET", "QUERY"], [0, 1, 65536, 300_000])
    func `a body of known length arrives whole and unframed`(method: String, length: Int) async throws {
        let server = Self.echo()
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let bytes = [UInt8](repeating: 31, count: length)
        let body = RequestBody(length: length, bytes, ended: true)
        let answer = await bench.send(UpstreamRequest(method: method, url: server.url, body: body))
        #expect(answer.error == nil)
        #expect(answer.body == bytes)
        let head = try #require(server.heads.first)
        #expect(!head.contains("Transfer-Encoding"))
        #expect(!head.contains("Expect"))
        #expect(length == 0 || head.contains("Content-Length: \(length)\r\n"))
    }

    @Test func `a body of unknown length goes in chunks, with the client's own framing fields dropped`() async throws {
        let server = Self.echo()
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let fields = Fields([
            Field("Transfer-Encoding", "chunked"), Field("Content-Length", "3"), Field("Expect", "100-continue"),
            Field("Content-Type", "text/plain"),
        ])
        let body = RequestBody(length: nil, Array("hello".utf8), ended: true)
        let answer = await bench.send(UpstreamRequest(method: "POST", url: server.url, fields: fields, body: body))
        #expect(answer.text == "hello")
        let head = try #require(server.heads.first)
        #expect(head.contains("Transfer-Encoding: chunked\r\n") && !head.contains("Content-Length"))
        #expect(!head.contains("Expect") && head.contains("Content-Type: text/plain\r\n"))
    }

    @Test(arguments: [nil, 12]) func `a body is sent as it arrives`(length: Int?) async throws {
        let server = Self.echo()
        defer { server.stop() }
        // The client's slowness is not the upstream's: neither timeout may count it.
        for limit in [`Upstream failures`.Limit.firstByte, .stall] {
            let bench = try UpstreamBench(`Upstream failures`.hasty(limit))
            defer { bench.stop() }
            let answer = try await `Upstream failures`.patiently {
                let body = RequestBody(length: length)
                async let answer = bench.send(UpstreamRequest(method: "POST", url: server.url, body: body))
                for part in ["one ", "two ", "four"] {
                    try await Task.sleep(for: .milliseconds(250))
                    body.append(Array(part.utf8))
                }
                body.complete()
                return await answer
            }
            #expect(answer.error == nil)
            #expect(answer.text == "one two four")
        }
    }

    @Test func `a slow upstream holds the body back`() async throws {
        let go = Gate()
        let server = RawServer { connection in
            guard let head = connection.readHead() else { return }
            go.wait()
            connection.answer("\(connection.readBody(`Upstream connections`.contentLength(head)).count)")
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let size = 50_000_000
        let client = EagerClient(size: size)
        async let answer = bench.send(UpstreamRequest(method: "PUT", url: server.url, body: client.body()))
        // Taken until the kernel's buffers are full, and no further.
        var sent = 0
        while sent == 0 || sent != client.sent {
            sent = client.sent
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(sent > 0 && sent < 20_000_000)
        go.open()
        #expect(await answer.text == "\(size)")
    }

    @Test(arguments: [nil, 100]) func `a client that leaves ends its upload`(length: Int?) async throws {
        let gone = Gate()
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.waitForClose()
            gone.open()
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let body = RequestBody(length: length, Array("half".utf8))
        async let answer = bench.send(UpstreamRequest(method: "POST", url: server.url, body: body))
        while !body.isWanted { try await Task.sleep(for: .milliseconds(5)) }
        body.fail(.disconnected)
        #expect(await answer.error == .requestBodyFailed("the client left"))
        await gone.waitAsync()
    }

    @Test(arguments: ["too short", "much much too long"])
    func `a body that is not as long as declared fails`(text: String) async throws {
        let server = Self.echo()
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let body = RequestBody(length: 12, Array(text.utf8), ended: true)
        let answer = await bench.send(UpstreamRequest(method: "PUT", url: server.url, body: body))
        #expect(answer.error?.label == "request_body_failed")
    }

    @Test(arguments: ["200 OK", "413 Too Large", "303 See Other"])
    func `a response that comes before the body is whole is passed on`(status: String) async throws {
        let answered = Gate()
        let server = RawServer { connection in
            guard let head = connection.readHead() else { return }
            connection.answer("early", status: status)
            _ = connection.readBody(`Upstream connections`.contentLength(head))
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let body = RequestBody(length: 10, Array("begin".utf8))
        async let answer = bench.send(UpstreamRequest(method: "POST", url: server.url, body: body)) { recorder in
            recorder.onBody = { _, _ in
                answered.open()
                return .proceed
            }
        }
        await answered.waitAsync()
        body.append(Array("--end".utf8))
        body.complete()
        let result = await answer
        #expect(result.error == nil)
        #expect(result.head?.status == Int(status.prefix(3)))
        #expect(result.text == "early")
    }

    @Test(arguments: [200, 413]) func `an early response is passed on although the upstream then closes the connection`(
        status: Int
    )
        async throws
    {
        let read = Gate()
        let server = RawServer { connection in
            _ = connection.readHead()
            _ = connection.readBody(100_000)
            connection.answer("enough", status: "\(status) X")
            // Unread bytes make the kernel send a reset, which must not overtake the response.
            read.wait()
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let size = 30_000_000
        let body = RequestBody(length: size, [UInt8](repeating: 1, count: size), ended: true)
        let answer = await bench.send(UpstreamRequest(method: "POST", url: server.url, body: body)) { recorder in
            recorder.onBody = { _, _ in
                read.open()
                return .proceed
            }
        }
        #expect(answer.head?.status == status)
        #expect(answer.text == "enough")
        #expect(answer.error == nil)
        #expect(server.heads.count == 1)
    }
}
