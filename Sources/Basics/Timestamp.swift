/// A point in time, exact for any number of fraction digits.
package struct Timestamp: Hashable, Comparable, Sendable {
    /// Seconds since 1970 in UTC, rounded down.
    package private(set) var seconds: Int
    /// The digits of the fraction, without trailing zeros.
    package private(set) var fraction: [UInt8]

    package init(seconds: Int, fraction: [UInt8] = []) {
        (self.seconds, self.fraction) = (seconds, fraction)
        while self.fraction.last == UInt8(ascii: "0") { self.fraction.removeLast() }
    }

    /// Reads RFC 3339 §5.6, including lower-case letters and a space for `T`.
    ///
    /// A date without an offset is rejected: it is not a point in time.
    package init?(_ text: [UInt8]) {
        guard text.count > 19, let year = Self.number(text[..<4]), let month = Self.number(text[5..<7]),
            let day = Self.number(text[8..<10]), let hour = Self.number(text[11..<13]),
            let minute = Self.number(text[14..<16]), let second = Self.number(text[17..<19]),
            text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"), "Tt ".utf8.contains(text[10]),
            text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"), hour < 24, minute < 60, second <= 60,
            let days = CivilTime.dayNumber(year: year, month: month, day: day)
        else { return nil }
        var rest = text[19...]
        var fraction: ArraySlice<UInt8> = []
        if rest.first == UInt8(ascii: ".") {
            fraction = rest.dropFirst().prefix(while: Self.isDigit)
            guard !fraction.isEmpty else { return nil }
            rest = rest[fraction.endIndex...]
        }
        guard let offset = Self.offset(Array(rest)) else { return nil }
        let minutes = (days * 24 + hour) * 60 + minute - offset
        self.init(seconds: minutes * 60 + second, fraction: Array(fraction))
    }

    /// The value of decimal digits; nil if any other byte is among them.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        digits.allSatisfy(isDigit) ? digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } : nil
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    /// The minutes east of UTC that `Z` or `±hh:mm` stands for.
    private static func offset(_ text: [UInt8]) -> Int? {
        if text.count == 1 { return text[0] | 0x20 == UInt8(ascii: "z") ? 0 : nil }
        guard text.count == 6, "+-".utf8.contains(text[0]), text[3] == UInt8(ascii: ":"),
            let hours = number(text[1..<3]), let minutes = number(text[4...]), hours < 24, minutes < 60
        else { return nil }
        return (text[0] == UInt8(ascii: "-") ? -1 : 1) * (hours * 60 + minutes)
    }

    /// The time as RFC 3339 in UTC; nil outside the years that it can write, 0000 to 9999.
    package var text: String? {
        guard Self.writable.contains(seconds) else { return nil }
        return Self.text(seconds) + (fraction.isEmpty ? "" : "." + String(decoding: fraction, as: UTF8.self)) + "Z"
    }

    /// A time in milliseconds since 1970 as `2026-11-23T03:47:00.123Z`; one that RFC 3339 cannot write becomes the nearest.
    package static func text(milliseconds: Int64) -> String {
        let possible = Int(min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999))
        let fraction = (possible % 1000 + 1000) % 1000
        return "\(text((possible - fraction) / 1000)).\(String(1000 + fraction).dropFirst())Z"
    }

    private static let writable = -62_167_219_200..<253_402_300_800

    private static func text(_ seconds: Int) -> String {
        let time = CivilTime(seconds)
        var text = Array("0000-00-00T00:00:00".utf8)
        text.setDigits(4, of: time.year, before: 4)
        for (index, number) in [time.month, time.day, time.hour, time.minute, time.second].enumerated() {
            text.setDigits(of: number, before: 7 + 3 * index)
        }
        return String(decoding: text, as: UTF8.self)
    }

    package static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.seconds != right.seconds
            ? left.seconds < right.seconds : left.fraction.lexicographicallyPrecedes(right.fraction)
    }
}
