import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy
@testable import Upstream

/// What a client of a fetch is sent, and when.
@Suite struct RelayTests {
    /// A client that notes what it is given.
    private final class Recorder: Recipient {
        var status: Int?
        var bytes: [UInt8] = []
        var isFinished = false
        var isAborted = false
        let isRequest = true
        let backlog = 0

        var text: String { String(decoding: bytes, as: UTF8.self) }

        func begin(status: Int, reason: String?, fields: Fields, framing: ReplyFraming, isKept: Bool) {
            self.status = status
        }
        func write(_ piece: [UInt8]) { bytes += piece }
        func finish() { isFinished = true }
        func abort() { isAborted = true }
        func respond(status: Int, fields: Fields, body: [UInt8]) {
            (self.status, isFinished) = (status, true)
        }
        func informational(status: Int, fields: Fields) {}
        func keptNoLonger() {}
        func serve(
            _ ready: ReadyResponse,
            for request: ProxyRequest,
            as manner: CacheUse,
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
    func `of a withheld answer all but the last byte goes as it comes`(pieces: [String]) throws {
        let (relay, recorder) = try Self.relay()
        relay.begin(Self.head([("Content-Length", "6")]), storedOn: nil, withholdsEnd: true, now: 0)
        #expect(recorder.status == 200)
        for piece in pieces { relay.write(Array(piece.utf8)) }
        #expect(recorder.text == "abcde")
        relay.finish()
        #expect(recorder.text == "abcdef")
        #expect(recorder.isFinished)
    }

    @Test func `where the length is not known the end is no byte of the body`() throws {
        let (relay, recorder) = try Self.relay()
        relay.begin(Self.head([]), storedOn: nil, withholdsEnd: true, now: 0)
        relay.write(Array("abc".utf8))
        #expect(recorder.text == "abc")
        #expect(!recorder.isFinished)
        relay.finish()
        #expect(recorder.isFinished)
    }

    @Test func `what is not kept after all goes as it comes`() throws {
        let (relay, recorder) = try Self.relay()
        relay.begin(Self.head([("Content-Length", "3")]), storedOn: nil, withholdsEnd: true, now: 0)
        relay.write(Array("abc".utf8))
        relay.keptNoLonger()
        #expect(recorder.text == "abc")
        relay.finish()
        #expect(recorder.text == "abc")
    }

    @Test(arguments: [true, false])
    func `a 304 is all of a response, and waits as its end does`(isWithheld: Bool) throws {
        let (relay, recorder) = try Self.relay([("If-None-Match", "\"a\"")])
        let head = Self.head([("Content-Length", "3"), ("ETag", "\"a\"")])
        relay.begin(head, storedOn: nil, withholdsEnd: isWithheld, now: 0)
        #expect(recorder.status == (isWithheld ? nil : 304))
        relay.write(Array("abc".utf8))
        relay.finish()
        #expect(recorder.status == 304)
        #expect(recorder.bytes.isEmpty)
    }

    @Test func `a 304 does not depend on the rest of a body that nobody is sent`() throws {
        let (relay, recorder) = try Self.relay([("If-None-Match", "\"a\"")])
        relay.begin(Self.head([("ETag", "\"a\"")]), storedOn: nil, withholdsEnd: true, now: 0)
        relay.abort()
        #expect(recorder.status == 304)
        #expect(!recorder.isAborted)
    }
}
