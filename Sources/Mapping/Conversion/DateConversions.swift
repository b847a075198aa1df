import Basics
import Foundation
import Synchronization

extension ConversionDeclaration {
    /// How the upstream writes a point in time.
    public enum DateForm: Sendable, Equatable {
        /// Seconds since 1970, as a number; fractions are allowed.
        case unixSeconds
        case unixMilliseconds
        /// A pattern of Unicode's date fields (`MMMM d, yyyy`) with English names, in a time zone of the tz database.
        case pattern(String, zone: String)

        /// The forms that a config names with one word.
        public static let words: KeyValuePairs<String, DateForm> = ["unix": .unixSeconds, "unix_ms": .unixMilliseconds]

        func conversion() throws(MappingError) -> Conversion {
            switch self {
            case .unixSeconds: .unixTime(digitsBelowSecond: 0)
            case .unixMilliseconds: .unixTime(digitsBelowSecond: 3)
            case .pattern(let pattern, let zone): try DatePattern(pattern, zone: zone).conversion
            }
        }
    }
}

extension Conversion {
    /// Accepts a date in RFC 3339; it capitalises `T` and `Z` and keeps the rest, fraction and offset included.
    static let rfc3339 = Conversion("a date as in RFC 3339, such as 2012-11-13T13:31:36Z, is expected") { value in
        guard value.timestamp != nil, var text = value.string.map({ Array($0.utf8) }) else { return nil }
        text[10] = UInt8(ascii: "T")
        if text.last == UInt8(ascii: "z") { text[text.count - 1] = UInt8(ascii: "Z") }
        return JSONString.literal(String(decoding: text, as: UTF8.self))
    }

    /// Converts seconds since 1970, or milliseconds (3 digits below the second), to RFC 3339 in UTC, exactly.
    static func unixTime(digitsBelowSecond: Int) -> Conversion {
        Conversion(
            forward: { (value) throws(Misfit) in
                guard let number = value.number, let text = Timestamp(number, digitsBelowSecond)?.text else {
                    let unit = digitsBelowSecond == 0 ? "seconds" : "milliseconds"
                    throw Misfit("a number of \(unit) since 1970 is expected")
                }
                return JSONString.literal(text)
            },
            reverse: { (value) throws(Misfit) in
                guard let timestamp = value.timestamp else { throw Misfit("a date as in RFC 3339 is expected") }
                // Before 1970 the fraction still counts forward: -1.25 is second -2 plus 0.75.
                var sum = DecimalSum()
                for part in ["\(timestamp.seconds)", "0." + String(decoding: timestamp.fraction, as: UTF8.self) + "0"] {
                    let number = Array("\(part)e\(digitsBelowSecond)".utf8)
                    sum.add(number.withUnsafeBufferPointer { JSONNumber($0) })
                }
                return sum.literal
            }
        )
    }
}

extension Timestamp {
    /// The most digits that are read of a fraction of a second.
    private static let maximumFraction = 12
    /// The picoseconds of a second: 1 and `maximumFraction` zeros.
    private static let perSecond: Int128 = 1_000_000_000_000

    /// The time that is a number of seconds since 1970, or of parts of a second; nil for a number with too many digits.
    fileprivate init?(_ number: JSONNumber, _ digitsBelowSecond: Int) {
        let power = number.exponent + Int128(Self.maximumFraction - digitsBelowSecond)
        // Up to 24 digits are read, 15 of them before the point.
        guard number.digits.count <= 24, power >= 0, power + Int128(number.digits.count) <= 27 else { return nil }
        let digits = number.digits + [UInt8](repeating: UInt8(ascii: "0"), count: Int(power))
        let magnitude = digits.reduce(Int128(0)) { $0 * 10 + Int128($1 - UInt8(ascii: "0")) }
        let picoseconds = number.isNegative ? -magnitude : magnitude
        // Rounded down: -1.25 is second -2 plus 0.75.
        let seconds = (picoseconds - (picoseconds < 0 ? Self.perSecond - 1 : 0)) / Self.perSecond
        // A leading 1 keeps the zeros at the beginning of the fraction.
        let fraction = String(Self.perSecond + picoseconds - seconds * Self.perSecond).utf8.dropFirst()
        self.init(seconds: Int(seconds), fraction: Array(fraction))
    }
}

/// A declared pattern of Unicode's date fields, which is converted to RFC 3339 in UTC; month and day names are English.
final class DatePattern: Sendable {
    private let pattern: String
    /// `DateFormatter` is a mutable class, so one thread uses it at a time.
    private let formatter: Mutex<DateFormatter>
    /// The years 1583 to 9999: earlier the formatter uses another calendar than RFC 3339, later years have five digits.
    private static let writable = -12_212_553_600..<253_402_300_800
    /// The pattern fields that can be both written and read (Unicode TR 35).
    private static let fields = "GyYuQqMLwWdDFgEecabBhHKkmsSAzZOvVXx"

    init(_ pattern: String, zone: String) throws(MappingError) {
        guard let timeZone = TimeZone(identifier: zone) else {
            throw .invalidConversion(
                "there is no time zone \"\(zone)\"; write UTC or a name of the tz database such as America/Los_Angeles"
            )
        }
        if let mistake = Self.mistake(in: pattern) {
            throw .invalidConversion("\"\(pattern)\" is not a date pattern: \(mistake)")
        }
        let formatter = DateFormatter()
        // `en_US_POSIX` is made for this: it never follows the host's settings.
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.calendar = Calendar(identifier: .gregorian)
        formatter.timeZone = timeZone
        formatter.dateFormat = pattern
        formatter.isLenient = false
        let moment = Date(timeIntervalSince1970: 1_443_164_400)
        guard !pattern.isEmpty, formatter.date(from: formatter.string(from: moment)) != nil else {
            throw .invalidConversion(
                "\"\(pattern)\" is not a date pattern; write fields such as yyyy-MM-dd HH:mm:ss or MMMM d, yyyy"
            )
        }
        self.pattern = pattern
        self.formatter = Mutex(formatter)
    }

    /// Why a pattern is wrong, or probably does not mean what its author intended.
    private static func mistake(in pattern: String) -> String? {
        // Every second piece is quoted. Two quotes in a row stand for a literal quote, and have nothing between them.
        let pieces = pattern.split(separator: "'", omittingEmptySubsequences: false)
        if pieces.count.isMultiple(of: 2) { return "a quote in it is not closed" }
        let letters = stride(from: 0, to: pieces.count, by: 2)
            .flatMap { pieces[$0].filter { $0.isASCII && $0.isLetter } }
        func has(_ letter: Character) -> Bool { letters.contains(letter) }
        if let percent = pattern.firstIndex(of: "%"), pattern[percent...].dropFirst().first?.isLetter == true {
            return "\"%\" begins no field; write yyyy for %Y, MM for %m, dd for %d, HH for %H, mm for %M and ss for %S"
        }
        if letters.isEmpty, !pattern.isEmpty { return "it has no field; write fields such as yyyy-MM-dd HH:mm:ss" }
        if has("Y"), !has("w") { return "\"Y\" is the year that a week belongs to; write yyyy for the year" }
        if has("D"), has("M") || has("L") { return "\"D\" is the day of the year; write dd for the day of the month" }
        return letters.first { !fields.contains($0) }.map {
            "\"\($0)\" is not a field; write fields such as yyyy-MM-dd HH:mm:ss or MMMM d, yyyy, and other letters "
                + "between single quotes, as in yyyy-MM-dd'T'HH:mm"
        }
    }

    var conversion: Conversion { Conversion(forward: read, reverse: write) }

    @Sendable private func read(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        let date = value.string.flatMap { text in formatter.withLock { $0.date(from: text)?.timeIntervalSince1970 } }
        guard let date, let timestamp = Self.timestamp(date), Self.writable.contains(timestamp.seconds),
            let text = timestamp.text
        else { throw Misfit("a date in the form \(pattern) is expected") }
        return JSONString.literal(text)
    }

    @Sendable private func write(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        guard let timestamp = value.timestamp else { throw Misfit("a date as in RFC 3339 is expected") }
        guard Self.writable.contains(timestamp.seconds) else { throw Misfit("a date from 1583 to 9999 is expected") }
        let fraction = Double("0." + String(decoding: timestamp.fraction, as: UTF8.self) + "0") ?? 0
        let date = Date(timeIntervalSince1970: Double(timestamp.seconds) + fraction)
        return JSONString.literal(formatter.withLock { $0.string(from: date) })
    }

    /// A timestamp in milliseconds, the finest unit of a pattern.
    private static func timestamp(_ seconds: Double) -> Timestamp? {
        guard seconds.magnitude < 1e12 else { return nil }
        let milliseconds = Array(String(Int((seconds * 1_000).rounded())).utf8)
        return milliseconds.withUnsafeBufferPointer { Timestamp(JSONNumber($0), 3) }
    }
}
