import TestSupport
import Testing

@testable import Admin

struct JSONValueSplitterTests {
    /// The values of a text that arrives in pieces of a certain length.
    private func values(_ text: String, piece: Int = .max, limit: Int = 1_000) throws -> [String] {
        var (splitter, found) = (JSONValueSplitter(limit: limit), [String]())
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            try splitter.take(Array(rest.prefix(piece))) {
                found.append("\($0.line):" + String(decoding: $0.text, as: UTF8.self))
            }
            rest = rest.dropFirst(piece)
        }
        try splitter.finish { found.append("\($0.line):" + String(decoding: $0.text, as: UTF8.self)) }
        return found
    }

    private static let texts: [(text: String, values: [String])] = [
        ("", []), (" \n", []), (#"{"a":1}"#, [#"1:{"a":1}"#]), ("[]", []), ("[ ]\n", []),
        ("{\"a\":1}\n\r\n{\"a\":2}\n", [#"1:{"a":1}"#, #"3:{"a":2}"#]),
        ("[{\"a\":1},\n {\"a\":[2,{}]}\n]\n", [#"1:{"a":1}"#, #"2:{"a":[2,{}]}"#]),
        ("[[1],[2]]", ["1:[1]", "1:[2]"]), ("[1]\n[2]", ["1:1", "2:2"]), ("1 2\n-3e4", ["1:1", "1:2", "2:-3e4"]),
        (#"["a]}","\"","\\"]"#, [#"1:"a]}""#, #"1:"\"""#, #"1:"\\""#]),
        ("{\n\"a\": \"\u{E9}\"\n} {}", ["1:{\n\"a\": \"\u{E9}\"\n}", "3:{}"]),
        ("[true,null,false]", ["1:true", "1:null", "1:false"]),
        (#"{"a":1}{"b":2}"#, [#"1:{"a":1}"#, #"1:{"b":2}"#]),
    ]

    @Test(arguments: texts) func `values are found in pieces of any length, with their lines`(
        text: String,
        values: [String]
    ) throws {
        for piece in [1, 2, 3, 7, Int.max] { #expect(try self.values(text, piece: piece) == values) }
    }

    @Test(arguments: [
        ("{}\nnonsense\n{}", 2), ("{}\n{\"a\":}\n", 2), ("{}}", 1), ("[1,]", 1), ("[1 2]", 1), ("[,1]", 1), ("]", 1),
        ("\u{FEFF}{}", 1), ("{\"a\":1]}", 1), ("[1}\n", 1), ("{},{}", 1),
    ]) func `malformed JSON is reported with its line`(text: String, line: Int) {
        #expect(throws: JSONValueSplitter.Failure(line: line, reason: .malformed)) { try values(text) }
    }

    @Test(arguments: [("{}\n{\"a\":1\n{\"a\":2}\n", 2), ("[{},\n{}", 1), ("{}\n\"a", 2), ("{}\n[", 2)])
    func `an unclosed value is reported with the line in which it begins`(text: String, line: Int) {
        #expect(throws: JSONValueSplitter.Failure(line: line, reason: .cutShort)) { try values(text) }
    }

    @Test func `the length of each value is limited, and that of the whole text is not`() throws {
        let text = String(repeating: "{\"a\":1}\n", count: 1_000)
        #expect(try values(text, limit: 7).count == 1_000)
        #expect(throws: JSONValueSplitter.Failure(line: 2, reason: .tooLong(limit: 6))) {
            try values("{}\n{\"a\":1}", limit: 6)
        }
    }
}
