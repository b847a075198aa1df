import DaemonTestSupport
import Testing

@testable import HTTPSemantics

@Suite struct JSONTextTests {
    @Test func `members keep their order and raw bytes their spelling`() {
        let document: JSONText = [
            "b": 1, "a": ["x", true, .null], "raw": .raw(Array(#"{"n":1.0e+10, "é":"\/"}"#.utf8)),
        ]
        #expect(text(document) == #"{"b":1,"a":["x",true,null],"raw":{"n":1.0e+10, "é":"\/"}}"#)
    }

    @Test func `strings are escaped where JSON demands it`() {
        #expect(text(.string("\"\\\n\r\t\u{0}\u{1f}/é😀")) == #""\"\\\n\r\t\u0000\u001f/é😀""#)
    }

    @Test func `for people it takes a line per member and element`() {
        let document: JSONText = ["a": [1, ["b": true]], "c": [], "d": .object([])]
        #expect(
            document.prettyText == """
                {
                  "a": [
                    1,
                    {
                      "b": true
                    }
                  ],
                  "c": [],
                  "d": {}
                }
                """
        )
    }

    @Test(arguments: [(0.5, "0.5"), (.infinity, "null"), (.nan, "null")] as [(Double, String)])
    func `numbers that JSON has no word for are null`(number: Double, written: String) {
        #expect(text(.number(number)) == written)
    }

    private func text(_ document: JSONText) -> String {
        String(decoding: document.bytes, as: UTF8.self)
    }
}
