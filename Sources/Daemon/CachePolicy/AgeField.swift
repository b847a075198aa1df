package import HTTPSemantics

/// The `Age` of a response (RFC 9111 §5.1).
package enum AgeField {
    /// The age in seconds; nil when the field is absent or cannot be read, in which case it counts as absent.
    ///
    /// It holds one number, but lists of them occur: then the first member counts, empty ones aside, whether they stand in
    /// one line or in several. A sign, a fraction, a parameter, quotes or text make that member invalid, and an invalid one
    /// is ignored, not replaced by a later one; both are the section's own words. A huge number is 2^31.
    static func parse(lines: [[UInt8]]) -> Int64? {
        for line in lines {
            for part in line.split(separator: 0x2C) {
                let member = FieldSyntax.trimmed(part)
                if !member.isEmpty { return DeltaSeconds.parse(member) }
            }
        }
        return nil
    }

    package static func parse(_ fields: Fields) -> Int64? { parse(lines: fields.all("age")) }
}
