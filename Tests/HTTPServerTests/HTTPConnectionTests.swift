import DaemonTestSupport
import TestSupport
import Testing

@Suite(.scripts) struct HTTPConnectionTests {
    @Test func `a request is answered and the connection stays open`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for _ in 0..<3 {
                client.send("GET /a?b=c HTTP/1.1\r\nHost: example\r\n\r\n")
                let answer = try client.answer()
                #expect(answer.status == 200)
                #expect(answer.text == "GET /a?b=c example\n")
                #expect(answer.fields["connection"] == nil)
                #expect(answer.fields["date"] != nil)
            }
        }
    }

    @Test func `a response of prepared parts is written in one piece`() async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send("GET /ready HTTP/1.1\r\nHost: example\r\n\r\n")
            let expected = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nAge: 1\r\n\r\nready"
            #expect(String(decoding: client.read() ?? [], as: UTF8.self) == expected)
        }
    }

    @Test func `a thousand pipelined requests are answered in order`() async throws {
        try await withServer { server in
            let client = try server.connect()
            HTTPTestServer.onLoop {
                client.send((0..<1000).map { "GET /\($0) HTTP/1.1\r\nHost: h\r\n\r\n" }.joined())
            }
            for number in 0..<1000 { #expect(try client.answer().text == "GET /\(number) h\n") }
        }
    }

    @Test func `a head may arrive one byte at a time`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for byte in "\r\nGET /slow HTTP/1.1\r\nHost: h\r\nAccept: a, b\r\n\r\n".utf8 { client.send([byte]) }
            #expect(try client.answer().text == "GET /slow h\n")
        }
    }

    @Test(arguments: [1, 100, 70_000, 3_000_000])
    func `a body of a known length is read as a whole`(length: Int) async throws {
        try await withServer { server in
            let client = try server.connect()
            HTTPTestServer.onLoop {
                client.send("POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\n")
                client.send([UInt8](repeating: 0x61, count: length))
                client.send("GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
            }
            let text = length > 4096 ? "\(length) bytes" : String(repeating: "a", count: length)
            #expect(try client.answer().text == "POST: \(text)\n")
            #expect(try client.answer().text == "GET /next h\n")
        }
    }
}
