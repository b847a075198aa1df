/// The bytes of a body of which another tool keeps the text.
struct ForeignText {
    let bytes: [UInt8]
    /// Whether they are those that were sent, as far as can be known.
    let isExact: Bool

    /// - Parameters:
    ///   - charset: The one that the text was in, in lower case; empty for UTF-8.
    ///   - size: How many bytes were sent, if the tool says so; nil if not.
    init(_ text: String, charset: String, size: Int? = nil) {
        let utf8 = Array(text.utf8)
        guard !utf8.isEmpty, !WideText.isWide(charset) else {
            (bytes, isExact) = (utf8, utf8.isEmpty)
            return
        }
        let western = Self.westernCharsets.contains(charset) ? Self.western(text) : nil
        // A label may be wrong, and a tool that decodes takes the byte order mark out. The size shows both.
        let forms = [western, utf8, WideText.utf8Mark + utf8].compactMap(\.self)
        if let form = forms.first(where: { $0.count == size }) ?? western {
            (bytes, isExact) = (form, true)
            return
        }
        bytes = utf8
        // Tools write U+FFFD for bytes that they cannot decode.
        let isUTF8 = ["", "utf-8", "utf8"].contains(charset) && (size == nil || !text.contains("\u{FFFD}"))
        isExact = isUTF8 || utf8.allSatisfy { $0 < 0x80 }
    }

    /// Windows-1252, and those that browsers decode like it.
    private static let westernCharsets = [
        "iso-8859-1", "iso8859-1", "latin1", "windows-1252", "cp1252", "us-ascii", "ascii",
    ]

    /// A text in windows-1252; nil if it has other characters.
    ///
    /// What ISO 8859-1 has in their place, control characters, becomes the same bytes.
    private static func western(_ text: String) -> [UInt8]? {
        let bytes = text.unicodeScalars.map(\.value).map { value in
            value < 0x100 ? UInt8(value) : characters.firstIndex(of: value).map { 0x80 + UInt8($0) }
        }
        return bytes.contains(nil) ? nil : bytes.compactMap(\.self)
    }

    /// The characters of the bytes from 0x80 to 0x9F.
    private static let characters: [UInt32] = [
        0x20AC, 0x81, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039, 0x152, 0x8D, 0x17D,
        0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x9D,
        0x17E, 0x178,
    ]
}
