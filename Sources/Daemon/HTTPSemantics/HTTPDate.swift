import Basics
import Synchronization

/// Dates in HTTP's formats (RFC 9110 §5.6.7), in seconds since 1970, UTC.
package enum HTTPDate {
    /// Parses one date in any of the three forms; nil for everything else.
    ///
    /// The grammar is applied literally, except that names match in any case, as RFC 9111 §4.2 asks of caches. The zone must be
    /// `GMT`: by the same section any other, including `UTC` and `+0000`, makes a date invalid. The day of the week must be
    /// valid, but need not be that date's. One-digit days, other white space, four-digit years in the form of RFC 850, years
    /// of five digits and numbers are not dates: an `Expires` in such a form has expired (RFC 9111 §5.3).
    /// - Parameter now: The time that decides the century of the two-digit years of RFC 850 dates.
    package static func parse(_ bytes: some Collection<UInt8>, now: Int64) -> Int64? {
        let reader = DateReader(bytes)
        return reader.trying { $0.imfFixdate() } ?? reader.trying { $0.rfc850(now: now) }
            ?? reader.trying { $0.asctime() }
    }

    /// The earliest of the dates in the lines of one field; nil if no line is a date.
    ///
    /// For `Date`: the earlier a response was made, the older it is now.
    package static func earliest(of lines: [[UInt8]], now: Int64) -> Int64? {
        lines.compactMap { parse($0, now: now) }.min()
    }

    /// The latest of the dates in the lines of one field; nil if one of them is not a date.
    ///
    /// For `Last-Modified`: the later a response was changed, the sooner it may change again.
    package static func latest(of lines: [[UInt8]], now: Int64) -> Int64? {
        let dates = lines.map { parse($0, now: now) }
        return dates.contains(nil) ? nil : dates.compactMap { $0 }.max()
    }

    static let weekdays: [StaticString] = [
        "thursday", "friday", "saturday", "sunday", "monday", "tuesday", "wednesday",
    ]
    static let months: [StaticString] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    /// Formats an IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`; always 29 bytes for the years 0 to 9999.
    package static func format(_ seconds: Int64) -> [UInt8] {
        if let known = latest.withLock({ $0.seconds == seconds ? $0.text : nil }) { return known }
        let text = text(of: seconds)
        latest.withLock { $0 = (seconds, text) }
        return text
    }

    /// The date that was formatted last: for some time, most are the same.
    private static let latest = Mutex<(seconds: Int64, text: [UInt8])>((.min, []))

    private static func text(of seconds: Int64) -> [UInt8] {
        let time = CivilTime(Int(min(max(seconds, limits.lowerBound), limits.upperBound)))
        var text = Array("Thu, 01 Jan 1970 00:00:00 GMT".utf8)
        func put(_ name: StaticString, at start: Int) {
            for index in 0..<3 { text[start + index] = name.utf8Start[index] }
            text[start] &= ~0x20
        }
        // The names begin with Thursday, the day of 1970-01-01.
        put(weekdays[(time.dayNumber % 7 + 7) % 7], at: 0)
        text.setDigits(of: time.day, before: 7)
        put(months[time.month - 1], at: 8)
        text.setDigits(4, of: time.year, before: 16)
        text.setDigits(of: time.hour, before: 19)
        text.setDigits(of: time.minute, before: 22)
        text.setDigits(of: time.second, before: 25)
        return text
    }

    /// 0000-01-01 and the last second of 9999-12-31.
    fileprivate static let limits: ClosedRange<Int64> = -62_167_219_200...253_402_300_799
}

/// Parses the parts of a date from left to right; if one does not match, the result is nil.
private struct DateReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: some Collection<UInt8>) {
        // The longest form is `Wednesday, 06-Nov-94 08:49:37 GMT`, 33 bytes; anything much longer is not a date.
        self.bytes = bytes.count > 40 ? [] : bytes.map { asciiLowercased($0) }
    }

    /// The result of one of the forms, parsed from the first byte.
    func trying(_ form: (inout DateReader) -> Int64?) -> Int64? {
        var reader = self
        return form(&reader)
    }

    /// Parses the preferred form, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    mutating func imfFixdate() -> Int64? {
        guard weekday(short: true), skip(","), skip(" "), let day = digits(2), skip(" "), let month = month(),
            skip(" "), let year = digits(4), skip(" "), let time = timeOfDay(), skip(" gmt"), atEnd
        else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }

    /// Parses the form of RFC 850, such as `Sunday, 06-Nov-94 08:49:37 GMT`.
    mutating func rfc850(now: Int64) -> Int64? {
        guard weekday(short: false), skip(","), skip(" "), let day = digits(2), skip("-"), let month = month(),
            skip("-"), let shortYear = digits(2), skip(" "), let time = timeOfDay(), skip(" gmt"), atEnd
        else { return nil }
        // A year more than 50 years in the future means the most recent such year in the past (RFC 9110 §5.6.7).
        let now = min(max(now, 0), HTTPDate.limits.upperBound)
        let today = CivilTime(Int(now))
        let thisYear = today.year
        var year = thisYear - thisYear % 100 + shortYear
        if year <= thisYear - 50 { year += 100 }
        if year > thisYear + 50 { year -= 100 }
        if year == thisYear + 50, let exact = seconds(year: year, month: month, day: day, time: time) {
            // Fifty years after 29 February there may be no such day, so 28 February is the limit.
            let lastDay = today.month == 2 ? min(today.day, 28) : today.day
            let limit = seconds(year: year, month: today.month, day: lastDay, time: Int(now % 86_400)) ?? 0
            if exact > limit { year -= 100 }
        }
        return seconds(year: year, month: month, day: day, time: time)
    }

    /// Parses the form of C's `asctime`, such as `Sun Nov  6 08:49:37 1994`.
    mutating func asctime() -> Int64? {
        guard weekday(short: true), skip(" "), let month = month(), skip(" "),
            let day = skip(" ") ? digits(1) : digits(2), skip(" "), let time = timeOfDay(), skip(" "),
            let year = digits(4), atEnd
        else { return nil }
        return seconds(year: year, month: month, day: day, time: time)
    }

    private var atEnd: Bool { position == bytes.count }

    private mutating func skip(_ text: StaticString, _ prefix: Int? = nil) -> Bool {
        let count = prefix ?? text.utf8CodeUnitCount
        guard position + count <= bytes.count else { return false }
        for index in 0..<count where bytes[position + index] != text.utf8Start[index] { return false }
        position += count
        return true
    }

    private mutating func digits(_ count: Int) -> Int? {
        guard position + count <= bytes.count else { return nil }
        var value = 0
        for byte in bytes[position..<position + count] {
            guard FieldSyntax.isDigit(byte) else { return nil }
            value = value * 10 + Int(byte - 0x30)
        }
        position += count
        return value
    }

    private mutating func weekday(short: Bool) -> Bool {
        for name in HTTPDate.weekdays where skip(name, short ? 3 : nil) { return true }
        return false
    }

    private mutating func month() -> Int? {
        for (index, name) in HTTPDate.months.enumerated() where skip(name) { return index + 1 }
        return nil
    }

    private mutating func timeOfDay() -> Int? {
        guard let hour = digits(2), skip(":"), let minute = digits(2), skip(":"), let second = digits(2),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private func seconds(year: Int, month: Int, day: Int, time: Int) -> Int64? {
        CivilTime.dayNumber(year: year, month: month, day: day).map { Int64($0 * 86_400 + time) }
    }
}

extension Duration {
    /// The duration in nanoseconds, for comparison with a loop's clock.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        return UInt64(max(0, seconds)) * 1_000_000_000 + UInt64(max(0, attoseconds) / 1_000_000_000)
    }

    /// A hundred years, written `forever`.
    package static let forever: Duration = .seconds(100 * 365 * 86_400)

    /// Whole seconds, the unit of caching rules.
    package var seconds: Int64 { components.seconds }
}
