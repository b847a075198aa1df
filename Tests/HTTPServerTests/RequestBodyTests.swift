import Synchronization
import TestSupport
import DaemonTestSupport
import Testing

@testable import HTTPSemantics
@testable import HTTPServer

@Suite(.scripts) struct RequestBodyTests {
    private let continued = "HTTP/1.1 100 Continue\r\n\r\n"

    @Test func `100 Continue is sent when the body is asked for, and once`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for _ in 0..<2 {
                client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n")
                #expect(String(decoding: try client.read(exactly: continued.utf8.count), as: UTF8.self) == continued)
                client.send("hi")
                #expect(try client.answer().text == "POST: hi\n")
            }
        }
    }

    @Test func `100 Continue is not sent once the body has begun to arrive`() async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi")
            #expect(try client.answer().text == "POST: hi\n")
        }
    }

    @Test func `a refused body is never asked for, and the connection ends`() async throws {
        try await withServer(handler: { _, connection in connection.respond(status: 403) }) { server in
            let text = try server.exchange(
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
            )
            #expect(text.hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
            #expect(text.contains("Connection: close\r\n"))
        }
    }

    @Test func `an expectation in HTTP/1.0 is ignored`() async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send("POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi")
            #expect(try client.answer().text == "POST: hi\n")
            #expect(client.readToEnd().isEmpty)
        }
    }

    @Test func `a small unread body is discarded, and the connection stays open`() async throws {
        try await withServer(handler: { _, connection in connection.respond(status: 202) }) { server in
            let client = try server.connect()
            for _ in 0..<3 {
                client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhel")
                let answer = try client.answer()
                #expect(answer.status == 202)
                #expect(answer.fields["connection"] == nil)
                client.send("lo")
            }
            client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
            #expect(try client.answer().status == 202)
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.answer().status == 202)
        }
    }

    @Test func `a large unread body ends the connection after the response`() async throws {
        try await withServer(handler: { _, connection in connection.respond(status: 202) }) { server in
            let client = try server.connect()
            HTTPTestServer.onThread {
                client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n")
                client.send([UInt8](repeating: 0, count: 5_000_000))
            }
            let answer = try client.answer()
            #expect(answer.status == 202)
            #expect(answer.fields["connection"] == "close")
            #expect(client.readToEnd().isEmpty)
        }
    }

    @Test func `a response sent before the body was read does not confuse the next request`() async throws {
        try await withServer(handler: { request, connection in
            connection.takeOver(request).reply.respond(status: 200, fields: Fields(), body: Array("early".utf8))
        }) { server in
            let client = try server.connect()
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\n\r\n")
            #expect(try client.answer().text == "early")
            client.send(String(repeating: "GET", count: 10_000) + "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.answer().text == "early")
        }
    }

    @Test func `an unread body stops at its window, and continues when it is read`() async throws {
        var limits = HTTPLimits()
        limits.bodyWindow = 100_000
        let (filled, take) = (Flag(), Flag())
        try await withServer(
            limits: limits,
            handler: { request, connection in
                let exchange = connection.takeOver(request)
                let body = exchange.request.body!
                body.onAvailable { filled.raise() }
                HTTPTestServer.onLoop {
                    await take.wait()
                    let count = (try? await body.collect(limit: .max).count) ?? -1
                    exchange.reply.respond(status: 200, fields: Fields(), body: Array("\(count)".utf8))
                }
            }
        ) { server in
            let client = try server.connect()
            // Blocks this helper's thread, not the server's, until the body is taken.
            HTTPTestServer.onThread {
                client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50000000\r\n\r\n")
                client.send([UInt8](repeating: 1, count: 50_000_000))
            }
            await filled.wait()
            take.raise()
            #expect(try client.answer().text == "50000000")
        }
    }

    @Test func `a body cut short fails`() async throws {
        let failure = Monitor<RequestBodyError?>(nil)
        let failed = Flag()
        try await withServer(handler: { request, connection in
            let exchange = connection.takeOver(request)
            HTTPTestServer.onLoop {
                do throws(RequestBodyError) {
                    _ = try await exchange.request.body!.collect(limit: 100)
                } catch {
                    failure.withLock { $0 = error }
                }
                failed.raise()
            }
        }) { server in
            do {
                let client = try server.connect()
                client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello")
            }
            await failed.wait()
            #expect(failure.withLock { $0 } == .disconnected)
        }
    }

    @Test func `a body is read in portions of the requested size`() async throws {
        let body = RequestBody(Array("hello".utf8))
        #expect(body.take(max: 2) == .bytes(Array("he".utf8)))
        #expect(body.take(max: 10) == .bytes(Array("llo".utf8)))
        #expect(body.take() == .end)
        await #expect(throws: RequestBodyError.overLimit) { try await RequestBody([1, 2, 3]).collect(limit: 2) }
        #expect(RequestBody([]).take() == .end)
    }
}
