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

        func conversion() throws(MappingError) -> any Conversion {
            switch self {
            case .unixSeconds: UnixTimeConversion(digitsBelowSecond: 0)
            case .unixMilliseconds: UnixTimeConversion(digitsBelowSecond: 3)
            case .pattern(let pattern, let zone): try DatePatternConversion(pattern, zone: zone)
            }
        }
    }
}

/// Accepts a date in RFC 3339; it capitalises `T` and `Z` and keeps the rest, fraction and offset included.
struct RFC3339Conversion: Conversion {
    func forward(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        guard let text = value.string, Timestamp(Array(text.utf8)) != nil else {
            throw Misfit("a date as in RFC 3339, such as 2012-11-13T13:31:36Z, is expected")
        }
        var bytes = Array(text.utf8)
        bytes[10] = UInt8(ascii: "T")
        if bytes.last == UInt8(ascii: "z") { bytes[bytes.count - 1] = UInt8(ascii: "Z") }
        return JSONString.literal(String(decoding: bytes, as: UTF8.self))
    }

    func reverse(_ value: JSONSlice) throws(Misfit) -> [UInt8] { try forward(value) }
}

/// Converts seconds or milliseconds since 1970 to RFC 3339 in UTC, exactly.
struct UnixTimeConversion: Conversion {
    /// How many of the number's last integer digits are below the second: 0 or 3.
    let digitsBelowSecond: Int

    func forward(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        guard let number = value.number, let timestamp = timestamp(number), let text = timestamp.text else {
            let unit = digitsBelowSecond == 0 ? "seconds" : "milliseconds"
            throw Misfit("a number of \(unit) since 1970 is expected")
        }
        return JSONString.literal(text)
    }

    func reverse(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        guard let text = value.string, let timestamp = Timestamp(Array(text.utf8)) else {
            throw Misfit("a date as in RFC 3339 is expected")
        }
        return number(timestamp)
    }

    /// The number for a point in time, built digit by digit because no integer type holds every fraction of every year.
    private func number(_ timestamp: Timestamp) -> [UInt8] {
        var (whole, fraction) = (timestamp.seconds, timestamp.fraction)
        let isNegative = whole < 0
        if isNegative {
            whole = -whole
            // Before 1970 the fraction still counts forward: -1.25 is second -2 plus 0.75.
            if !fraction.isEmpty {
                whole -= 1
                fraction = Self.complement(of: fraction)
            }
        }
        fraction += [UInt8](repeating: UInt8(ascii: "0"), count: max(0, digitsBelowSecond - fraction.count))
        let digits = (Array(String(whole).utf8) + fraction.prefix(digitsBelowSecond)).drop { $0 == UInt8(ascii: "0") }
        let rest = fraction.dropFirst(digitsBelowSecond)
        return (isNegative ? [UInt8(ascii: "-")] : []) + (digits.isEmpty ? [UInt8(ascii: "0")] : digits)
            + (rest.isEmpty ? [] : [UInt8(ascii: ".")] + rest)
    }

    /// 1 minus a fraction whose last digit is not 0.
    private static func complement(of fraction: [UInt8]) -> [UInt8] {
        fraction.enumerated().map { index, digit in
            UInt8(ascii: "0") + (index == fraction.count - 1 ? 10 : 9) - (digit - UInt8(ascii: "0"))
        }
    }

    /// The most digits that are read of a fraction of a second.
    private static let maximumFraction = 12

    private func timestamp(_ number: JSONNumber) -> Timestamp? {
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
        return Timestamp(seconds: Int(seconds), fraction: Array(fraction))
    }

    /// The picoseconds of a second: 1 and `maximumFraction` zeros.
    private static let perSecond: Int128 = 1_000_000_000_000
}

/// Converts text in a declared pattern of Unicode's date fields to RFC 3339 in UTC; month and day names are English.
final class DatePatternConversion: Conversion {
    private let pattern: String
    /// `DateFormatter` is a mutable class, so one thread uses it at a time.
    private let formatter: Mutex<DateFormatter>
    /// The seconds of the years 1583 to 9999.
    ///
    /// The formatter uses another calendar than RFC 3339 for earlier dates; later years have five digits.
    private static let writable = -12_212_553_600..<253_402_300_800
    /// The pattern fields that can be both written and read (Unicode TR 35).
    private static let fields = "GyYuQqMLwWdDFgEecabBhHKkmsSAzZOvVXx"

    init(_ pattern: String, zone: String) throws(MappingError) {
        guard let timeZone = TimeZone(identifier: zone) else {
            throw .invalidConversion(
                "there is no time zone \"\(zone)\"; write UTC or a name of the tz database such as America/Los_Angeles"
            )
        }
        let letters = try Self.letters(of: pattern)
        if let reason = Self.misunderstanding(of: pattern, letters) {
            throw .invalidConversion("\"\(pattern)\" is not a date pattern: \(reason)")
        }
        if let letter = letters.first(where: { !Self.fields.contains($0) }) {
            throw .invalidConversion(
                "\"\(pattern)\" is not a date pattern: \"\(letter)\" is not a field; write fields such as yyyy-MM-dd HH:mm:ss or "
                    + "MMMM d, yyyy, and other letters between single quotes, as in yyyy-MM-dd'T'HH:mm"
            )
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

    /// Why a pattern probably does not mean what its author intended; `letters` are the unquoted ones.
    private static func misunderstanding(of pattern: String, _ letters: [Character]) -> String? {
        func has(_ letter: Character) -> Bool { letters.contains(letter) }
        if let percent = pattern.firstIndex(of: "%"), pattern[percent...].dropFirst().first?.isLetter == true {
            return "\"%\" begins no field; write yyyy for %Y, MM for %m, dd for %d, HH for %H, mm for %M and ss for %S"
        }
        if letters.isEmpty, !pattern.isEmpty { return "it has no field; write fields such as yyyy-MM-dd HH:mm:ss" }
        if has("Y"), !has("w") { return "\"Y\" is the year that a week belongs to; write yyyy for the year" }
        if has("D"), has("M") || has("L") { return "\"D\" is the day of the year; write dd for the day of the month" }
        return nil
    }

    /// The letters of a pattern that are not quoted.
    private static func letters(of pattern: String) throws(MappingError) -> [Character] {
        var letters: [Character] = []
        var isQuoted = false
        for character in pattern {
            // Two quotes in a row stand for one literal quote. Toggling twice changes nothing.
            if character == "'" { isQuoted.toggle() }
            if !isQuoted, character.isASCII, character.isLetter { letters.append(character) }
        }
        guard !isQuoted else {
            throw .invalidConversion("\"\(pattern)\" is not a date pattern: a quote in it is not closed")
        }
        return letters
    }

    func forward(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        let date = value.string.flatMap { text in formatter.withLock { $0.date(from: text)?.timeIntervalSince1970 } }
        guard let date, let timestamp = Self.timestamp(date), Self.writable.contains(timestamp.seconds),
            let text = timestamp.text
        else { throw Misfit("a date in the form \(pattern) is expected") }
        return JSONString.literal(text)
    }

    func reverse(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        guard let text = value.string, let timestamp = Timestamp(Array(text.utf8)) else {
            throw Misfit("a date as in RFC 3339 is expected")
        }
        guard Self.writable.contains(timestamp.seconds) else {
            throw Misfit("a date from 1583 to 9999 is expected")
        }
        let fraction = Double("0." + String(decoding: timestamp.fraction, as: UTF8.self) + "0") ?? 0
        let date = Date(timeIntervalSince1970: Double(timestamp.seconds) + fraction)
        return JSONString.literal(formatter.withLock { $0.string(from: date) })
    }

    /// A timestamp in milliseconds, the finest unit of a pattern.
    private static func timestamp(_ seconds: Double) -> Timestamp? {
        guard seconds.magnitude < 1e12 else { return nil }
        let milliseconds = Int((seconds * 1_000).rounded())
        let whole = milliseconds >= 0 ? milliseconds / 1_000 : -((999 - milliseconds) / 1_000)
        let rest = String(milliseconds - whole * 1_000)
        return Timestamp(seconds: whole, fraction: Array((String(repeating: "0", count: 3 - rest.count) + rest).utf8))
    }
}
