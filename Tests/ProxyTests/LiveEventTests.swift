import Foundation
import Testing

@testable import HTTPSemantics
@testable import Proxy

/// How an event is written: one line of JSON, whatever the body.
@Suite struct LiveEventTests {
    /// An event as it is on the wire.
    private static func wire(_ event: LiveEvent) -> [UInt8] {
        LiveMessage(event, id: nil, body: LiveEncoding(bodyOf: event)).pieces.flatMap { $0 }
    }

    /// The members of its data, after a look at the framing: nothing in them may end a line.
    private static func members(_ event: LiveEvent) throws -> [String: Any] {
        let bytes = wire(event)
        let start = Array("event: \(event.kind.rawValue)\ndata: ".utf8)
        try #require(bytes.starts(with: start) && bytes.suffix(2) == [10, 10])
        let line = bytes.dropFirst(start.count).dropLast(2)
        #expect(!line.contains { $0 < 0x20 })
        return try #require(JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
    }

    private static func told(_ body: LiveBody) throws -> [UInt8] {
        let members = try members(LiveEvent(kind: .fresh, status: 200, body: body))
        #expect((members["body"] == nil) != (members["base64"] == nil))
        if let text = members["body"] as? String { return Array(text.utf8) }
        return Array(try #require(Data(base64Encoded: members["base64"] as? String ?? "!")))
    }

    @Test(
        arguments: [
            [], [0x0A], [0x0D], [0x0D, 0x0A], [0x0A, 0x0A, 0x0D, 0x0D], [0], Array(0..<0x80), Array(0...0xFF),
            Array("\"\\/\u{8}\u{C}\u{7F}".utf8), Array("\u{FEFF}{\"a\":\"ü\u{2028}\u{2029}😀\"}\r\n".utf8),
            Array("data: x\n\nevent: fresh\ndata: y\n\n".utf8), [0xFF], [0xC3], [0xC3, 0x28], [0xE2, 0x82],
            [0xF0, 0x9F, 0x98],
            [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0x80], [1, 2, 0xFE], [0x61, 0xFE],
        ] as [[UInt8]]
    )
    func `an event contains the body to the byte, however it arrives in pieces`(bytes: [UInt8]) throws {
        #expect(try Self.told(LiveBody(bytes)) == bytes)
        for length in 1...4 {
            var body = LiveBody()
            for start in stride(from: 0, to: bytes.count, by: length) {
                body.append(Array(bytes[start..<min(start + length, bytes.count)]))
            }
            #expect(body.bytes == bytes)
            #expect(try Self.told(body) == bytes)
        }
    }

    @Test func `a body is text if it is UTF-8 and does not begin with a byte order mark`() {
        for text in ["", "{}", "ü\u{2028}\u{FEFF}😀\r\0"] { #expect(LiveBody.isText(Array(text.utf8))) }
        for bytes in [[0xFF], [0xC3], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xEF, 0xBB, 0xBF, 0x61]]
            as [[UInt8]]
        {
            #expect(!LiveBody.isText(bytes))
        }
    }

    @Test(arguments: [48 << 10 - 1, 48 << 10, 48 << 10 + 1, 1_000_003])
    func `a large body is written in pieces of bounded size`(count: Int) throws {
        for byte in [UInt8(ascii: "\""), 0x01, 0xFF] {
            let bytes = [UInt8](repeating: byte, count: count)
            let encoding = LiveEncoding(bodyOf: LiveEvent(kind: .cached, status: 200, body: LiveBody(bytes)))
            for piece in encoding.pieces { #expect(piece.count < 320 << 10) }
            #expect(try Self.told(LiveBody(bytes)) == bytes)
        }
    }

    @Test func `fields with one name are one member of the event`() throws {
        let fields = Fields([
            Field("ETag", "\"a\""), Field("Link", "<a>; rel=next"), Field("link", "<b>; rel=prev"),
            Field("Set-Cookie", "a=1; Expires=Thu, 01 Jan 2037 00:00:00 GMT"), Field("Set-Cookie", "b=2"),
            Field(name: Array("X-Name".utf8), value: [0x5A, 0xFC]), Field("X-City", "Zürich"),
        ])
        let members = try Self.members(LiveEvent(kind: .unchanged, status: 200, age: 3, fields: fields))
        #expect(members["age"] as? Int == 3)
        #expect(
            members["headers"] as? [String: String] == [
                "etag": "\"a\"", "link": "<a>; rel=next, <b>; rel=prev", "x-name": "Zü", "x-city": "Zürich",
                "set-cookie": "a=1; Expires=Thu, 01 Jan 2037 00:00:00 GMT\nb=2",
            ]
        )
    }

    @Test func `an error event contains the problem and the age of the last response`() throws {
        let event = LiveEvent(kind: .error, problem: .responseBrokeOff(upstream: "a\nb"), age: 7)
        let members = try Self.members(event)
        #expect((members["problem"] as? [String: Any])?["status"] as? Int == 502)
        #expect(members["age"] as? Int == 7)
        #expect(members["status"] == nil)
    }

    @Test func `responses differ by status and the fields that describe the body, not by dates`() {
        func event(_ status: Int, _ fields: [Field]) -> LiveEvent {
            LiveEvent(kind: .fresh, status: status, fields: Fields(fields), body: LiveBody(Array("{}".utf8)))
        }
        let one = event(200, [Field("Date", "x"), Field("Link", "<a>"), Field("Content-Type", "a/b")])
        let same = event(200, [Field("content-type", "a/b"), Field("Link", "<a>")])
        #expect(one.contentBeforeBody == same.contentBeforeBody)
        #expect(one.contentBeforeBody != event(203, one.fields?.lines ?? []).contentBeforeBody)
        let other = event(200, [Field("Content-Type", "a/b"), Field("Link", "<b>")])
        #expect(one.contentBeforeBody != other.contentBeforeBody)
    }

    @Test(
        arguments: [
            ("text/event-stream", "*/*"), ("Text/Event-Stream;q=1", "*/*"),
            ("text/event-stream, application/json", "application/json"), ("application/json", "application/json"),
            ("application/json , */*;q=0.1", "application/json , */*;q=0.1"),
            ("text/event-streams", "text/event-streams"),
        ]
    )
    func `fields about the stream are not sent to the upstream`(accept: String, expected: String) {
        let fields = Fields([
            Field("Accept", accept), Field("If-None-Match", "*"), Field("If-Match", "*"), Field("Range", "bytes=0-1"),
            Field("Last-Event-ID", "1"), Field("X", "y"),
        ])
        #expect(LiveMode.plain(fields) == Fields([Field("Accept", expected), Field("X", "y")]))
    }
}
