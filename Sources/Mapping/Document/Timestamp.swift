/// A point in time, exact for any number of fraction digits.
struct Timestamp: Hashable, Comparable {
    /// Seconds since 1970 in UTC, rounded down.
    var seconds: Int
    /// The digits of the fraction, without trailing zeros.
    var fraction: [UInt8]

    init(seconds: Int, fraction: [UInt8] = []) {
        (self.seconds, self.fraction) = (seconds, fraction)
        while self.fraction.last == UInt8(ascii: "0") { self.fraction.removeLast() }
    }

    /// Reads RFC 3339 §5.6, including lower-case letters and a space for `T`.
    ///
    /// A date without an offset is rejected: it is not a point in time.
    init?(_ text: [UInt8]) {
        guard text.count > 19, let year = Self.number(text[..<4]), let month = Self.number(text[5..<7]),
            let day = Self.number(text[8..<10]), let hour = Self.number(text[11..<13]),
            let minute = Self.number(text[14..<16]), let second = Self.number(text[17..<19]),
            text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"), "Tt ".utf8.contains(text[10]),
            text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"), hour < 24, minute < 60, second <= 60
        else { return nil }
        let days = CivilCalendar.day(year: year, month: month, day: day)
        // Another date than the one that was read means that its month has no such day.
        guard CivilCalendar.date(ofDay: days) == (year, month, day) else { return nil }
        var rest = text[19...]
        var fraction: ArraySlice<UInt8> = []
        if rest.first == UInt8(ascii: ".") {
            fraction = rest.dropFirst().prefix(while: \.isDigit)
            guard !fraction.isEmpty else { return nil }
            rest = rest[fraction.endIndex...]
        }
        guard let offset = Self.offset(Array(rest)) else { return nil }
        let minutes = ((days - CivilCalendar.epoch) * 24 + hour) * 60 + minute - offset
        self.init(seconds: minutes * 60 + second, fraction: Array(fraction))
    }

    /// The value of decimal digits; nil if any other byte is among them.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        digits.allSatisfy(\.isDigit) ? digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } : nil
    }

    /// The minutes east of UTC that `Z` or `±hh:mm` stands for.
    private static func offset(_ text: [UInt8]) -> Int? {
        if text.count == 1 { return text[0] | 0x20 == UInt8(ascii: "z") ? 0 : nil }
        guard text.count == 6, "+-".utf8.contains(text[0]), text[3] == UInt8(ascii: ":"),
            let hours = number(text[1..<3]), let minutes = number(text[4...]), hours < 24, minutes < 60
        else { return nil }
        return (text[0] == UInt8(ascii: "-") ? -1 : 1) * (hours * 60 + minutes)
    }

    /// The time as RFC 3339 in UTC; nil outside the years that it can write, 0000 to 9999.
    var text: String? {
        guard (-62_167_219_200..<253_402_300_800).contains(seconds) else { return nil }
        let (day, second) = (seconds + CivilCalendar.epoch * 86_400).quotientAndRemainder(dividingBy: 86_400)
        let (year, month, dayOfMonth) = CivilCalendar.date(ofDay: day)
        func padded(_ number: Int, _ width: Int = 2) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let date = "\(padded(year, 4))-\(padded(month))-\(padded(dayOfMonth))"
        let time = "\(padded(second / 3_600)):\(padded(second / 60 % 60)):\(padded(second % 60))"
        return "\(date)T\(time)" + (fraction.isEmpty ? "" : "." + String(decoding: fraction, as: UTF8.self)) + "Z"
    }

    static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.seconds != right.seconds
            ? left.seconds < right.seconds : left.fraction.lexicographicallyPrecedes(right.fraction)
    }
}

/// The proleptic Gregorian calendar, in days since the first of March of the year -400.
///
/// No date that is read or written is before that day. Years begin with March, so that the leap day is their last.
private enum CivilCalendar {
    static let epoch = 865_565

    static func day(year: Int, month: Int, day: Int) -> Int {
        let year = year + (month > 2 ? 400 : 399)
        return year * 365 + year / 4 - year / 100 + year / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    }

    static func date(ofDay day: Int) -> (year: Int, month: Int, day: Int) {
        let (era, dayOfEra) = day.quotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = (era - 1) * 400 + yearOfEra + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}

/// The value of a model's `modified` member: an RFC 3339 date or a number, compared exactly.
package struct ModificationTime: Sendable, Hashable {
    /// The JSON as the response spells it.
    package let literal: [UInt8]
    fileprivate let value: Value

    fileprivate enum Value: Sendable, Hashable {
        case number(JSONNumber)
        case date(Timestamp)
    }

    /// Reads a JSON text; nil for values without an order of their own.
    package init?(json: [UInt8]) {
        guard let slice = JSONSlice(json) else { return nil }
        self.init(slice)
    }

    init?(_ slice: JSONSlice) {
        switch slice.kind {
        case .number: value = .number(slice.withBytes(JSONNumber.init))
        case .string:
            guard let date = slice.withBytes(JSONString.text).flatMap({ Timestamp(Array($0.utf8)) }) else { return nil }
            value = .date(date)
        default: return nil
        }
        literal = Array(slice.bytes)
    }

    package static func == (left: ModificationTime, right: ModificationTime) -> Bool { left.value == right.value }

    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

extension ModificationTime? {
    /// Whether this stamp is lower than another; false if one is missing or they cannot be compared.
    func isBelow(_ other: ModificationTime?) -> Bool {
        switch (self?.value, other?.value) {
        case (.number(let mine), .number(let theirs)): mine < theirs
        case (.date(let mine), .date(let theirs)): mine < theirs
        default: false
        }
    }
}
