/// Reads identities of objects as canonical text.
enum Identity {
    /// The longest identity, in bytes of UTF-8; longer text is content, not an identity.
    static let maximumLength = 512

    enum Reading: Equatable {
        case text(String)
        /// Null or an empty string, which are normal in real responses.
        case none
        /// A boolean, object or array, text that is too long, or text that is not Unicode.
        case unusable
    }

    /// Reads one valid JSON value.
    ///
    /// - Parameter isStrict: whether the number 7 and the string "7" differ; such a string then gets quotes.
    static func read(_ literal: UnsafeBufferPointer<UInt8>, isStrict: Bool = false) -> Reading {
        switch literal.first ?? 0 {
        case UInt8(ascii: "\""):
            // Escapes only make a literal longer: at most six bytes for one byte of text.
            guard literal.count <= maximumLength * 6 + 2 else { return .unusable }
            guard literal.count > 2 else { return .none }
            guard let text = JSONString.text(literal), text.utf8.count <= maximumLength else { return .unusable }
            return .text(isStrict ? quoted(text) : text)
        case UInt8(ascii: "n"): return .none
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            guard literal.count <= maximumLength else { return .unusable }
            // A plain integer is its own canonical text.
            let isPlain = literal.count <= 40 && literal.allSatisfy(\.isDigit)
            return .text(isPlain ? String(decoding: literal, as: UTF8.self) : JSONNumber(literal).canonicalText)
        default: return .unusable
        }
    }

    /// Reads text that is not JSON, such as a capture or the value of a header field.
    static func read(text: String) -> Reading {
        if text.isEmpty { return .none }
        return text.utf8.count <= maximumLength ? .text(text) : .unusable
    }

    /// The strict identity of a string, in quotes if it could be mistaken for a number.
    static func quoted(_ text: String) -> String {
        let isMistakable = text.utf8.first == UInt8(ascii: "\"") || JSONBody.isNumber(text)
        return isMistakable ? "\"\(text)\"" : text
    }

    /// The string in a quoted strict identity; nil for other identities.
    static func unquoted(_ identity: String) -> String? {
        let quote = UInt8(ascii: "\"")
        guard identity.utf8.count >= 2, identity.utf8.first == quote, identity.utf8.last == quote else { return nil }
        return String(identity.dropFirst().dropLast())
    }

    /// Joins several parts to one identity, with colons, which are escaped within the parts.
    static func join(_ parts: [String]) -> String {
        guard parts.count != 1 else { return parts[0] }
        return parts.map { part in
            part.unicodeScalars.map { $0 == ":" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined()
        }.joined(separator: ":")
    }
}

/// The name of one object within an upstream, a principal and a context: its model and its identity.
public struct ObjectName: Sendable {
    public var model: String
    /// The canonical text of the identity.
    ///
    /// It is the unescaped content of a JSON string, or the exact canonical decimal of a number: the number 7, `7.0`
    /// and the string `"7"` are one identity. Several members are joined by colons.
    public var identity: String

    /// Names an object; `identity` must already be canonical.
    public init(model: String, identity: String) { (self.model, self.identity) = (model, identity) }
}

extension ObjectName: Hashable, CustomStringConvertible {
    /// Compares byte by byte: canonically equivalent text is equal in Swift, but not in JSON.
    public static func == (left: ObjectName, right: ObjectName) -> Bool {
        left.identity.utf8.elementsEqual(right.identity.utf8) && left.model.utf8.elementsEqual(right.model.utf8)
    }

    /// Hashes the bytes that are compared.
    public func hash(into hasher: inout Hasher) {
        var (model, identity) = (model, identity)
        model.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xFF as UInt8)
        identity.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// A text such as `User:583231`, for messages.
    public var description: String { "\(model):\(identity)" }
}
