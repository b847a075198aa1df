import Testing

@testable import HTTPSemantics

struct PercentEncodingTests {
    @Test func `all bytes except the allowed ones are percent-encoded`() {
        #expect(PercentEncoding.encode("a-b_c.d~9") == "a-b_c.d~9")
        #expect(PercentEncoding.encode("a/b c%ü\u{1}") == "a%2Fb%20c%25%C3%BC%01")
        #expect(PercentEncoding.encode("/a b/ü") { $0 > 0x20 && $0 < 0x7F } == "/a%20b/%C3%BC")
    }

    @Test func `escapes with digits in either case are decoded once`() {
        #expect(PercentEncoding.decode("a%2fb%2Fc%2541+") == "a/b/c%41+")
        #expect(PercentEncoding.decode("%C3%BC") == "ü")
        #expect(PercentEncoding.decode("") == "")
    }

    @Test(arguments: ["%", "%4", "a%4", "%4g", "%%41", "%FF", "%C3"])
    func `a broken escape, or bytes that are not UTF-8, cannot be decoded`(_ text: String) {
        #expect(PercentEncoding.decode(text) == nil)
    }
}
