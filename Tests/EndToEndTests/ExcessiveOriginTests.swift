import Foundation
import TestSupport
import Testing

/// However much an upstream sends: it takes neither the daemon's memory nor its responses.
@Suite(.scripts) struct ExcessiveOriginTests {
    @Test func `an endless head gives a problem document, and uses little memory`() throws {
        let line = Array(("X-Filler: " + String(repeating: "x", count: 8000) + "\r\n").utf8)
        let origin = try Origin { _ in
            OriginResponse(steps: [.send(Array("HTTP/1.1 200 OK\r\n".utf8)), .flood(line, times: 12_500), .close])
        }
        let larder = try Larder(origin)
        let before = larder.residentMemory
        let answer = try larder.get("/x")
        #expect(answer.status == 502)
        #expect(answer.isProblem)
        #expect(larder.residentMemory - before < 32 << 20)
        origin.always(.json("[]"))
        #expect(try larder.get("/x").text == "[]")
    }

    @Test func `a body of 200 MB is passed on whole, is not stored, and uses little memory`() throws {
        let megabyte = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
        let origin = try Origin { _ in
            OriginResponse(steps: [
                .send(OriginResponse.head(200, "OK", Fresh.hour + ["Content-Length": "\(200 << 20)"])),
                .flood(megabyte, times: 200),
            ])
        }
        let larder = try Larder(origin)
        let client = try larder.client()
        try client.send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try client.head().status == 200)
        var highest = 0
        for _ in 1...200 {
            #expect(try client.bytes(1 << 20).count == 1 << 20)
            highest = max(highest, larder.residentMemory)
        }
        #expect(highest < 200 << 20)
        origin.always(.json("[]", Fresh.hour))
        #expect(try larder.get("/big").text == "[]")
    }

    @Test func `a client that stops reading does not fill the daemon's memory`() throws {
        let megabyte = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
        let origin = try Origin { request in
            guard request.path == "/big" else { return .json("[]") }
            return OriginResponse(steps: [
                .send(OriginResponse.head(200, "OK", ["Cache-Control": "no-store", "Content-Length": "\(300 << 20)"])),
                .flood(megabyte, times: 300),
            ])
        }
        let larder = try Larder(origin)
        let client = try larder.client()
        try client.send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try client.head().status == 200)
        pause(.seconds(2))
        #expect(larder.residentMemory < 150 << 20)
        #expect(try larder.get("/other").status == 200)
    }

    @Test func `a small body that decompresses to 300 MB does not fill the daemon's memory`() throws {
        let folder = TemporaryFolder()
        let script = """
            import zlib, sys
            packer = zlib.compressobj(9, zlib.DEFLATED, 31)
            with open(sys.argv[1], "wb") as file:
                for _ in range(300): file.write(packer.compress(bytes(1 << 20)))
                file.write(packer.flush())
            """
        try TestProcess.run("python3", ["-c", script, folder.file("bomb.gz")])
        let bomb = folder.bytes("bomb.gz")
        #expect(bomb.count < 1 << 20)
        let origin = try Origin { request in
            request.path == "/bomb" ? .body(bomb, Fresh.hour + ["Content-Encoding": "gzip"]) : .json("[]")
        }
        let larder = try Larder(origin)
        let client = try larder.client()
        try client.send("GET /bomb HTTP/1.1\r\nHost: localhost\r\n\r\n")
        var highest = 0
        if try client.head().status == 200 {
            // Read it all, or as much as it gives.
            while let piece = try? client.socket.receive(1 << 20), !piece.isEmpty {
                highest = max(highest, larder.residentMemory)
                if piece.count < 5 { break }
                if highest > 250 << 20 { break }
                if try Self.isIdle(client.socket) { break }
            }
        }
        #expect(highest < 150 << 20)
        #expect(try larder.get("/other").status == 200)
        #expect(try larder.documents() <= 1)
    }

    @Test func `if the store's file cannot grow, responses are served, and the store stays intact`() throws {
        let body = Monitor(0)
        let origin = try Origin { request in
            .json(#"{"id":\#(body.next()),"name":"\#(String(repeating: request.path, count: 2000))"}"#, Fresh.hour)
        }
        let folder = TemporaryFolder()
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: folder,
            // A file may grow to 2 MiB; the write after that fails like one on a full disk.
            startedBy: ["bash", "-c", #"ulimit -f 2048; exec "$0" "$@""#]
        )
        for number in 1...300 {
            let answer = try larder.get("/full/\(number)")
            #expect(answer.status == 200)
            #expect(answer.body.count > 10_000)
        }
        #expect(larder.isRunning)
        #expect(try larder.admin("GET", "/healthz").status == 200)
        larder.kill()
        #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
    }

    /// Whether nothing has come for a while.
    private static func isIdle(_ socket: Socket) throws -> Bool {
        var descriptor = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&descriptor, 1, 2000) == 0
    }
}
