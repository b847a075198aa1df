import Foundation
import Testing

@testable import Larder

struct ReadableJSONTests {
    private struct Row: Decodable {
        var count: Int
        var object: AnyJSON
    }

    @Test(arguments: [
        ("1e400", "1e400"), ("12345678901234567890123", "12345678901234567890123"), ("1.0", "1.0"), ("-0", "-0"),
        ("-2.50", "-2.50"), ("9007199254740993", "9007199254740993"), (#""\ud800""#, "\"\u{FFFD}\""),
        (#""\ud83d\ude00\\ud800""#, "\"\u{1F600}\\\\ud800\""), (#""a\"1e400""#, #""a\"1e400""#),
        (#"{"a":[1e400,{"b":"1e400"}]}"#, #"{"a":[1e400,{"b":"1e400"}]}"#), ("null", "null"),
    ])
    func `whatever an object holds is shown, its numbers to the last digit`(_ json: String, _ shown: String) throws {
        let row = try JSONDecoder().decode(
            Row.self,
            from: Data(ReadableJSON.make(Array(#"{"count":7,"object":\#(json)}"#.utf8)))
        )
        #expect(row.count == 7)
        #expect(row.object.text == shown)
    }

    @Test func `bytes that are no UTF-8 are shown as such, and what is no JSON stays none`() {
        let shown = ReadableJSON.make([0x22, 0xFF, 0x22])
        #expect(String(decoding: shown, as: UTF8.self) == "\"\u{FFFD}\"")
        for broken in ["\"", "\"\\", "\"\\u12", "-", "1e", "{", "\"\\ud800\\"] {
            _ = ReadableJSON.make(Array(broken.utf8))
        }
    }
}
