/// A non-negative number of seconds as a directive or the `Age` field spells it (RFC 9111 §1.2.2).
package enum DeltaSeconds {
    /// What a value too large to represent counts as, by the same section.
    package static let maximum: Int64 = 2_147_483_648

    /// Reads one or more digits; nil for a sign, a fraction, white space, or anything else.
    @inline(__always)
    package static func parse(_ bytes: some Collection<UInt8>) -> Int64? {
        guard !bytes.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            guard FieldSyntax.isDigit(byte) else { return nil }
            // Stops growing above the maximum, so that no number of digits overflows.
            if value <= maximum { value = value &* 10 &+ Int64(byte &- 0x30) }
        }
        return min(value, maximum)
    }
}
