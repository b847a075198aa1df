import Foundation
import TestSupport
import Testing

/// The tools of these tests, tried on each other before anything is concluded from them.
@Suite(.scripts) struct HarnessTests {
    @Test func `the test origin sends scripted responses, and counts requests`() throws {
        let origin = try Origin { .json(#"{"you asked":"\#($0.target)"}"#, ["ETag": #""one""#]) }
        let client = try Client(port: origin.port)

        let first = try client.get("/users?page=2", ["Accept": "application/json"])
        let second = try client.get("/users?page=3")

        #expect(first.status == 200)
        #expect(first.text == #"{"you asked":"/users?page=2"}"#)
        #expect(first["etag"] == #""one""#)
        #expect(second.object["you asked"] as? String == "/users?page=3")
        #expect(origin.count("/users") == 2)
        #expect(origin.connections == 1)
        #expect(origin.requests[0]["Accept"] == "application/json")
    }

    @Test func `pipelined requests are answered in order`() throws {
        let origin = try Origin { .text($0.target) }
        let client = try Client(port: origin.port)
        try client.send((1...5).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined())
        let bodies = try (1...5).map { _ in try client.response().text }
        #expect(bodies == ["/1", "/2", "/3", "/4", "/5"])
    }

    @Test func `chunks and trailers arrive as they were sent`() throws {
        let origin = try Origin { _ in .chunked([Array("ab".utf8), Array("c".utf8)], trailers: ["Digest": "x"]) }
        let response = try Client(port: origin.port).get("/")
        #expect(response.chunks.map(\.count) == [2, 1])
        #expect(response.text == "abc")
        #expect(response.trailers["digest"] == "x")
    }

    @Test func `request bodies are read, whether they have a length or come in chunks`() throws {
        let origin = try Origin { .body($0.body) }
        let client = try Client(port: origin.port)
        #expect(try client.request("POST", "/", body: "hello").text == "hello")
        try client.send(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
        )
        #expect(try client.response().text == "abcde")
    }

    @Test func `a scripted response waits for its gate`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.text("0123456789").split(at: 40, by: gate) }
        let client = try Client(port: origin.port)
        try client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(origin.waitForRequests(1))
        gate.open()
        #expect(try client.response().text == "0123456789")
    }

    @Test func `a stopped origin refuses connections, and can serve again on its port`() throws {
        let origin = try Origin(["/": .text("here")])
        let client = try Client(port: origin.port)
        #expect(try client.get("/").text == "here")
        origin.stop()
        #expect(try client.isClosed())
        #expect(throws: SocketError.refused) { try Client(port: origin.port) }
        try origin.restart()
        #expect(try Client(port: origin.port).get("/").text == "here")
    }

    @Test func `the test client sees a reset as a reset, and a close as an end`() throws {
        let origin = try Origin {
            $0.path == "/reset" ? .reset : .raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
        }
        #expect(throws: SocketError.reset) { try Client(port: origin.port).get("/reset") }
        #expect(throws: SocketError.closed) { try Client(port: origin.port).get("/short") }
    }

    @Test func `HEAD, 204 and 304 have no body`() throws {
        let origin = try Origin { request in
            switch request.path {
            case "/204": .empty(204)
            case "/304": .notModified(["ETag": "x"])
            default: .text("body")
            }
        }
        let client = try Client(port: origin.port)
        #expect(try client.request("HEAD", "/")["Content-Length"] == "4")
        #expect(try client.get("/204").status == 204)
        #expect(try client.get("/304").status == 304)
        #expect(try client.get("/").text == "body")
    }

    @Test func `a child process's output and exit status are captured`() throws {
        let child = try TestProcess("sh", ["-c", "echo out; echo err >&2; exit 3"])
        #expect(child.waitForEnd() == .exited(3))
        #expect(child.output == "out\n")
        #expect(child.errors == "err\n")
        let sleeper = try TestProcess("sleep", ["100"])
        sleeper.signal(SIGTERM)
        #expect(sleeper.waitForEnd() == .killed(by: SIGTERM))
    }

    @Test func `a child process gets the given descriptors`() throws {
        let folder = TemporaryFolder()
        let listener = try Socket.listen(unix: folder.file("s"))
        let child = try TestProcess("sh", ["-c", "readlink /proc/$$/fd/3"], descriptors: [listener.descriptor])
        #expect(child.waitForEnd() == .exited(0))
        #expect(child.output.hasPrefix("socket:"))
    }

    @Test func `scripts that wait do not keep each other from running`() async {
        // More than Swift's own threads, and each waits for all the others.
        let count = ProcessInfo.processInfo.activeProcessorCount + 1
        let arrived = Monitor(0)
        let haveAllMet = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                group.addTask {
                    arrived.withLock { $0 += 1 }
                    return arrived.wait { $0 == count }
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(haveAllMet)
    }
}
