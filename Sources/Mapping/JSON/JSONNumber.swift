/// A JSON number as an exact decimal: a sign, significant digits without zeros at either end, and a power of ten.
///
/// No floating point is involved. `1.0`, `1e0` and `10e-1` are equal, and `1e99999999999999999999` is exact too.
/// Only exponents of more than 36 digits are compared as they are spelled.
struct JSONNumber: Sendable, Hashable, Comparable {
    let isNegative: Bool
    /// ASCII digits without zeros at either end; empty for the number zero.
    let digits: [UInt8]
    /// The power of ten by which the digits, read as an integer, are multiplied; 0 for zero.
    let exponent: Int128

    /// The most digits of a written exponent; a number with more of them has its whole literal as digits, and equals
    /// only numbers that are spelled the same.
    private static let longestExponent = 36
    /// The exponent of such a number: 10³⁷, or -10³⁷.
    private static let beyond: Int128 = 10_000_000_000_000_000_000_000_000_000_000_000_000

    /// Reads a valid literal.
    init(_ literal: UnsafeBufferPointer<UInt8>) {
        let unsigned = literal.first == UInt8(ascii: "-") ? literal.dropFirst() : literal[...]
        let mantissa = unsigned.prefix { $0 | 0x20 != UInt8(ascii: "e") }
        var digits: [UInt8] = []
        // Leading zeros are insignificant, and so are trailing ones.
        for byte in mantissa where byte != UInt8(ascii: ".") && !(digits.isEmpty && byte == UInt8(ascii: "0")) {
            digits.append(byte)
        }
        let trailing = digits.reversed().prefix { $0 == UInt8(ascii: "0") }.count
        digits.removeLast(trailing)
        guard !digits.isEmpty else {
            (isNegative, self.digits, exponent) = (false, [], 0)
            return
        }
        isNegative = literal.first == UInt8(ascii: "-")
        let fraction = mantissa.firstIndex(of: UInt8(ascii: ".")).map { mantissa.endIndex - $0 - 1 } ?? 0
        let written = unsigned[mantissa.endIndex...].dropFirst()
        let magnitude = written.drop { $0 < UInt8(ascii: "0") }.drop { $0 == UInt8(ascii: "0") }
        let sign: Int128 = written.first == UInt8(ascii: "-") ? -1 : 1
        if magnitude.count <= Self.longestExponent {
            self.digits = digits
            let power = magnitude.reduce(Int128(0)) { $0 * 10 + Int128($1 - UInt8(ascii: "0")) }
            exponent = sign * power + Int128(trailing - fraction)
        } else {
            self.digits = Array(unsigned)
            exponent = sign * Self.beyond
        }
    }

    /// The canonical text: a plain decimal if that is short, else digits, `e` and the power of ten.
    var canonicalText: String {
        guard !digits.isEmpty else { return "0" }
        var text: [UInt8] = isNegative ? [UInt8(ascii: "-")] : []
        let zero = UInt8(ascii: "0")
        if exponent >= 0, Int128(digits.count) + exponent <= 40 {
            text += digits + [UInt8](repeating: zero, count: Int(exponent))
        } else if exponent < 0, exponent >= -40, digits.count <= 40 {
            let whole = digits.count + Int(exponent)
            text += whole > 0 ? digits[..<whole] : [zero]
            text.append(UInt8(ascii: "."))
            text += [UInt8](repeating: zero, count: max(0, -whole)) + digits[max(0, whole)...]
        } else if exponent.magnitude == Self.beyond.magnitude {
            text += digits
        } else {
            text += digits + Array("e\(exponent)".utf8)
        }
        return String(decoding: text, as: UTF8.self)
    }

    static func < (left: JSONNumber, right: JSONNumber) -> Bool {
        // Zero is never negative here.
        guard left.isNegative == right.isNegative else { return left.isNegative }
        return left.isNegative ? right.magnitudeIsSmaller(than: left) : left.magnitudeIsSmaller(than: right)
    }

    private func magnitudeIsSmaller(than other: JSONNumber) -> Bool {
        if digits.isEmpty || other.digits.isEmpty { return digits.isEmpty && !other.digits.isEmpty }
        let (mine, theirs) = (exponent + Int128(digits.count), other.exponent + Int128(other.digits.count))
        return mine != theirs ? mine < theirs : digits.lexicographicallyPrecedes(other.digits)
    }
}

/// Adds decimals exactly.
///
/// Numbers that are hundreds of digits apart would make the sum arbitrarily long, so the much smaller one is left out.
struct DecimalSum {
    private static let longest = 600

    /// The digits, lowest place first; none of them is positive if the sum is negative.
    private var digits: [Int8] = []
    /// The power of ten of the lowest place.
    private var scale = 0

    mutating func add(_ number: JSONNumber) {
        guard !number.digits.isEmpty, let exponent = Int(exactly: number.exponent),
            // Beyond any real quantity; this also keeps the additions below from overflowing.
            exponent.magnitude < 1_000_000
        else { return }
        let other = number.digits.reversed().map { Int8($0 - UInt8(ascii: "0")) * (number.isNegative ? -1 : 1) }
        if digits.isEmpty { scale = exponent }
        let (low, high) = (min(scale, exponent), max(scale + digits.count, exponent + other.count))
        guard digits.isEmpty || high - low <= Self.longest else {
            if exponent + other.count > scale + digits.count { (digits, scale) = (other, exponent) }
            return
        }
        var columns = [Int8](repeating: 0, count: high - low)
        for (place, digit) in digits.enumerated() { columns[scale - low + place] = digit }
        for (place, digit) in other.enumerated() { columns[exponent - low + place] += digit }
        // The highest column decides the sign: all that is below it adds up to less than one in it.
        let sign: Int8 = (columns.last { $0 != 0 } ?? 0) < 0 ? -1 : 1
        var carry: Int8 = 0
        digits = columns.map { column in
            let sum = sign * column + carry
            carry = sum < 0 ? -1 : sum / 10
            return sign * (sum - 10 * carry)
        }
        if carry > 0 { digits.append(sign * carry) }
        while digits.last == 0 { digits.removeLast() }
        scale = low
    }

    var literal: [UInt8] {
        guard let highest = digits.last else { return [UInt8(ascii: "0")] }
        let spelled = digits.reversed().map { $0.magnitude + UInt8(ascii: "0") }
        let text = (highest < 0 ? [UInt8(ascii: "-")] : []) + spelled + Array("e\(scale)".utf8)
        return Array(text.withUnsafeBufferPointer { JSONNumber($0) }.canonicalText.utf8)
    }
}
