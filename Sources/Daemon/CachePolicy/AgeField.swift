package import HTTPSemantics

/// The `Age` of a response (RFC 9111 §5.1).
package enum AgeField {
    /// The age in seconds; nil if the field is absent or unreadable, which counts as absent.
    ///
    /// The field holds one number, but lists occur. Then the first non-empty member counts, whether in one line or in several.
    /// A sign, a fraction, a parameter, quotes or text make that member invalid. An invalid member is ignored, not replaced by a
    /// later one. RFC 9111 demands both. A huge number becomes 2^31.
    static func parse(lines: [[UInt8]]) -> Int64? {
        let members = lines.joined(separator: [0x2C]).split(separator: 0x2C).map { FieldSyntax.trimmed($0) }
        return members.first { !$0.isEmpty }.flatMap { DeltaSeconds.parse($0) }
    }

    package static func parse(_ fields: Fields) -> Int64? {
        fields.contains(.age) ? parse(lines: fields.all("age")) : nil
    }
}
