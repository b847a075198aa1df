import DaemonTestSupport
import Testing

@testable import HTTPSemantics

@Suite struct JSONTextTests {
    @Test func `JSON text keeps the order of members and the spelling of raw bytes`() {
        let document: JSONText = [
            "b": 1, "a": ["x", true, .null], "raw": .raw(Array(#"{"n":1.0e+10, "é":"\/"}"#.utf8)),
        ]
        #expect(text(document) == #"{"b":1,"a":["x",true,null],"raw":{"n":1.0e+10, "é":"\/"}}"#)
    }

    @Test func `strings are escaped where JSON requires it`() {
        #expect(text(.string("\"\\\n\r\t\u{0}\u{1f}/é😀")) == #""\"\\\n\r\t\u0000\u001f/é😀""#)
    }

    @Test func `the form for people has a line for each member and element`() {
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
    func `numbers that JSON cannot spell are null`(number: Double, written: String) {
        #expect(text(.number(number)) == written)
    }

    private func text(_ document: JSONText) -> String {
        String(decoding: document.bytes, as: UTF8.self)
    }
}
