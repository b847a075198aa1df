import Testing

@testable import HTTPSemantics

/// Text that hides or alters the text around it.
@Suite struct PrintableTextTests {
    @Test(
        arguments: [
            0x00, 0x07, 0x1B, 0x7F, 0x85, 0x9B, 0xAD, 0x34F, 0x61C, 0x115F, 0x17B4, 0x180E, 0x200B, 0x200C, 0x200D,
            0x200E, 0x2028,
            0x2029, 0x202A, 0x202E, 0x2060, 0x2066, 0x2069, 0x206F, 0x3164, 0xFEFF, 0xFFA0, 0xFFF9, 0x1D173, 0xE0001,
            0xE0041,
            0xE0100,
        ] as [UInt32]
    )
    func `an invisible character is made visible`(value: UInt32) throws {
        let scalar = try #require(Unicode.Scalar(value))
        let text = "a\(Character(scalar))b"
        #expect(scalar.isDeceptive)
        #expect(!text.printable.unicodeScalars.contains(scalar) && text.printable.contains("\\"))
        #expect(!JSONText.printable(text).text.unicodeScalars.contains(scalar))
    }

    @Test func `letters, accents and emoji stay as they are`() {
        for text in ["é", "e\u{301}", "日本語", "עברית", "العربية", "❤\u{FE0F}", "🇩🇪", "a\u{A0}b", "ß", "ﬁ"] {
            #expect(text.printable == text)
        }
    }
}
