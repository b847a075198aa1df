import Testing

@testable import Mapping

private func isJSON(_ text: [UInt8]) -> Bool {
    text.withUnsafeBufferPointer { JSONScanner($0, allowsReferences: false).scanText() >= 0 }
}

private func failure(_ text: [UInt8]) -> Int {
    text.withUnsafeBufferPointer { JSONScanner($0, allowsReferences: false).scanText() }
}

@Suite struct JSONScannerTests {
    @Test(arguments: [
        "null", "true", "false", "0", "-0", "1.5", "1e400", "-1.0E+10", "10e-1", "12345678901234567890",
        #""""#, #""a""#, #""\"\\\/\b\f\n\r\t\u00e9""#, #""\ud800""#, #""12345678""#, #""1234567\n""#, "[]", "{}",
        " [ ] ",
        "[1,2,[3]]", #"{"a":1,"a":2}"#, #" {"a" : [ {} , null ] } "#, "\r\n\t1\r\n", #"{"":""}"#,
    ])
    func `valid text is accepted`(text: String) {
        #expect(isJSON(Array(text.utf8)))
    }

    @Test(arguments: [
        "", " ", "nul", "nulll", "True", "01", "-", "1.", ".5", "1e", "1e+", "+1", "0x1", "1 2", "[1,]", "[,1]", "[1",
        "]", "{", "}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{a:1}"#, #"{"a" 1}"#, #"{,}"#, "\"", #""\"#, #""\x""#,
        #""\u12g4""#, #""\u123"#, "\"a\nb\"", "\"a\u{1}b\"", "\u{FEFF}{}", "{}{}", "[1]x", "\u{0B}1", "NaN", "'a'",
        "\"0123456\u{1F}\"", "[1 2]", #"{"a":1 "b":2}"#, "/**/1", "-a",
    ])
    func `invalid text is refused`(text: String) {
        #expect(!isJSON(Array(text.utf8)))
    }

    @Test func `bytes that are not UTF-8 pass inside strings and nowhere else`() {
        #expect(isJSON([0x22, 0xFF, 0xC0, 0x80, 0x22]))
        #expect(!isJSON([0xFF]))
    }

    @Test func `every truncation of a text is refused`() {
        let text = Array(#"{"a\u00e9":[1.5e-3,"x\n",true,null,{"b":""}]}"#.utf8)
        for length in 0..<text.count { #expect(!isJSON(Array(text[..<length])), "\(length) bytes") }
        #expect(isJSON(text))
    }

    @Test func `nesting is accepted up to the limit and refused beyond without exhausting the stack`() {
        let limit = JSONScanner.maximumDepth
        func nested(_ depth: Int) -> [UInt8] {
            Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        #expect(isJSON(nested(limit)))
        #expect(failure(nested(limit + 1)) == JSONScanner.Failure.tooDeep)
        #expect(failure(nested(10_000)) == JSONScanner.Failure.tooDeep)
        let objects = String(repeating: #"{"a":"#, count: 10_000)
        #expect(failure(Array(objects.utf8)) == JSONScanner.Failure.tooDeep)
    }

    @Test(arguments: [#""\u0001x""#, #"["a","\u0001"]"#, #"{"\u0001":1}"#, #""a\"\u0001""#])
    func `a string that looks like a reference is refused as reserved`(text: String) {
        #expect(failure(Array(text.utf8)) == JSONScanner.Failure.reserved)
    }

    @Test(arguments: [#""a\u0001""#, #""\u0002""#, #""\\u0001""#, #""\u00100""#])
    func `the escape that marks references is ordinary elsewhere`(text: String) {
        #expect(isJSON(Array(text.utf8)))
    }

    @Test func `the first special byte of a string is found at every offset`() {
        for special in [UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x00, 0x1F] {
            for offset in 0..<40 {
                // Bytes that differ from the special ones by a borrow or by the high bit.
                var text = [UInt8](repeating: 0xA2, count: 48)
                text[offset] = special
                if offset + 1 < 48 { text[offset + 1] = special &+ 1 }
                let found = text.withUnsafeBufferPointer {
                    JSONScanner($0, allowsReferences: false).firstSpecial(0)
                }
                #expect(found == offset)
            }
        }
    }
}
