/// The identity of objects, as canonical text.
enum Identity {
    /// The longest identity in bytes of UTF-8; more is no identity but content.
    static let maximumLength = 512

    /// What a member says about the identity of its object.
    enum Reading: Equatable {
        case text(String)
        /// Null or an empty string: regular in real answers.
        case none
        /// A boolean, object or array, too long, or text that is not Unicode.
        case unusable
    }

    /// Reads one valid JSON value.
    ///
    /// - Parameter isStrict: whether the number 7 and the string "7" are to differ; the string is then known with quotes.
    static func read(_ literal: UnsafeBufferPointer<UInt8>, isStrict: Bool = false) -> Reading {
        switch literal.first ?? 0 {
        case UInt8(ascii: "\""):
            // Escapes only make a literal longer: six bytes for one at most.
            guard literal.count <= maximumLength * 6 + 2 else { return .unusable }
            guard literal.count > 2 else { return .none }
            guard let text = JSONString.text(literal), text.utf8.count <= maximumLength else { return .unusable }
            return .text(isStrict ? quoted(text) : text)
        case UInt8(ascii: "n"):
            return .none
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            guard literal.count <= maximumLength else { return .unusable }
            return .text(numberText(literal))
        default:
            return .unusable
        }
    }

    /// Reads text that is no JSON: a capture, a field's value.
    static func read(text: String) -> Reading {
        if text.isEmpty { return .none }
        return text.utf8.count <= maximumLength ? .text(text) : .unusable
    }

    /// A string as an identity that differs from every number's: in quotes if it could be taken for one.
    static func quoted(_ text: String) -> String {
        let isMistakable = text.utf8.first == UInt8(ascii: "\"") || Reference.isNumber(text)
        return isMistakable ? "\"\(text)\"" : text
    }

    /// The string behind a strict identity in quotes; nil for others.
    static func unquoted(_ identity: String) -> String? {
        let quote = UInt8(ascii: "\"")
        guard identity.utf8.count >= 2, identity.utf8.first == quote, identity.utf8.last == quote else { return nil }
        return String(identity.dropFirst().dropLast())
    }

    private static func numberText(_ literal: UnsafeBufferPointer<UInt8>) -> String {
        // A plain integer is its own canonical text.
        let isPlain = literal.count <= 40 && literal.allSatisfy { $0 &- UInt8(ascii: "0") < 10 }
        return isPlain ? String(decoding: literal, as: UTF8.self) : JSONNumber(literal).canonicalText
    }

    /// Several members as one identity: joined by colons, which are escaped within them.
    static func join(_ parts: [String]) -> String {
        guard parts.count != 1 else { return parts[0] }
        return parts.map { part in
            var escaped = ""
            for character in part.unicodeScalars {
                if character == ":" || character == "\\" { escaped.unicodeScalars.append("\\") }
                escaped.unicodeScalars.append(character)
            }
            return escaped
        }.joined(separator: ":")
    }
}
