/// A JSON number as an exact decimal: a sign, significant digits without zeros at either end, and a power of ten.
///
/// No floating point is involved. `1.0`, `1e0` and `10e-1` are equal, and `1e99999999999999999999` is exact too.
struct JSONNumber: Sendable, Equatable {
    let isNegative: Bool
    /// ASCII digits without zeros at either end; empty for the number zero.
    let digits: [UInt8]
    /// The power of ten by which the digits, read as an integer, are multiplied; 0 for zero.
    let exponent: Exponent

    /// An integer of any size: an `Int` if it is small, as it nearly always is, else decimal digits.
    enum Exponent: Sendable, Equatable {
        case small(Int)
        /// A sign and decimal digits without leading zeros; only for integers of more than 18 digits.
        case large(isNegative: Bool, digits: [UInt8])
    }

    /// Reads a valid literal.
    init(_ literal: UnsafeBufferPointer<UInt8>) {
        var position = 0
        let minus = literal.first == UInt8(ascii: "-")
        if minus { position = 1 }
        var digits: [UInt8] = []
        var fraction = 0
        var inFraction = false
        while position < literal.count, literal[position] | 0x20 != UInt8(ascii: "e") {
            let byte = literal[position]
            if byte == UInt8(ascii: ".") {
                inFraction = true
            } else {
                if inFraction { fraction += 1 }
                // Leading zeros are insignificant.
                if !(digits.isEmpty && byte == UInt8(ascii: "0")) { digits.append(byte) }
            }
            position += 1
        }
        var trailing = 0
        while digits.last == UInt8(ascii: "0") {
            digits.removeLast()
            trailing += 1
        }
        guard !digits.isEmpty else {
            (isNegative, self.digits, exponent) = (false, [], .small(0))
            return
        }
        isNegative = minus
        self.digits = digits
        let written = UnsafeBufferPointer(rebasing: literal[min(position + 1, literal.count)...])
        exponent = Exponent(written, shiftedBy: trailing - fraction)
    }

    /// The canonical text: a plain decimal if that is short, else digits, `e` and the power of ten.
    var canonicalText: String {
        var text: [UInt8] = isNegative ? [UInt8(ascii: "-")] : []
        let zero = UInt8(ascii: "0")
        guard !digits.isEmpty else { return "0" }
        if case .small(let power) = exponent, power >= 0, digits.count + power <= 40 {
            text += digits + [UInt8](repeating: zero, count: power)
        } else if case .small(let power) = exponent, power < 0, power >= -40, digits.count <= 40 {
            let whole = digits.count + power
            text += whole > 0 ? digits[..<whole] : [zero]
            text.append(UInt8(ascii: "."))
            text += [UInt8](repeating: zero, count: max(0, -whole)) + digits[max(0, whole)...]
        } else {
            text += digits
            text.append(UInt8(ascii: "e"))
            switch exponent {
            case .small(let power):
                text += Array(String(power).utf8)
            case .large(let isNegative, let magnitude):
                text += (isNegative ? [UInt8(ascii: "-")] : []) + magnitude
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}

extension JSONNumber: Comparable {
    static func < (left: JSONNumber, right: JSONNumber) -> Bool {
        guard left != right else { return false }
        // Zero is never negative here.
        guard left.isNegative == right.isNegative else { return left.isNegative }
        if left.isNegative { return right.magnitudeIsSmaller(than: left) }
        return left.magnitudeIsSmaller(than: right)
    }

    private func magnitudeIsSmaller(than other: JSONNumber) -> Bool {
        if digits.isEmpty || other.digits.isEmpty { return digits.isEmpty && !other.digits.isEmpty }
        let (mine, theirs) = (exponent.adding(digits.count), other.exponent.adding(other.digits.count))
        if mine != theirs { return mine.isSmaller(than: theirs) }
        return digits.lexicographicallyPrecedes(other.digits)
    }
}

extension JSONNumber.Exponent {
    /// Reads the exponent written after the `e` (empty if there is none) and adds `shift`.
    init(_ written: UnsafeBufferPointer<UInt8>, shiftedBy shift: Int) {
        let isNegative = written.first == UInt8(ascii: "-")
        let magnitude = Array(
            written.drop { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "+") }.drop { $0 == UInt8(ascii: "0") }
        )
        self = Self(isNegative: isNegative, magnitude: magnitude).adding(shift)
    }

    private init(isNegative: Bool, magnitude: [UInt8]) {
        if magnitude.count <= 18 {
            let value = magnitude.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
            self = .small(isNegative ? -value : value)
        } else {
            self = .large(isNegative: isNegative, digits: magnitude)
        }
    }

    /// The sum; `shift` is a count of digits, so it is far from the limits of `Int`.
    func adding(_ shift: Int) -> Self {
        switch self {
        case .small(let value):
            let sum = value + shift
            return sum.magnitude < 1_000_000_000_000_000_000
                ? .small(sum) : .large(isNegative: sum < 0, digits: Array(String(sum.magnitude).utf8))
        case .large(let isNegative, var digits):
            // The magnitude has at least 19 digits, so adding `shift` never changes the sign.
            var carry = isNegative ? -shift : shift
            var index = digits.count - 1
            while carry != 0, index >= 0 {
                let sum = Int(digits[index] - UInt8(ascii: "0")) + carry
                let digit = ((sum % 10) + 10) % 10
                digits[index] = UInt8(ascii: "0") + UInt8(digit)
                carry = (sum - digit) / 10
                index -= 1
            }
            if carry > 0 { digits.insert(contentsOf: Array(String(carry).utf8), at: 0) }
            return Self(isNegative: isNegative, magnitude: Array(digits.drop { $0 == UInt8(ascii: "0") }))
        }
    }

    func isSmaller(than other: Self) -> Bool {
        switch (self, other) {
        case (.small(let mine), .small(let theirs)):
            return mine < theirs
        case (.large(let isNegative, _), .small):
            return isNegative
        case (.small, .large(let isNegative, _)):
            return !isNegative
        case (.large(let mineNegative, let mine), .large(let theirsNegative, let theirs)):
            guard mineNegative == theirsNegative else { return mineNegative }
            let (low, high) = mineNegative ? (theirs, mine) : (mine, theirs)
            return low.count != high.count ? low.count < high.count : low.lexicographicallyPrecedes(high)
        }
    }
}

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
