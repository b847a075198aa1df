import HTTPSemantics

/// Private keys in the text form of PEM (RFC 7468) and of OpenPGP, as they are, escaped, or in Base64 once more.
enum PrivateKeys {
    private static let (label, dashes) = (Array("PRIVATE KEY".utf8), Array("-----".utf8))
    private static let (begin, end) = (dashes + "BEGIN".utf8, dashes + "END".utf8)
    /// How the Base64 of `-----BEGIN` begins.
    private static let coded = Array("LS0tLS1CRUdJT".utf8)
    /// More keys are not looked for.
    private static let maximumKeys = 1_000

    /// What stands between the first line of a key and the last, of each key.
    static func ranges(in text: UnsafeBufferPointer<UInt8>) -> [Range<Int>] {
        var (ranges, position): ([Range<Int>], Int) = ([], 0)
        while ranges.count < maximumKeys, let place = text.place(of: label, from: position) {
            position = place + label.count
            let before = text[max(0, place - 60)..<place]
            guard let begin = Array(before).firstRange(of: begin), before.count - begin.upperBound <= 40,
                let start = text[..<min(text.count, position + 16)].dropFirst(position).firstRange(of: dashes)?
                    .upperBound
            else { continue }
            // One that has no end goes on as long as it may.
            let last =
                text.place(of: end, from: start) ?? text[start...].firstIndex(where: stops.contains) ?? text.count
            if start < last { ranges.append(start..<last) }
            position = last
        }
        return ranges + codedRanges(in: text)
    }

    /// `"&'<>`.
    private static let stops: Set<UInt8> = [0x22, 0x26, 0x27, 0x3C, 0x3E]

    private static func codedRanges(in text: UnsafeBufferPointer<UInt8>) -> [Range<Int>] {
        var (ranges, position): ([Range<Int>], Int) = ([], 0)
        while ranges.count < maximumKeys, let place = text.place(of: coded, from: position) {
            let digits = text[place...].prefix { Base64.isDigit($0) }
            position = digits.endIndex
            if Base64.decode(digits.prefix(100)).firstRange(of: label) != nil { ranges.append(place..<digits.endIndex) }
        }
        return ranges
    }

    /// The Base64 of a key without what separates its lines, which is what others may repeat.
    static func digits(of key: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        (UnescapedText(unescaping: key)?.bytes ?? Array(key)).filter { Base64.isDigit($0) }
    }
}
