/// A JSON value to be written; bytes from the store are written unchanged.
///
/// For small responses off the request path, because the result is one array of bytes.
package enum JSONText: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    /// A string with escapes also for characters that must not reach a terminal (`Unicode.Scalar.isDeceptive`).
    case printable(String)
    case array([JSONText])
    /// The members in the order in which they are written.
    case object([(name: String, value: JSONText)])
    /// Valid JSON text.
    case raw([UInt8])

    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(arrayLiteral elements: JSONText...) { self = .array(elements) }
    package init(dictionaryLiteral members: (String, JSONText)...) {
        self = .object(members.map { (name: $0.0, value: $0.1) })
    }

    package static func integer(_ value: Int) -> JSONText { .integer(Int64(value)) }

    /// An object of those members that have a value.
    package static func object(present members: KeyValuePairs<String, JSONText?>) -> JSONText {
        .object(members.compactMap { name, value in value.map { (name: name, value: $0) } })
    }

    /// The text on one line, without a final line feed.
    package var bytes: [UInt8] {
        var writer = JSONWriter(indents: false)
        writer.write(self)
        return writer.bytes
    }

    package var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The text on several lines, indented by two spaces per level; raw pieces stay unchanged.
    package var prettyText: String {
        var writer = JSONWriter(indents: true)
        writer.write(self)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

private struct JSONWriter {
    let indents: Bool
    private(set) var bytes: [UInt8] = []
    var level = 0

    mutating func write(_ value: JSONText) {
        switch value {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .integer(let value): bytes += String(value).utf8
        // JSON has no infinite numbers and no NaN.
        case .number(let value): bytes += (value.isFinite ? String(value) : "null").utf8
        case .string(let text): write(text)
        case .printable(let text): write(printable: text)
        case .raw(let text): bytes += text
        case .array(let elements): write(elements, between: "[", "]") { $0.write($1) }
        case .object(let members):
            write(members, between: "{", "}") { writer, member in
                writer.write(printable: member.name)
                writer.bytes += (writer.indents ? ": " : ":").utf8
                writer.write(member.value)
            }
        }
    }

    private mutating func write<Element>(
        _ elements: [Element],
        between open: String,
        _ close: String,
        _ writeOne: (inout JSONWriter, Element) -> Void
    ) {
        bytes += open.utf8
        level += 1
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            breakLine()
            writeOne(&self, element)
        }
        level -= 1
        if !elements.isEmpty { breakLine() }
        bytes += close.utf8
    }

    private mutating func breakLine() {
        guard indents else { return }
        bytes.append(UInt8(ascii: "\n"))
        bytes += repeatElement(UInt8(ascii: " "), count: 2 * level)
    }

    /// Writes a string literal with only the escapes that RFC 8259 §7 demands.
    private mutating func write(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        bytes.append(escapedForJSON: text.utf8)
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func write(printable text: String) {
        guard text.unicodeScalars.contains(where: { $0.isDeceptive }) else { return write(text) }
        bytes.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            guard scalar.value >= 0x7F, scalar.isDeceptive else {
                bytes.append(escapedForJSON: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
                continue
            }
            for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
                bytes += ("\\u" + unit.hexadecimal(width: 4)).utf8
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}

extension [UInt8] {
    /// Appends UTF-8, or a part of it, escaped for a JSON string.
    package mutating func append(escapedForJSON text: some Sequence<UInt8>) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                append(UInt8(ascii: "\\"))
                append(byte)
            case 0x0A: self += "\\n".utf8
            case 0x0D: self += "\\r".utf8
            case 0x09: self += "\\t".utf8
            case 0..<0x20: self += ("\\u00" + byte.hexadecimal(width: 2)).utf8
            default: append(byte)
            }
        }
    }
}

extension StringProtocol {
    /// The text with escapes for characters that could alter the text around it.
    ///
    /// These are control characters, including those of ANSI escapes, line ends of all kinds, and characters that are invisible
    /// or change the writing direction. All text from clients and upstreams is escaped like this in lines for people.
    package var printable: String {
        guard unicodeScalars.contains(where: \.isDeceptive) else { return String(self) }
        var result = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where !scalar.isDeceptive: result.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x100: result += "\\x" + scalar.value.hexadecimal(width: 2)
            default: result += "\\u{\(String(scalar.value, radix: 16))}"
            }
        }
        return result
    }
}

extension Unicode.Scalar {
    /// Whether the character must not reach a terminal.
    package var isDeceptive: Bool {
        switch value {
        case 0x20..<0x7F: false
        case 0..<0x20, 0x7F..<0xA0: true
        case 0xA0..<0xAD, 0xAE..<0x300: false
        // These choose between a letter's or an emoji's forms.
        case 0xFE0E, 0xFE0F: false
        // Without width, or changing the direction: direction marks, joiners, the soft hyphen, fillers, tags.
        default:
            switch properties.generalCategory {
            case .format, .lineSeparator, .paragraphSeparator: true
            default: properties.isDefaultIgnorableCodePoint
            }
        }
    }
}
