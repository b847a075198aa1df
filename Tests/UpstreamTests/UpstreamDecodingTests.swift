import Foundation
import Glibc
import TestSupport
import DaemonTestSupport
import Testing

@testable import HTTPSemantics
@testable import Upstream

@Suite struct `Upstream decoding` {
    /// Compresses with a tool of the system, which must be installed.
    static func compress(_ bytes: [UInt8], with tool: [String]) throws -> [UInt8] {
        let folder = TemporaryFolder()
        try Data(bytes).write(to: URL(fileURLWithPath: folder.file("in")))
        let script = #"input=$0 output=$1; shift; exec "$@" < "$input" > "$output""#
        try TestProcess.run("/bin/sh", ["-c", script, folder.file("in"), folder.file("out")] + tool)
        return folder.bytes("out")
    }

    static func server(_ coding: String, _ body: [UInt8]) -> RawServer {
        RawServer { connection in
            while let head = connection.readHead() {
                connection.write(
                    "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: \(body.count)\r\nContent-MD5: x\r\n"
                        + "Digest: y\r\nETag: \"e\"\r\n\r\n"
                )
                if !head.hasPrefix("HEAD") { connection.write(body) }
            }
        }
    }

    static let text = Array(String(repeating: "a body that compresses well; ", count: 2000).utf8)

    @Test(arguments: [
        ("gzip", ["gzip", "-c"]), ("x-gzip", ["gzip", "-c"]),
        (
            "deflate",
            ["python3", "-c", "import sys,zlib; sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read()))"]
        ),
        ("br", ["brotli", "-c"]), ("zstd", ["zstd", "-c"]),
    ])
    func `a coded body is decoded and its fields corrected`(coding: String, tool: [String]) async throws {
        let coded = try Self.compress(Self.text, with: tool)
        let server = Self.server(coding, coded)
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url, Fields([Field("Accept-Encoding", "identity")]))
        #expect(answer.error == nil)
        #expect(answer.body == Self.text)
        #expect(answer.head?.decodedFrom == coding)
        #expect(answer.head?.fields.lines == [Field("ETag", "\"e\"")])
        #expect(answer.summary?.wireBytes == coded.count)
        #expect(answer.summary?.bodyBytes == Self.text.count)

        let head = await bench.send(UpstreamRequest(method: "HEAD", url: server.url))
        #expect(head.error == nil)
        #expect(head.head == answer.head)

        let raw = await bench.send(
            UpstreamRequest(
                method: "GET",
                url: server.url,
                fields: Fields([Field("Accept-Encoding", "gzip;q=0.5")]),
                decodes: false
            )
        )
        #expect(raw.body == coded)
        #expect(raw.head?.decodedFrom == nil)
        #expect(raw.head?.fields.text("content-encoding") == coding)
        #expect(raw.head?.fields.text("content-length") == "\(coded.count)")
        #expect(server.heads.last?.contains("Accept-Encoding: gzip;q=0.5\r\n") == true)
    }

    @Test(arguments: ["gzip", "deflate", "br", "zstd"], ["GET", "POST"])
    func `a body that does not have its declared coding is passed on unchanged`(coding: String, method: String)
        async throws
    {
        let body = Array("certainly not compressed at all".utf8)
        let server = Self.server(coding, body)
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.send(UpstreamRequest(method: method, url: server.url))
        #expect(answer.error == nil)
        #expect(answer.body == body)
        #expect(answer.head?.fields.text("content-encoding") == coding)
        #expect(answer.head?.fields.text("content-length") == "\(body.count)")
        #expect(answer.head?.isGarbled == true)
        #expect(server.heads.count == 1)
    }

    /// Runs a decoder over pieces of a body.
    private static func decode(_ body: [UInt8], _ name: String, pieces: Int, room: Int) throws -> (
        body: [UInt8], isWhole: Bool
    ) {
        let decoder = ContentDecoder(try #require(ContentDecoder.Coding(named: name)))
        let output = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 1)
        defer { output.deallocate() }
        var decoded: [UInt8] = []
        for start in stride(from: 0, to: body.count, by: pieces) {
            try body[start..<min(start + pieces, body.count)].withUnsafeBytes { bytes in
                var input = bytes
                while true {
                    let count = try decoder.decode(&input, into: output)
                    if count == 0 { break }
                    try #require(count <= room)
                    decoded += output[..<count]
                }
                #expect(input.isEmpty)
            }
        }
        return (decoded, decoder.isAtEnd)
    }

    private static let tools = [
        ("gzip", ["gzip", "-c"]), ("br", ["brotli", "-c"]), ("zstd", ["zstd", "-c", "--check"]),
        (
            "deflate",
            ["python3", "-c", "import sys,zlib; sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read()))"]
        ),
        (
            "deflate",
            [
                "python3", "-c",
                "import sys,zlib; c=zlib.compressobj(9,zlib.DEFLATED,-15); o=sys.stdout.buffer; o.write(c.compress(sys.stdin.buffer.read())+c.flush())",
            ]
        ),
    ]

    @Test(arguments: tools.indices)
    func `a coded body is complete only with its last byte`(index: Int) throws {
        let (coding, tool) = Self.tools[index]
        let coded = try Self.compress(Self.text, with: tool)
        for (pieces, room) in [(1, 7), (3, 1 << 16), (1 << 20, 1), (1 << 20, 1 << 16)] {
            let (body, isWhole) = try Self.decode(coded, coding, pieces: pieces, room: room)
            #expect(body == Self.text)
            #expect(isWhole)
        }
        for missing in 1...20 {
            let (body, isWhole) = try Self.decode(
                Array(coded.dropLast(missing)),
                coding,
                pieces: 1 << 20,
                room: 1 << 16
            )
            #expect(!isWhole, "\(missing) bytes are missing")
            #expect(Self.text.starts(with: body))
        }
        let nothing = try Self.decode([], coding, pieces: 1, room: 1)
        #expect(nothing.isWhole)
    }

    @Test(arguments: tools.indices)
    func `a damaged coded body never crashes the decoder, whose output stays bounded`(index: Int) throws {
        let (coding, tool) = Self.tools[index]
        let coded = try Self.compress(Array(Self.text.prefix(3_000)), with: tool)
        for place in coded.indices {
            var changed = coded
            changed[place] ^= 0xA5
            _ = try? Self.decode(changed, coding, pieces: 11, room: 512)
        }
    }

    @Test(arguments: ["gzip", "zstd"])
    func `several gzip members or zstd frames are one body, and checksums are verified`(
        coding: String
    ) throws {
        let tool = [coding, "-c"] + (coding == "zstd" ? ["--check"] : [])
        let (one, empty) = (try Self.compress(Self.text, with: tool), try Self.compress([], with: tool))
        for pieces in [1, 5, 1 << 20] {
            let (body, isWhole) = try Self.decode(one + empty + one, coding, pieces: pieces, room: 1_000)
            #expect(body == Self.text + Self.text)
            #expect(isWhole)
        }
        var changed = one
        changed[changed.count - (coding == "gzip" ? 8 : 1)] ^= 1
        #expect(throws: ContentDecoder.Malformed.self) {
            try Self.decode(changed, coding, pieces: 1 << 20, room: 1 << 16)
        }
    }

    @Test(arguments: tools.indices) func `bytes after the end of a coded body are dropped, up to a limit`(index: Int)
        throws
    {
        let (coding, tool) = Self.tools[index]
        let coded = try Self.compress(Self.text, with: tool)
        for rest in ["\n", "\0", "\0\0\0\0\0\0\0\0", "<!-- 3 ms -->", "(c) 2026", "\u{1F}\u{20}", "VVVVVVVV"] {
            for pieces in [1, 1 << 20] {
                let (body, isWhole) = try Self.decode(coded + rest.utf8, coding, pieces: pieces, room: 1_000)
                #expect(body == Self.text && isWhole, "\(rest)")
            }
        }
        #expect(throws: ContentDecoder.Malformed.self) {
            try Self.decode(coded + [UInt8](repeating: 0, count: 300_000), coding, pieces: 1 << 20, room: 1 << 16)
        }
    }

    @Test func `a coded body without its last bytes is passed on, and marked as defective`() async throws {
        let coded = try Self.compress(Self.text, with: ["gzip", "-c"])
        let server = Self.server("gzip", Array(coded.dropLast(3)))
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.body == Self.text)
        #expect(answer.summary?.defect?.label == "decoding")
    }

    @Test func `a body that breaks its coding after the first bytes fails`() async throws {
        var coded = try Self.compress(Array(repeating: Self.text, count: 50).flatMap { $0 }, with: ["gzip", "-c"])
        for index in coded.indices.suffix(40) { coded[index] ^= 0x55 }
        let server = Self.server("gzip", coded)
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error?.label == "decoding", "\(String(describing: answer.result))")
    }

    /// How a body ends that is passed on in its codings, `no-transform`.
    private static func kept(_ codings: String, _ body: [UInt8], framing: String) async throws -> ReceivedResponse {
        let server = RawServer { connection in
            guard connection.readHead() != nil else { return }
            let isChunked = framing == "chunked"
            let lines =
                isChunked
                ? "Transfer-Encoding: chunked\r\n" : framing == "length" ? "Content-Length: \(body.count)\r\n" : ""
            connection.write(
                "HTTP/1.\(framing == "close" ? 0 : 1) 200 OK\r\nCache-Control: no-transform\r\nContent-Encoding: \(codings)\r\n"
                    + "\(lines)\r\n"
            )
            connection.write(body, isChunked: isChunked)
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        var request = UpstreamRequest(method: "GET", url: server.url)
        request.clientCodings = Array("gzip, br, zstd, deflate".utf8)
        return await bench.send(request)
    }

    @Test(
        arguments: ["gzip", "deflate", "br", "zstd", "gzip, gzip", "br, gzip", "gzip, identity, zstd"],
        ["length", "chunked", "close"]
    )
    func `an undecoded coded body is complete where its coding ends, whatever its framing says`(
        codings: String,
        framing: String
    ) async throws {
        var body = Self.text
        var inner: [UInt8] = []
        for coding in codings.split(separator: ", ") where coding != "identity" {
            inner = body
            body = try #require(EncodedBody.encode(body, coding: String(coding), like: []))
        }
        let whole = try await Self.kept(codings, body, framing: framing)
        #expect(whole.body == body && whole.summary?.defect == nil && whole.summary?.isOdd == false)
        for count in [1, body.count / 2, body.count - 1] {
            let cut = try await Self.kept(codings, Array(body[..<count]), framing: framing)
            #expect(cut.body == Array(body[..<count]))
            #expect(cut.summary?.defect == .decoding("it ends too early"), "\(count)")
        }
        for odd in [body + Array("\n<!-- made in 3 ms -->".utf8), Array("not compressed at all".utf8)] {
            let answer = try await Self.kept(codings, odd, framing: framing)
            #expect(answer.body == odd && answer.summary?.isOdd == true && answer.summary?.defect == nil)
        }
        guard codings.contains(", "), let outer = codings.split(separator: ", ").last else { return }
        // A proxy has packed as a whole what it was sent in part.
        let part = try #require(EncodedBody.encode(Array(inner.dropLast(9)), coding: String(outer), like: []))
        #expect(try await Self.kept(codings, part, framing: framing).summary?.defect != nil)
    }

    @Test func `an undecoded decompression bomb is examined only up to a limit, and counts as odd`() async throws {
        let zeros = [UInt8](repeating: 0, count: 80 << 20)
        let packed = try #require(EncodedBody.encode(zeros, coding: "gzip", like: []))
        let answer = try await Self.kept("gzip", packed, framing: "length")
        #expect(answer.body == packed && answer.summary?.isOdd == true)
    }

    @Test func `a coded body cut short by its connection is truncated`() async throws {
        let coded = try Self.compress(Self.text, with: ["gzip", "-c"])
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(coded.count)\r\n\r\n")
            connection.write(Array(coded.dropLast(20)))
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == .truncated(expected: coded.count, got: coded.count - 20))
    }

    /// One gibibyte of zeros in a megabyte.
    static func bomb() throws -> [UInt8] {
        let script = """
            import sys,zlib
            c=zlib.compressobj(9,zlib.DEFLATED,31); z=bytes(1<<20); o=sys.stdout.buffer
            for _ in range(1024): o.write(c.compress(z))
            o.write(c.flush())
            """
        return try compress([], with: ["python3", "-c", script])
    }

    @Test func `a decompression bomb comes in pieces, in bounded memory`() async throws {
        let server = Self.server("gzip", try Self.bomb())
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let before = residentBytes()
        let peak = PeakMemory()
        let answer = await bench.send(UpstreamRequest(method: "GET", url: server.url)) { recorder in
            recorder.keepsBody = false
            var calls = 0
            recorder.onBody = { _, bytes in
                calls += 1
                if calls % 1000 == 0 { peak.look() }
                return bytes.count <= 64 << 10 ? .proceed : .pause
            }
        }
        #expect(answer.error == nil)
        #expect(answer.bodyBytes == 1 << 30)
        // Other tests run in this process; a bomb that is not held back takes a gibibyte.
        #expect(peak.bytes < before + 500 << 20)
    }

    @Test func `a decompression bomb ends where its delegate stops it`() async throws {
        let server = Self.server("gzip", try Self.bomb())
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.send(UpstreamRequest(method: "GET", url: server.url)) { recorder in
            recorder.onBody = { recorder, bytes in
                if recorder.answer.bodyBytes + bytes.count > 1_000_000 { recorder.transfer?.cancel() }
                return .proceed
            }
        }
        #expect(answer.error == .cancelled)
        #expect(answer.bodyBytes < 1_100_000)
    }

    @Test func `a paused bomb waits in bounded memory`() async throws {
        let server = Self.server("gzip", try Self.bomb())
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let before = residentBytes()
        let peak = PeakMemory()
        let answer = await bench.send(UpstreamRequest(method: "GET", url: server.url)) { recorder in
            recorder.keepsBody = false
            var calls = 0
            recorder.onBody = { recorder, _ in
                calls += 1
                peak.look()
                if recorder.answer.bodyBytes > 50_000_000 { recorder.transfer?.cancel() }
                guard calls % 100 == 0 else { return .proceed }
                recorder.transfer?.resume()
                return .pause
            }
        }
        #expect(answer.error == .cancelled)
        // Other tests run in this process; a bomb that is not held back takes a gibibyte.
        #expect(peak.bytes < before + 500 << 20)
    }

    @Test(arguments: [
        "foo", "x-foo", "aes128gcm", "gzip, foo", "foo, gzip", "FOO", "compress", "gzip;q=1", "identity, foo",
    ])
    func `a body with an unknown coding is passed on unchanged`(coding: String) async throws {
        let body = (0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for isChunked in [false, true] {
            let server = RawServer { connection in
                while connection.readHead() != nil {
                    let framing = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(body.count)"
                    connection.write("HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\n\(framing)\r\n\r\n")
                    connection.write(body, isChunked: isChunked)
                }
            }
            defer { server.stop() }
            let bench = try UpstreamBench()
            defer { bench.stop() }
            let answer = await bench.get(server.url)
            #expect(answer.error == nil)
            #expect(answer.body == body)
            #expect(answer.head?.fields.text("content-encoding") == coding)
            #expect(answer.head?.decodedFrom == nil)
        }
    }

    @Test(arguments: ["", "identity", "IDENTITY", ",", "identity, identity"])
    func `identity and empty codings leave the body as it is`(coding: String) async throws {
        let server = Self.server(coding, Self.text)
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == nil)
        #expect(answer.body == Self.text)
        #expect(answer.head?.decodedFrom == nil)
    }

    @Test(arguments: ["GZIP", "X-GZip", " gzip ", ",gzip", "identity, gzip"])
    func `codings are recognised in upper and lower case, and by their aliases`(coding: String) async throws {
        let coded = try Self.compress(Self.text, with: ["gzip", "-c"])
        let server = Self.server(coding, coded)
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == nil)
        #expect(answer.body == Self.text)
        #expect(answer.head?.fields.contains("content-encoding") == false)
    }

    @Test func `an interim response's coding is not the final one's`() async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 103 Early Hints\r\nContent-Encoding: gzip\r\nLink: </a>\r\n\r\n")
                connection.answer("plain")
            }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error == nil)
        #expect(answer.text == "plain")
        #expect(answer.informational.map(\.status) == [103])
        #expect(answer.head?.fields.contains("link") == false)
    }
}

/// Resident memory of the process, in bytes.
func residentBytes() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
}

/// The most resident memory that was seen; for one thread.
final class PeakMemory: @unchecked Sendable {
    private(set) var bytes = 0
    func look() { bytes = max(bytes, residentBytes()) }
}
