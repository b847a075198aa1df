import Foundation
import Glibc
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Upstream

@Suite struct `Upstream failures` {
    /// Options with one short limit, so that nobody waits for a hanging server.
    ///
    /// The others are long: on a busy machine what is not meant to run into them must not.
    static func hasty(_ limit: Limit) -> UpstreamOptions {
        var options = UpstreamBench.options
        switch limit {
        case .connect: options.timeouts.connect = .milliseconds(200)
        case .firstByte: options.timeouts.firstByte = .milliseconds(200)
        case .stall: options.timeouts.stall = .milliseconds(200)
        }
        return options
    }

    enum Limit { case connect, firstByte, stall }

    /// What keeps within a limit on a machine that has time for it.
    ///
    /// A machine that has none lets the limit pass; then there is another try. What is wrong fails each time.
    static func patiently(_ attempt: () async throws -> ReceivedResponse) async rethrows -> ReceivedResponse {
        var answer = try await attempt()
        for _ in 0..<20 where answer.error?.isTimeout == true { answer = try await attempt() }
        return answer
    }

    @Test func `a refused connection has its own error`() async throws {
        // Bound, so that nobody else is given the port, and not listening.
        let place = RawServer.bound()
        defer { close(place.descriptor) }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get("http://127.0.0.1:\(place.port)")
        #expect(answer.error?.label == "refused")
        #expect(answer.error?.requestMayHaveBeenProcessed == false)
    }

    @Test func `an unknown host name has its own error`() async throws {
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get("http://nothing.invalid/")
        #expect(answer.error?.label == "could_not_resolve")
    }

    @Test func `an upstream that accepts no connection runs into the connect timeout`() async throws {
        // A full backlog: the kernel leaves further connections waiting.
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let connecting = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length)
                listen(listener, 0)
                getsockname(listener, pointer, &length)
                return (0..<4).map { _ in
                    let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
                    connect(client, pointer, length)
                    return client
                }
            }
        }
        defer { for client in connecting { close(client) } }
        let bench = try UpstreamBench(Self.hasty(.connect))
        defer { bench.stop() }
        let answer = await bench.get("http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/")
        #expect(answer.error == .connectTimeout)
        #expect(answer.error?.isTimeout == true)
    }

    @Test func `an upstream that never responds runs into the first-byte timeout`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.waitForClose()
        }
        defer { server.stop() }
        let bench = try UpstreamBench(Self.hasty(.firstByte))
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == .firstByteTimeout)
        #expect(answer.error?.requestMayHaveBeenProcessed == true)
    }

    @Test func `a head that trickles in runs into the first-byte timeout`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\n")
            while connection.write("X-A: 1\r\n") { usleep(20_000) }
        }
        defer { server.stop() }
        let bench = try UpstreamBench(Self.hasty(.firstByte))
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == .firstByteTimeout)
    }

    @Test func `a body that stops arriving has stalled, one that trickles has not`() async throws {
        let server = RawServer { connection in
            guard let head = connection.readHead() else { return }
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
            for _ in 0..<(head.hasPrefix("GET /trickle") ? 10 : 3) {
                connection.write("x")
                usleep(50_000)
            }
            connection.waitForClose()
        }
        defer { server.stop() }
        let bench = try UpstreamBench(Self.hasty(.stall))
        defer { bench.stop() }
        let stalled = await bench.get(server.url + "/stop")
        #expect(stalled.error == .stalled)
        #expect("xxx".hasPrefix(stalled.text))
        let trickled = await Self.patiently { await bench.get(server.url + "/trickle") }
        #expect(trickled.error == nil)
        #expect(trickled.text == "xxxxxxxxxx")
    }

    @Test func `an event stream may be quiet when its delegate allows it`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            usleep(500_000)
            connection.write("data: late\n\n")
        }
        defer { server.stop() }
        let bench = try UpstreamBench(Self.hasty(.stall))
        defer { bench.stop() }
        let answer = await bench.send(UpstreamRequest(method: "GET", url: server.url)) { recorder in
            recorder.onHead = { $0.transfer?.setStallTimeout(nil) }
        }
        #expect(answer.error == nil)
        #expect(answer.text == "data: late\n\n")
    }

    @Test func `interim responses prolong the wait for the final one`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            for _ in 0..<8 {
                connection.write("HTTP/1.1 102 Processing\r\n\r\n")
                usleep(60_000)
            }
            connection.answer("long")
        }
        defer { server.stop() }
        let bench = try UpstreamBench(Self.hasty(.firstByte))
        defer { bench.stop() }
        let answer = await Self.patiently { await bench.get(server.url) }
        #expect(answer.informational.count == 8)
        #expect(answer.text == "long")
    }

    @Test func `a reset in the middle gives the bytes so far and an error`() async throws {
        let gate = Gate()
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour")
            gate.wait()
            connection.reset()
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.send(UpstreamRequest(method: "GET", url: server.url)) { recorder in
            recorder.onBody = { _, _ in
                gate.open()
                return .proceed
            }
        }
        #expect(answer.error == .reset(afterBytes: 4))
        #expect(answer.text == "four")
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Le"])
    func `a connection closed before the head is whole is a reset`(sent: String) async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write(sent)
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == .reset(afterBytes: 0))
        #expect(server.heads.count == 1)
    }

    @Test(arguments: [
        ("Content-Length: 10\r\n\r\nfour", UpstreamError.truncated(expected: 10, got: 4)),
        ("Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n", .truncated(expected: nil, got: 4)),
        ("Transfer-Encoding: chunked\r\n\r\n9\r\nfour", .truncated(expected: nil, got: 4)),
    ])
    func `a body cut short is truncated`(rest: String, error: UpstreamError) async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\n\(rest)")
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == error)
        #expect(answer.text == "four")
    }

    @Test func `bytes after the announced length are not taken for the next response`() async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil {
                connection.write(
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
                )
            }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        for _ in 0..<3 {
            let answer = await bench.get(server.url)
            #expect(answer.error == nil)
            #expect(answer.text == "ok")
        }
        #expect(server.connectionCount == 3)
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9.2\r\n", "\u{0}\u{1}\u{2}garbage", "<html>hello</html>\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabcd", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nX: a\u{0}b\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nfoo",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nfour\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfourXX0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nfour",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
    ])
    func `a response that is not valid HTTP is an error of its own`(garbage: String) async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write(garbage)
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error?.label == "bad_response", "\(String(describing: answer.error))")
        #expect(server.heads.count == 1)
    }

    @Test(arguments: [
        "X-A: \(String(repeating: "a", count: 1000))\r\n", "X-A: \(String(repeating: "b", count: 200_000))\r\n",
    ])
    func `a response with 100 MB of header fields ends at the limit`(line: String) async throws {
        let sent = Gate()
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\n")
            let block = Array(String(repeating: line, count: 1_000_000 / line.utf8.count).utf8)
            for _ in 0..<100 {
                guard connection.write(block) else { break }
            }
            sent.open()
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == .headTooLarge)
        #expect(answer.head == nil)
        await sent.waitAsync()
    }

    @Test func `endless interim responses end at the limit`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            let block = Array(String(repeating: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", count: 1000).utf8)
            while connection.write(block) {}
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == .headTooLarge)
    }

    @Test func `endless trailers end at the limit`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n")
            let block = Array(String(repeating: "X-Trailer: 1\r\n", count: 1000).utf8)
            while connection.write(block) {}
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == .headTooLarge)
    }

    @Test func `a request that gets no connection in time fails with its own error`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.waitForClose()
        }
        defer { server.stop() }
        var options = UpstreamBench.options
        options.maxConnectionsPerHost = 1
        // What waits for a connection may also take the time to connect.
        (options.timeouts.queue, options.timeouts.connect) = (.milliseconds(100), .seconds(10))
        options.timeouts.firstByte = .seconds(3_600)
        let bench = try UpstreamBench(options)
        defer { bench.stop() }
        let url = server.url
        // Keeps the one connection there may be until the second has been told.
        async let first = bench.get(url)
        while server.heads.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        let second = await bench.get(url)
        #expect(second.error == .queueTimeout)
        await bench.onLoop { $0.cancelAll() }
        #expect(await first.error == .cancelled)
        #expect(server.heads.count == 1)
    }
}
