import Testing

@testable import HTTPSemantics

@Suite struct FieldSyntaxTests {
    @Test func `all bytes have two hexadecimal digits each, which stand for them in either case`() {
        let bytes = Array(UInt8.min...UInt8.max)
        let text = bytes.hexadecimal
        #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff") && text.utf8.count == 512)
        #expect([UInt8](hexadecimal: text.utf8) == bytes)
        #expect([UInt8](hexadecimal: text.uppercased().utf8) == bytes)
        #expect([UInt8]().hexadecimal.isEmpty && bytes[250...].hexadecimal == "fafbfcfdfeff")
    }

    @Test(arguments: ["0", "0g", "+1", " 00", "00\n", "0x00", "é"])
    func `half a pair, and what is no digit, stand for no bytes`(_ text: String) {
        #expect([UInt8](hexadecimal: text.utf8) == nil)
    }
}
