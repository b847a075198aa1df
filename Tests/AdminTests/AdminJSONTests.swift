import Testing

@testable import Admin

struct AdminJSONTests {
    private struct Row: Codable {
        var rowCount: Int
        var object: RawJSON
    }

    @Test(arguments: [
        ("1e400", "1e400"), ("12345678901234567890123", "12345678901234567890123"), ("1.0", "1.0"), ("-0", "-0"),
        ("-2.50", "-2.50"), ("9007199254740993", "9007199254740993"), (#""\ud800""#, "\"\u{FFFD}\""),
        (#""\ud83d\ude00\\ud800""#, "\"\u{1F600}\\\\ud800\""), (#""a\"1e400""#, #""a\"1e400""#),
        (#"{"a":[1e400,{"b":"1e400"}]}"#, #"{"a":[1e400,{"b":"1e400"}]}"#), ("null", "null"),
    ])
    func `any JSON value is sent unchanged, and its numbers are read to the last digit`(_ json: String, _ shown: String)
        throws
    {
        let sent = AdminJSON.encode(Row(rowCount: 7, object: RawJSON(Array(json.utf8))))
        #expect(String(decoding: sent, as: UTF8.self) == #"{"object":\#(json),"row_count":7}"#)
        let row = try AdminJSON.decode(Row.self, from: sent)
        #expect(row.rowCount == 7)
        #expect(row.object.text == shown)
    }

    @Test func `bytes that are not UTF-8 are shown as U+FFFD, and what is not JSON is an error`() throws {
        #expect(try AdminJSON.decode([String].self, from: [0x5B, 0x22, 0xFF, 0x22, 0x5D]) == ["\u{FFFD}"])
        for broken in ["\"", "\"\\", "\"\\u12", "-", "1e", "{", "\"\\ud800\\"] {
            #expect(throws: (any Error).self) { try AdminJSON.decode([String].self, from: Array(broken.utf8)) }
        }
    }

    @Test func `raw JSON keeps its place, whatever text is beside it`() throws {
        struct Mixed: Encodable {
            var list: [RawJSON]
            var text: String
        }
        let pieces = [#"{"a": 1.0}"#, #""raw 0""#, "[ ]"]
        let sent = AdminJSON.encode(Mixed(list: pieces.map { RawJSON(Array($0.utf8)) }, text: "raw 0 \"1\" \\"))
        #expect(
            String(decoding: sent, as: UTF8.self)
                == #"{"list":[{"a": 1.0},"raw 0",[ ]],"text":"raw 0 \"1\" \\"}"#
        )
    }

    @Test func `names of models stay as they are when members become snake_case`() throws {
        let sent = AdminJSON.encode(["userName": ["MyModel": 1]])
        #expect(String(decoding: sent, as: UTF8.self) == #"{"userName":{"MyModel":1}}"#)
    }
}
