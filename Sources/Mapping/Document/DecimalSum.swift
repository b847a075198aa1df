/// Adds decimals exactly.
///
/// Numbers that are hundreds of digits apart would make the sum arbitrarily long, so the much smaller one is left out.
struct DecimalSum {
    private static let longest = 600

    /// The digits of the magnitude, each 0 to 9, lowest place first.
    private var digits: [UInt8] = []
    private var isNegative = false
    /// The power of ten of the lowest place.
    private var scale = 0

    /// Adds one number.
    mutating func add(_ number: JSONNumber) {
        guard !number.digits.isEmpty, case .small(let exponent) = number.exponent,
            // Beyond any real quantity; this also keeps the additions below from overflowing.
            exponent.magnitude < 1_000_000
        else { return }
        let other = number.digits.reversed().map { $0 - UInt8(ascii: "0") }
        guard !digits.isEmpty else {
            (digits, isNegative, scale) = (other, number.isNegative, exponent)
            return
        }
        let low = min(scale, exponent)
        let high = max(scale + digits.count, exponent + other.count)
        guard high - low <= Self.longest else {
            if exponent + other.count > scale + digits.count {
                (digits, isNegative, scale) = (other, number.isNegative, exponent)
            }
            return
        }
        let mine = [UInt8](repeating: 0, count: scale - low) + digits
        let theirs = [UInt8](repeating: 0, count: exponent - low) + other
        scale = low
        if isNegative == number.isNegative {
            digits = Self.sum(mine, theirs)
        } else if Self.isLess(mine, theirs) {
            digits = Self.difference(theirs, mine)
            isNegative = number.isNegative
        } else {
            digits = Self.difference(mine, theirs)
        }
        while digits.last == 0 { digits.removeLast() }
        if digits.isEmpty { (isNegative, scale) = (false, 0) }
    }

    /// The sum as a JSON number.
    var literal: [UInt8] {
        guard !digits.isEmpty else { return [UInt8(ascii: "0")] }
        let spelled = digits.reversed().map { $0 + UInt8(ascii: "0") }
        let text = (isNegative ? [UInt8(ascii: "-")] : []) + spelled + Array("e\(scale)".utf8)
        return Array(text.withUnsafeBufferPointer { JSONNumber($0) }.canonicalText.utf8)
    }

    private static func sum(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var carry: UInt8 = 0
        for index in 0..<max(left.count, right.count) {
            let digit = (index < left.count ? left[index] : 0) + (index < right.count ? right[index] : 0) + carry
            result.append(digit % 10)
            carry = digit / 10
        }
        if carry > 0 { result.append(carry) }
        return result
    }

    /// The difference; `left` must not be less than `right`.
    private static func difference(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var borrow: UInt8 = 0
        for index in left.indices {
            let taken = (index < right.count ? right[index] : 0) + borrow
            borrow = left[index] < taken ? 1 : 0
            result.append(left[index] + 10 * borrow - taken)
        }
        return result
    }

    private static func isLess(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        for index in (0..<max(left.count, right.count)).reversed() {
            let (mine, theirs) = (index < left.count ? left[index] : 0, index < right.count ? right[index] : 0)
            if mine != theirs { return mine < theirs }
        }
        return false
    }
}
