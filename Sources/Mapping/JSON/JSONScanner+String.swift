extension JSONScanner {
    /// Scans the string whose opening quote is here.
    @inline(__always)
    func scanString(_ open: Int) -> Int {
        let stop = firstSpecial(open + 1)
        guard stop < end else { return Failure.malformed }
        return base[stop] == UInt8(ascii: "\"") ? stop + 1 : scanEscapedString(stop)
    }

    /// Scans the string whose opening quote is here and says whether it contains an escape.
    @inline(__always)
    func scanName(_ open: Int) -> (end: Int, isEscaped: Bool) {
        let stop = firstSpecial(open + 1)
        guard stop < end else { return (Failure.malformed, false) }
        return base[stop] == UInt8(ascii: "\"") ? (stop + 1, false) : (scanEscapedString(stop), true)
    }

    /// The first quote, backslash or control character from here on; `end` if there is none.
    ///
    /// Eight bytes at a time: each of the three masks may err only above its own lowest hit, so the lowest bit of
    /// their union is right.
    @inline(__always)
    func firstSpecial(_ start: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        var position = start
        while position + 8 <= end {
            let word = word(position)
            let quotes = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
            let backslashes = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
            let hits =
                (((quotes &- ones) & ~quotes)
                    | ((backslashes &- ones) & ~backslashes)
                    | ((word &- (ones &* 0x20)) & ~word)) & highs
            if hits != 0 { return position + hits.trailingZeroBitCount >> 3 }
            position += 8
        }
        while position < end {
            let byte = base[position]
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte < 0x20 { break }
            position += 1
        }
        return position
    }

    /// Goes on behind the first special character of a string, which is not its closing quote.
    @inline(never)
    private func scanEscapedString(_ start: Int) -> Int {
        var position = start
        while position < end {
            switch base[position] {
            case UInt8(ascii: "\""):
                return position + 1
            case UInt8(ascii: "\\"):
                position = scanEscape(position)
                guard position >= 0 else { return position }
                position = firstSpecial(position)
            default:
                return Failure.malformed
            }
        }
        return Failure.malformed
    }

    private func scanEscape(_ backslash: Int) -> Int {
        switch byte(backslash + 1) {
        case UInt8(ascii: "u"):
            guard backslash + 6 <= end else { return Failure.malformed }
            var value = 0
            for offset in 2..<6 {
                guard let digit = hexadecimalDigit(base[backslash + offset]) else { return Failure.malformed }
                value = value << 4 | digit
            }
            // Behind an escaped quote as well: recomposition looks for these seven bytes without parsing.
            if value == 1, !allowsReferences, base[backslash - 1] == UInt8(ascii: "\"") { return Failure.reserved }
            return backslash + 6
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return backslash + 2
        default:
            return Failure.malformed
        }
    }
}

/// The value of a hexadecimal digit in either case.
func hexadecimalDigit(_ byte: UInt8) -> Int? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
    default: nil
    }
}
