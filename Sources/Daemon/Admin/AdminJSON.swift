import FoundationEssentials
import HTTPSemantics
import Synchronization

/// The JSON of the admin side, encoded and decoded by Foundation: members are in `snake_case`, sorted by name.
package enum AdminJSON {
    /// A value as JSON text without a final line feed.
    package static func encode(_ value: some Encodable, isPretty: Bool = false) -> [UInt8] {
        let raw = RawJSON.Collection()
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isPretty { encoder.outputFormatting.insert(.prettyPrinted) }
        encoder.userInfo[RawJSON.Collection.key] = raw
        // Responses consist of texts, whole numbers and flags, so encoding cannot fail.
        guard let data = try? encoder.encode(value) else { preconditionFailure("a response is always JSON") }
        return raw.inserted(into: [UInt8](data))
    }

    /// Decodes a value that `encode` wrote.
    package static func decode<Value: Decodable>(_ type: Value.Type, from json: [UInt8]) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(ReadableJSON.make(json)))
    }
}

extension String {
    /// `time_to_live` for `timeToLive`, as `AdminJSON` writes the names of members.
    package var snakeCased: String { reduce(into: "") { $0 += $1.isUppercase ? "_\($1.lowercased())" : "\($1)" } }
}

/// JSON text that is part of a response unchanged: an object, or a value in one, in the upstream's own spelling.
package struct RawJSON: Codable, Sendable {
    private let json: JSONText

    package init(_ bytes: [UInt8]) { json = .raw(bytes) }

    package var text: String { json.text }

    /// The text on many lines; members of decoded values are sorted by name, and texts are fit for a terminal.
    package var prettyText: String { json.prettyText }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        guard let raw = encoder.userInfo[Collection.key] as? Collection else {
            preconditionFailure("AdminJSON writes raw JSON")
        }
        try container.encode(raw.add(json.bytes))
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            json = .null
        } else if let value = try? container.decode(Bool.self) {
            json = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            json = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            json = .raw(Array("\(value)".utf8))
        } else if let value = try? container.decode(String.self) {
            json = ReadableJSON.number(in: value).map { .raw(Array($0.utf8)) } ?? .printable(value)
        } else if let value = try? container.decode([RawJSON].self) {
            json = .array(value.map(\.json))
        } else {
            let members = try container.decode([String: RawJSON].self).sorted { $0.key < $1.key }
            json = .object(members.map { (name: $0.key, value: $0.value.json) })
        }
    }

    /// The raw pieces of one response: the encoder writes a unique string for each, which the piece then replaces.
    fileprivate final class Collection: Sendable {
        static let key = CodingUserInfoKey(rawValue: "raw")!
        /// Random, so that no text of an upstream can equal it.
        private let mark = "raw \(UInt64.random(in: .min ... .max)) "
        private let pieces = Mutex<[[UInt8]]>([])

        func add(_ piece: [UInt8]) -> String {
            pieces.withLock { pieces in
                pieces.append(piece)
                return mark + String(pieces.count - 1)
            }
        }

        func inserted(into json: [UInt8]) -> [UInt8] {
            let pieces = pieces.withLock { $0 }
            if pieces.isEmpty { return json }
            let quote = UInt8(ascii: "\"")
            let start = [quote] + Array(mark.utf8)
            var output: [UInt8] = []
            output.reserveCapacity(json.count + pieces.reduce(0) { $0 + $1.count })
            var rest = json[...]
            while let position = rest.firstIndex(of: quote) {
                output += rest[..<position]
                rest = rest[position...]
                guard rest.starts(with: start) else {
                    output.append(quote)
                    rest = rest.dropFirst()
                    continue
                }
                rest = rest.dropFirst(start.count)
                let digits = rest.prefix { $0 != quote }
                rest = rest.dropFirst(digits.count + 1)
                if let index = Int(String(decoding: digits, as: UTF8.self)) { output += pieces[index] }
            }
            return output + rest
        }
    }
}

/// Makes a response of the daemon fit for Foundation's decoder, which refuses much of what upstreams send.
///
/// Objects keep the upstream's spelling: numbers that no machine number represents (`1e400`, twenty digits), escapes of half a
/// character (`\ud800`), bytes that are not UTF-8. One such value must not hide the others.
private enum ReadableJSON {
    /// Marks a string that stands for a number; a private-use character of Unicode.
    private static let numberMark: Character = "\u{F7A1}"

    /// The text with U+FFFD for invalid Unicode, and with quotes around each number that the decoder would not read exactly.
    static func make(_ json: [UInt8]) -> [UInt8] {
        // Invalid UTF-8 becomes U+FFFD.
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

    static func number(in text: String) -> String? { text.first == numberMark ? String(text.dropFirst()) : nil }

    private static func copyNumber(_ text: [UInt8], _ position: inout Int, to output: inout [UInt8]) {
        let start = position
        while position < text.count, "+-.eE0123456789".utf8.contains(text[position]) { position += 1 }
        let literal = String(decoding: text[start..<position], as: UTF8.self)
        // The decoder would turn 1.0 into 1.
        let isFraction = Double(literal).map { $0 != $0.rounded() && "\($0)" == literal } ?? false
        if isFraction || Int64(literal).map({ String($0) == literal }) ?? false {
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

    private static func unit(_ text: [UInt8], at position: Int) -> UInt16? {
        guard position + 6 <= text.count, text[position] == UInt8(ascii: "\\"), text[position + 1] == UInt8(ascii: "u")
        else { return nil }
        return UInt16(String(decoding: text[position + 2..<position + 6], as: UTF8.self), radix: 16)
    }
}

extension [UInt8] {
    /// JSON text on one line: line ends occur only between tokens, where a space means the same.
    var onOneLine: [UInt8] {
        contains { $0 == 0x0A || $0 == 0x0D } ? map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 } : self
    }
}
