import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy
@testable import Upstream

/// What a client of a fetch is sent, and when.
@Suite struct RelayTests {
    /// A client that records what it is sent.
    private final class Recorder: Recipient {
        var status: Int?
        var bytes: [UInt8] = []
        var isFinished = false
        var isAborted = false
        let isRequest = true
        let backlog = 0

        var text: String { String(decoding: bytes, as: UTF8.self) }

        func begin(status: Int, reason: String?, fields: Fields, framing: BodyFraming, isKept: Bool) {
            self.status = status
        }
        func write(_ piece: [UInt8]) { bytes += piece }
        func finish() { isFinished = true }
        func abort() { isAborted = true }
        func respond(status: Int, fields: Fields, body: [UInt8]) {
            (self.status, isFinished) = (status, true)
        }
        func informational(status: Int, fields: Fields) {}
        func flush() {}
        func keptNoLonger() {}
        func serve(
            _ ready: ReadyResponse,
            for request: ProxyRequest,
            as cacheUse: CacheUse,
            isCollapsed: Bool,
            cookies: [Field],
            now: Int64
        ) {}
        func refuse(_ problem: ProblemDocument, _ status: CacheStatus?) {}
        func onDrain(below limit: Int, _ callback: @escaping @Sendable () -> Void) {}
        func onDisconnect(_ callback: @escaping @Sendable () -> Void) {}
    }

    private static func head(_ fields: [(String, String)]) -> UpstreamHead {
        UpstreamHead(
            version: .http11,
            status: 200,
            reason: [],
            fields: Fields(fields.map { Field($0.0, $0.1) }),
            decodedFrom: nil
        )
    }

    private static func relay(_ fields: [(String, String)] = []) throws -> (Relay, Recorder) {
        let recorder = Recorder()
        let request = ProxyFixture.request("GET", "/x", fields, of: try ProxyFixture.upstream())
        return (Relay(request, recorder, isLeader: true), recorder)
    }

    @Test(arguments: [["abcdef"], ["a", "bcde", "f"], ["abcde", "f"], ["abc", "def"]])
    func `all but the last byte of a withheld response is passed on as it comes`(pieces: [String]) throws {
        let (relay, recorder) = try Self.relay()
        relay.begin(Self.head([("Content-Length", "6")]), storing: nil, withholdsEnd: true, now: 0)
        #expect(recorder.status == 200)
        for piece in pieces { relay.write(Array(piece.utf8)) }
        #expect(recorder.text == "abcde")
        relay.finish()
        #expect(recorder.text == "abcdef")
        #expect(recorder.isFinished)
    }

    @Test func `if the length is unknown, all bytes are passed on and only the end is withheld`() throws {
        let (relay, recorder) = try Self.relay()
        relay.begin(Self.head([]), storing: nil, withholdsEnd: true, now: 0)
        relay.write(Array("abc".utf8))
        #expect(recorder.text == "abc")
        #expect(!recorder.isFinished)
        relay.finish()
        #expect(recorder.isFinished)
    }

    @Test func `withheld bytes of a body that is no longer buffered are passed on`() throws {
        let (relay, recorder) = try Self.relay()
        relay.begin(Self.head([("Content-Length", "3")]), storing: nil, withholdsEnd: true, now: 0)
        relay.write(Array("abc".utf8))
        relay.keptNoLonger()
        #expect(recorder.text == "abc")
        relay.finish()
        #expect(recorder.text == "abc")
    }

    @Test(arguments: [true, false])
    func `a 304 is withheld like the end of a response`(isWithheld: Bool) throws {
        let (relay, recorder) = try Self.relay([("If-None-Match", "\"a\"")])
        let head = Self.head([("Content-Length", "3"), ("ETag", "\"a\"")])
        relay.begin(head, storing: nil, withholdsEnd: isWithheld, now: 0)
        #expect(recorder.status == (isWithheld ? nil : 304))
        relay.write(Array("abc".utf8))
        relay.finish()
        #expect(recorder.status == 304)
        #expect(recorder.bytes.isEmpty)
    }

    @Test func `a withheld 304 is sent even if the upstream's body breaks off`() throws {
        let (relay, recorder) = try Self.relay([("If-None-Match", "\"a\"")])
        relay.begin(Self.head([("ETag", "\"a\"")]), storing: nil, withholdsEnd: true, now: 0)
        relay.abort()
        #expect(recorder.status == 304)
        #expect(!recorder.isAborted)
    }
}
