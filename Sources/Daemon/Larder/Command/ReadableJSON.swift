/// A daemon's answer made fit for Foundation's decoder, which refuses much of what upstreams send.
///
/// Objects are shown as upstreams spell them: with numbers that no machine number holds (`1e400`, twenty digits), escapes of
/// half a character (`\ud800`), bytes that are no UTF-8. One such value must not hide all others from people.
enum ReadableJSON {
    /// Begins a string that stands for a number; a character of nobody's (Unicode's private use).
    static let numberMark: Character = "\u{F7A1}"

    /// The text with the like of U+FFFD for what is no Unicode, and in quotes each number that would not be read exactly.
    static func make(_ json: [UInt8]) -> [UInt8] {
        // What is no UTF-8 becomes U+FFFD.
        let text = Array(String(decoding: json, as: UTF8.self).utf8)
        var output: [UInt8] = []
        output.reserveCapacity(text.count)
        var position = 0
        while position < text.count {
            switch text[position] {
            case UInt8(ascii: "\""): copyString(text, &position, to: &output)
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): copyNumber(text, &position, to: &output)
            default:
                output.append(text[position])
                position += 1
            }
        }
        return output
    }

    /// The number that a string stands for; nil for others.
    static func number(in text: String) -> String? {
        text.first == numberMark ? String(text.dropFirst()) : nil
    }

    private static func copyNumber(_ text: [UInt8], _ position: inout Int, to output: inout [UInt8]) {
        let start = position
        while position < text.count, "+-.eE0123456789".utf8.contains(text[position]) { position += 1 }
        let literal = String(decoding: text[start..<position], as: UTF8.self)
        // Of 1.0 the decoder makes 1.
        if Int64(literal).map({ String($0) == literal }) ?? false {
            output += text[start..<position]
        } else {
            output += "\"\(numberMark)\(literal)\"".utf8
        }
    }

    private static func copyString(_ text: [UInt8], _ position: inout Int, to output: inout [UInt8]) {
        output.append(text[position])
        position += 1
        while position < text.count {
            let byte = text[position]
            if byte == UInt8(ascii: "\\"), let unit = unit(text, at: position) {
                let isPair =
                    (0xD800..<0xDC00).contains(unit) && (self.unit(text, at: position + 6) ?? 0) & 0xFC00 == 0xDC00
                let length = isPair ? 12 : 6
                output +=
                    isPair || !(0xD800..<0xE000).contains(unit)
                    ? text[position..<position + length] : Array("\\ufffd".utf8)[...]
                position += length
            } else if byte == UInt8(ascii: "\\"), position + 1 < text.count {
                output += text[position...position + 1]
                position += 2
            } else {
                output.append(byte)
                position += 1
                if byte == UInt8(ascii: "\"") { return }
            }
        }
    }

    /// The code unit of a `\u` escape; nil where there is none.
    private static func unit(_ text: [UInt8], at position: Int) -> UInt16? {
        guard position + 6 <= text.count, text[position] == UInt8(ascii: "\\"), text[position + 1] == UInt8(ascii: "u")
        else { return nil }
        return UInt16(String(decoding: text[position + 2..<position + 6], as: UTF8.self), radix: 16)
    }
}
