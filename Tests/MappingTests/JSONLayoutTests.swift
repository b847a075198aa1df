import Foundation
import TestSupport
import Testing

@testable import Mapping

/// White space between the tokens of JSON, which the files of recordings have and the bodies have not.
@Suite struct JSONLayoutTests {
    @Test func `each member and element has a line of its own, and strings stay as they are`() {
        let text = #"{"a":[1,{"b":"x, {y}: \" z"},[],{}],"c":null}"#
        let indented = """
            {
              "a": [
                1,
                {
                  "b": "x, {y}: \\" z"
                },
                [],
                {}
              ],
              "c": null
            }

            """
        #expect(JSONLayout.indented(Array(text.utf8)) == Array(indented.utf8))
        #expect(JSONLayout.compact(Array(indented.utf8)) == Array(text.utf8))
    }

    @Test(arguments: [
        "", "1", #""a b""#, "[]", "{}", "[1, 2]", "[1]\n", " [1]", #"{"a": 1}"#, "[1", "[1]]", #"{"a":1,}"#, "[1,2]x",
        #"["a]"#, "nonsense", String(repeating: "[", count: 70) + "1" + String(repeating: "]", count: 70),
    ])
    func `a body that could not be restored exactly after indenting is not indented`(text: String) {
        #expect(JSONLayout.indented(Array(text.utf8)) == nil)
    }

    @Test func `generated JSON comes back byte for byte`() throws {
        var random = SeededGenerator(seed: 1)
        func value(_ depth: Int) -> String {
            switch Int.random(in: 0..<(depth > 5 ? 4 : 6), using: &random) {
            case 0: return ["1", "-0.50", "1e400", "12345678901234567890"].randomElement(using: &random)!
            case 1: return ["true", "false", "null"].randomElement(using: &random)!
            case 2, 3: return [#""""#, #""a \\""#, #""\"[{,:""#, #""\u00e9 é\n""#].randomElement(using: &random)!
            case 4: return "[" + (0..<3).map { _ in value(depth + 1) }.joined(separator: ",") + "]"
            default: return #"{"a":\#(value(depth + 1)),"a":\#(value(depth + 1)),"{":\#(value(depth + 1))}"#
            }
        }
        for _ in 0..<300 {
            let text = Array("[\(value(0)),\(value(0))]".utf8)
            let indented = try #require(JSONLayout.indented(text))
            #expect(JSONLayout.compact(indented) == text)
            #expect(JSONBody.isWhole(indented))
        }
    }
}
