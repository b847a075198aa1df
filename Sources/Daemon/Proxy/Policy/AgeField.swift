/// The `Age` of a response (RFC 9111 §5.1).
enum AgeField {
    /// The age in seconds; nil when the field is absent or cannot be read, in which case it counts as absent.
    ///
    /// The first member of a list counts, whether the list stands in one line or in several; a sign, a fraction, a
    /// parameter or text makes it unreadable, and a huge number is 2^31.
    static func parse(lines: [[UInt8]]) -> Int64? {
        guard let first = lines.first else { return nil }
        let member = first[...].prefix { $0 != 0x2C }
        return DeltaSeconds.parse(FieldSyntax.trimmed(member))
    }

    static func parse(_ fields: Fields) -> Int64? { parse(lines: fields.all("age")) }
}
