/// What may be in a message, whoever reads or writes it (RFC 9110, RFC 9112).
package enum MessageSyntax {
    /// The statuses of final responses.
    ///
    /// Those above 599 have no meaning (RFC 9110 §15), but some servers send them, and they are passed on.
    package static let finalStatuses = 200...999

    /// Whether a text is a method (RFC 9110 §9.1).
    package static func isMethod(_ text: String) -> Bool { FieldSyntax.isToken(text.utf8) }

    /// Whether a text is a target in origin form (RFC 9112 §3.2.1): a path, and perhaps a query.
    package static func isTarget(_ text: String) -> Bool {
        text.utf8.first == 0x2F && text.utf8.allSatisfy(isTargetByte)
    }

    /// Whether the byte may be in a target.
    ///
    /// Bytes above 0x7F are not allowed in URLs either, but many clients send them and servers accept them.
    @inline(__always)
    package static func isTargetByte(_ byte: UInt8) -> Bool { byte > 0x20 && byte != 0x7F && byte != 0x23 }

    /// Whether the bytes are the name of a field (RFC 9110 §5.1).
    package static func isFieldName(_ bytes: some Collection<UInt8>) -> Bool { FieldSyntax.isToken(bytes) }

    /// Whether the bytes are a field's value (RFC 9110 §5.5), which other control characters do not make dangerous.
    package static func isFieldValue(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 != 0x0D && $0 != 0x0A && $0 != 0 }
    }

    /// Whether the bytes are a `Content-Length` (RFC 9110 §8.6).
    package static func isLength(_ value: [UInt8]) -> Bool {
        (1...18).contains(value.count) && value.allSatisfy(FieldSyntax.isDigit)
    }
}
