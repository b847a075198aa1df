import HTTPSemantics

/// A text in UTF-16 or UTF-32.
struct WideText {
    static let utf8Mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    let utf8: [UInt8]
    private let mark: [UInt8]
    private let form: Form

    private enum Form: CaseIterable {
        case utf16LittleEndian, utf16BigEndian, utf32LittleEndian, utf32BigEndian

        var width: Int { self == .utf16LittleEndian || self == .utf16BigEndian ? 2 : 4 }
        var isBigEndian: Bool { self == .utf16BigEndian || self == .utf32BigEndian }

        func bytes(_ unit: UInt32) -> [UInt8] {
            let bytes = (0..<width).map { UInt8(truncatingIfNeeded: unit >> UInt32(8 * $0)) }
            return isBigEndian ? bytes.reversed() : bytes
        }

        func unit(_ bytes: ArraySlice<UInt8>) -> UInt32 {
            let ordered = isBigEndian ? Array(bytes) : bytes.reversed()
            return ordered.reduce(0) { $0 << 8 | UInt32($1) }
        }
    }

    /// Charsets that are no superset of ASCII, besides those of this type.
    private static let unknown = ["utf-7", "ibm", "ebcdic", "x-ebcdic", "cp037", "cp500", "cp1047", "hz-gb-2312"]

    /// Whether a charset is one of this type.
    static func isWide(_ charset: String) -> Bool {
        ["utf-16", "utf16", "utf-32", "utf32", "ucs-", "iso-10646", "unicode"].contains { charset.hasPrefix($0) }
    }

    /// Reads a body; nil if its text is in another charset.
    init?(_ body: [UInt8], _ head: ContentHead) throws(UndecodableContent) {
        let charset = head.charset
        if Self.unknown.contains(where: { charset.hasPrefix($0) }) {
            throw UndecodableContent(reason: "has a charset that cannot be decoded: \(charset.printable)")
        }
        let isDeclared = Self.isWide(charset)
        guard !head.isOpaque, body.count >= 2, let (form, mark) = Self.form(of: body, charset) else { return nil }
        guard isDeclared || !mark.isEmpty || body.count >= 4 else { return nil }
        guard let utf8 = Self.decode(body.dropFirst(mark.count), form) else {
            if isDeclared { throw UndecodableContent(reason: "is not in its charset, \(charset.printable)") }
            return nil
        }
        (self.utf8, self.form, self.mark) = (utf8, form, mark)
    }

    /// The form that the first bytes show, with the byte order mark.
    private static func form(of body: [UInt8], _ charset: String) -> (Form, [UInt8])? {
        // The longer marks come first: one begins with another.
        for form in Form.allCases.reversed() where body.starts(with: form.bytes(0xFEFF)) {
            return (form, form.bytes(0xFEFF))
        }
        let zeros = body.prefix(4).map { $0 == 0 }
        for form in Form.allCases {
            let letter = form.bytes(0x41).map { $0 == 0 }
            if zeros == letter || zeros == letter + letter { return (form, []) }
        }
        // A text of ASCII is not what its charset says.
        guard body.contains(0) else { return nil }
        if charset.hasSuffix("32le") { return (.utf32LittleEndian, []) }
        if charset.contains("32") { return (.utf32BigEndian, []) }
        if charset.hasSuffix("16le") { return (.utf16LittleEndian, []) }
        return charset.contains("16") || charset.hasPrefix("ucs-2") ? (.utf16BigEndian, []) : nil
    }

    private static func decode(_ body: ArraySlice<UInt8>, _ form: Form) -> [UInt8]? {
        guard body.count % form.width == 0 else { return nil }
        let units = stride(from: body.startIndex, to: body.endIndex, by: form.width).lazy.map { place in
            form.unit(body[place..<place + form.width])
        }
        let text =
            form.width == 2
            ? String(validating: units.map { UInt16($0) }, as: UTF16.self)
            : String(validating: units, as: UTF32.self)
        return text.map { Array($0.utf8) }
    }

    /// A text in the same form.
    func encoded(_ utf8: [UInt8]) -> [UInt8] {
        let text = String(decoding: utf8, as: UTF8.self)
        guard form.width == 4 else { return mark + text.utf16.flatMap { form.bytes(UInt32($0)) } }
        return mark + text.unicodeScalars.flatMap { form.bytes($0.value) }
    }
}
