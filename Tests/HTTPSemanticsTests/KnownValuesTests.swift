import Foundation
import Testing

@testable import HTTPSemantics

/// Values that are found, and replaced, in whatever spelling.
@Suite struct KnownValuesTests {
    private static let secret = "s3cret+/=value&1"

    private static func replaced(_ text: [UInt8], _ values: [String] = [secret]) -> [UInt8]? {
        let known = KnownValues(values.map { Array($0.utf8) })
        let result = known.replacing(in: text) { Array("REDACTED-\($0 + 1)".utf8) }
        // Both searches agree.
        #expect(known.occurs(in: text) == (result != nil))
        return result
    }

    private static func replaced(_ text: String, _ values: [String] = [secret]) -> String? {
        replaced(Array(text.utf8), values).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        "s3cret+/=value&1", #"s3cret\u002B\/\u003dvalue\u00261"#, "s3cret%2B%2F%3Dvalue%261",
        "s3cret%2b%2f%3dvalue%261",
        "s3cret&#43;&#x2F;=value&amp;1", "s3cret&plus;&sol;&equals;value&amp;1", "s3cret%252B%252F%253Dvalue%25261",
        #"s3cret\\u002B\\/=value&1"#, #"s3cret+\\\/=value&1"#, #"s3cret\x2B\x2f=value\x261"#, "s3cret%u002B/=value&1",
        "s3cret /=value&1", #"s3cret%2B\/=value&amp;1"#, "%73%33cret+/=value&1",
    ])
    func `a known value is replaced in each spelling`(_ spelling: String) {
        #expect(Self.replaced("a=\(spelling)") == "a=REDACTED-1")
        #expect(
            Self.replaced(#"{"a":"x\#(spelling)y","b":"%zz \q &x; 100%"}"#)
                == #"{"a":"xREDACTED-1y","b":"%zz \q &x; 100%"}"#
        )
    }

    @Test func `a value that is known in escaped form is also found unescaped`() {
        #expect(Self.replaced("is abc/def/ghi", ["abc%2Fdef%2fghi"]) == "is REDACTED-1")
        #expect(Self.replaced(#"is abc\/def\/ghi"#, ["abc%2Fdef%2fghi"]) == "is REDACTED-1")
    }

    @Test(arguments: 0..<6) func `a value within Base64 is replaced there, and the Base64 stays whole`(_ before: Int)
        throws
    {
        let text = String(repeating: "x", count: before) + ":" + Self.secret + "; and more"
        let coded = Data(text.utf8).base64EncodedString()
        let found = try #require(Self.replaced(#"{"a":"\#(coded)"}"#)).dropFirst(6).dropLast(2)
        let data = try #require(Data(base64Encoded: String(found)))
        #expect(String(decoding: data, as: UTF8.self) == text.replacing(Self.secret, with: "REDACTED-1"))
        // The same as a segment of a token, in the alphabet of URLs.
        let segment = coded.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        let token = try #require(Self.replaced("eyJ.\(segment).sig"))
        let parts = token.split(separator: ".")
        #expect(parts.count == 3 && parts[0] == "eyJ" && parts[2] == "sig")
        #expect(String(decoding: Base64.decode(parts[1].utf8), as: UTF8.self).contains("REDACTED-1; and more"))
    }

    @Test func `a value within folded Base64 is replaced`() throws {
        let text =
            String(repeating: "some lines of text ", count: 8) + Self.secret + String(repeating: " more", count: 30)
        let folded = Data(text.utf8).base64EncodedString(options: .lineLength64Characters)
        for lineEnd in ["\r\n", "\n", "\r\n  ", #"\n"#] {
            let spelled = "[" + folded.replacing("\r\n", with: lineEnd) + "]"
            let result = try #require(Self.replaced(spelled)).dropFirst().dropLast()
            let data = try #require(Data(base64Encoded: String(result), options: .ignoreUnknownCharacters))
            #expect(String(decoding: data, as: UTF8.self) == text.replacing(Self.secret, with: "REDACTED-1"))
        }
    }

    @Test func `a value in UTF-16 or UTF-32 is replaced in the same encoding`() throws {
        for encoding in [String.Encoding.utf16LittleEndian, .utf16BigEndian, .utf32LittleEndian, .utf32BigEndian] {
            for (before, after) in [("", ""), ("é", "é"), ("a", "b")] {
                let text = try #require((before + Self.secret + after).data(using: encoding))
                let result = try #require(Self.replaced(Array(text)))
                #expect(String(data: Data(result), encoding: encoding) == before + "REDACTED-1" + after)
            }
        }
    }

    @Test func `of overlapping values the longest is replaced, and many are found in one pass`() {
        let values = (0..<500).map { "value-\($0)-of-many" } + ["value-7-of-many-more"]
        let known = KnownValues(values.map { Array($0.utf8) })
        for (number, value) in values.enumerated() {
            let result = known.replacing(in: Array("<\(value)>".utf8)) { Array("\($0)".utf8) }
            #expect(result == Array("<\(number)>".utf8))
        }
    }

    @Test func `values across the pieces in which a large text is searched are found`() throws {
        var text = [UInt8](repeating: 0x78, count: 3 << 20)
        let places = [0, (1 << 20) - 3, (1 << 20) + 5, (2 << 20) - 40, text.count - 40]
        for place in places {
            text.replaceSubrange(place..<place + 40, with: Array("s3cret%2B%2F%3Dvalue%261................".utf8))
        }
        let result = try #require(Self.replaced(text))
        #expect(Self.replaced(result) == nil)
        #expect(String(decoding: result, as: UTF8.self).ranges(of: "REDACTED-1").count == places.count - 1)
    }

    @Test func `short values and other texts are left alone`() {
        #expect(Self.replaced("abc", ["abc"]) == nil)
        #expect(Self.replaced(#"{"a":"s3cret+/=valu&1","b":"%2B\u002B&amp;"}"#) == nil)
        #expect(Self.replaced("") == nil)
    }
}
