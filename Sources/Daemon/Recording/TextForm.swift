import HTTPSemantics
import Upstream

/// What a text is by its looks, where nothing says so.
enum TextForm {
    /// Whether a string is worth a look inside.
    static func mayContainSecrets(_ text: UnsafeBufferPointer<UInt8>.SubSequence) -> Bool {
        text.count >= 3 && text.contains { $0 == 0x3D || $0 == 0x40 || $0 == 0x22 || $0 == 0x20 }
    }

    /// Whether a text is a form, by its first name, although its type may say something else.
    ///
    /// Some programs send what they were given: with spaces and quotes, after an empty line, or one parameter in each line.
    ///
    /// - Parameter mayHaveLines: Whether it may be in several lines, as a file of settings is, too.
    static func isForm(_ text: UnsafeBufferPointer<UInt8>, mayHaveLines: Bool) -> Bool {
        guard let start = text.firstIndex(where: { !isSpace($0) && $0 != 0x26 }),
            let equals = text[start...].firstIndex(where: { !isNameByte($0) }), text[equals] == 0x3D, equals > start
        else { return false }
        if mayHaveLines { return true }
        let line = text[start..<((text.lastIndex { !isSpace($0) } ?? start) + 1)]
        guard !line.contains(0x0A), !line.contains(0x0D) else { return false }
        return line.contains(0x26) || line.allSatisfy { $0 > 0x20 && ![0x22, 0x3C, 0x3E, 0x5C, 0x7F].contains($0) }
    }

    /// The parameters of a form: after `&`, and in lines that begin with a name.
    static func parameters(of text: UnsafeBufferPointer<UInt8>) -> [(name: [UInt8], value: Range<Int>)] {
        var pairs: [(name: [UInt8], value: Range<Int>)] = []
        var start = 0
        func add(until end: Int) {
            let pair = text[start..<end]
            let equals = pair.firstIndex(of: 0x3D) ?? pair.endIndex
            let name = decoded(UnsafeBufferPointer(rebasing: pair[..<equals].drop(while: isSpace))[...])
            let last = pair.lastIndex { $0 != 0x0A && $0 != 0x0D } ?? pair.startIndex - 1
            let value = min(equals + 1, pair.endIndex)
            pairs.append((name, value..<max(value, last + 1)))
        }
        for place in text.indices {
            switch text[place] {
            case 0x26: add(until: place)
            case 0x0A:
                let name = text[(place + 1)...].prefix { isNameByte($0) }
                guard !name.isEmpty, name.endIndex < text.count, text[name.endIndex] == 0x3D else { continue }
                add(until: place)
            default: continue
            }
            start = place + 1
        }
        add(until: text.count)
        return pairs
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte <= 0x20 && [0x09, 0x0A, 0x0D, 0x20].contains(byte) }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        FieldSyntax.isLetter(byte) || FieldSyntax.isDigit(byte) || "_-.[]%+$~!*".utf8.contains(byte)
    }

    /// The bytes of a name or value of a form or a URL.
    static func decoded(_ text: UnsafeBufferPointer<UInt8>.SubSequence, isForm: Bool = true) -> [UInt8] {
        let part = isForm ? text.map { $0 == 0x2B ? 0x20 : $0 } : Array(text)
        return part.withUnsafeBufferPointer { UnescapedText(unescaping: $0, .percent) }?.bytes ?? part
    }

    /// The credential in a text such as `Bearer …`, as programs copy it from `Authorization`.
    static func credential(_ text: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
        guard let space = text.prefix(8).firstIndex(of: 0x20) else { return nil }
        let scheme = FieldSyntax.lowercased(text[..<space])
        let rest = text[(space + 1)...]
        guard rest.count >= KnownValues.shortest, rest.allSatisfy({ $0 > 0x20 && $0 != 0x22 && $0 != 0x2C })
        else { return nil }
        let isCredential =
            scheme.elementsEqual("bearer".utf8)
            || scheme.elementsEqual("basic".utf8) && Base64.decode(rest).contains(0x3A)
        return isCredential ? rest.startIndex..<rest.endIndex : nil
    }

    /// The user name and password in a URL.
    static func userInformation(_ url: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
        guard url.place(of: 0x40, from: 0) != nil, let slashes = url.place(of: [0x2F, 0x2F], from: 0)
        else { return nil }
        let isScheme = url[..<slashes].last == 0x3A || slashes == 0 || url[..<slashes].last == 0x3D
        guard isScheme else { return nil }
        let authority = url[(slashes + 2)...].prefix { $0 != 0x2F && $0 != 0x3F && $0 != 0x23 }
        guard let at = authority.lastIndex(of: 0x40), at > authority.startIndex else { return nil }
        return authority.startIndex..<at
    }

    /// The pieces of a text that may be URLs with parameters, or with a password.
    static func references(in text: UnsafeBufferPointer<UInt8>) -> [Range<Int>] {
        guard text.place(of: 0x3D, from: 0) != nil || text.place(of: 0x40, from: 0) != nil else { return [] }
        var ranges: [Range<Int>] = []
        var start = 0
        var (hasParameters, hasMark) = (false, false)
        for place in 0...text.count {
            let byte = place < text.count ? text[place] : 0x20
            switch byte {
            case 0...0x20, 0x22, 0x27, 0x3C, 0x3E, 0x60, 0x7B, 0x7D:
                if hasParameters && hasMark { ranges.append(start..<place) }
                start = place + 1
                (hasParameters, hasMark) = (false, false)
            case 0x3D, 0x40: hasParameters = true
            case 0x3F, 0x23, 0x3B, 0x2F: hasMark = true
            default: break
            }
        }
        return ranges
    }
}

/// Compressed files that a text contains in Base64.
enum CompressedText {
    /// How the Base64 of gzip and zstd begins.
    private static let beginnings = [Array("H4sI".utf8), Array("KLUv".utf8)]
    /// The largest content that is looked at, in bytes.
    private static let byteLimit = 16 << 20
    private static let files = 100

    /// Changes the content of each such file.
    static func change(_ text: inout [UInt8], _ change: CodedContent.Change) {
        var edits: [Edit] = []
        let source = text
        source.withUnsafeBufferPointer { text in
            for beginning in beginnings {
                var position = 0
                while edits.count < files, let place = text.place(of: beginning, from: position) {
                    var end = place
                    while end < text.count, Base64.isDigit(text[end]) || isEscapedSlash(text, end) { end += 1 }
                    position = end
                    while end < text.count, text[end] == 0x3D { end += 1 }
                    guard end - place >= 24, let edit = edit(Array(text[place..<end]), change) else { continue }
                    edits.append(Edit(range: place..<end, text: edit))
                }
            }
        }
        if !edits.isEmpty { text = Edit.apply(Edit.withoutOverlaps(edits), to: text) }
    }

    /// Whether a backslash stands before a slash, as some write it in JSON.
    private static func isEscapedSlash(_ text: UnsafeBufferPointer<UInt8>, _ place: Int) -> Bool {
        text[place] == 0x5C && place + 1 < text.count && text[place + 1] == 0x2F
    }

    private static func edit(_ digits: [UInt8], _ change: CodedContent.Change) -> [UInt8]? {
        let file = Base64.decode(digits.filter { $0 != 0x5C })
        let coding = file.first == 0x1F ? "gzip" : "zstd"
        guard let content = DecodedBody.decode(file, coding: coding, limit: byteLimit) else { return nil }
        var changed = content
        change(&changed, ContentHead())
        guard changed != content, let encoded = EncodedBody.encode(changed, coding: coding, like: file)
        else { return nil }
        let alphabet: Base64.Alphabet = digits.contains { Base64.alphabet(of: $0) == .urls } ? .urls : .standard
        return Base64.encode(encoded, in: alphabet, isPadded: digits.last == 0x3D || alphabet == .standard)
    }
}
