/// What a model's `modified` member says: an RFC 3339 date or a number, compared exactly.
enum ModificationTime: Equatable {
    case number(JSONNumber)
    /// Seconds since 1970 in UTC and the fraction's digits without trailing zeros.
    case date(seconds: Int, fraction: [UInt8])

    /// Reads a JSON value; nil for everything that has no order of its own.
    init?(_ value: JSONSlice) {
        switch value.kind {
        case .number:
            self = .number(value.withBytes(JSONNumber.init))
        case .string:
            guard let text = value.withBytes(JSONString.text), let date = Self(date: Array(text.utf8)) else {
                return nil
            }
            self = date
        default:
            return nil
        }
    }

    /// Whether this is later than the other; nil if the two cannot be compared.
    func isLater(than other: ModificationTime) -> Bool? {
        switch (self, other) {
        case (.number(let mine), .number(let theirs)):
            return mine > theirs
        case (.date(let mine, let myFraction), .date(let theirs, let theirFraction)):
            return mine != theirs ? mine > theirs : theirFraction.lexicographicallyPrecedes(myFraction)
        default:
            return nil
        }
    }

    /// RFC 3339 §5.6, lower-case letters and a blank for `T` included.
    ///
    /// A date without an offset is no point in time.
    private init?(date text: [UInt8]) {
        var reader = DigitReader(text: text)
        guard let year = reader.digits(4), reader.take("-"), let month = reader.digits(2), reader.take("-"),
            let day = reader.digits(2), reader.take("Tt "), let hour = reader.digits(2), reader.take(":"),
            let minute = reader.digits(2), reader.take(":"), let second = reader.digits(2),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        var fraction: [UInt8] = []
        if reader.take(".") {
            fraction = reader.run()
            guard !fraction.isEmpty else { return nil }
            while fraction.last == UInt8(ascii: "0") { fraction.removeLast() }
        }
        guard let offset = reader.offset(), reader.isAtEnd else { return nil }
        let days = Self.days(year: year, month: month, day: day)
        self = .date(seconds: ((days * 24 + hour) * 60 + minute - offset) * 60 + second, fraction: fraction)
    }

    /// Days since 1970-01-01 in the proleptic Gregorian calendar: years are counted from March, so that the leap day is
    /// the last of its year.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}

/// Reads fixed-width decimal fields.
private struct DigitReader {
    let text: [UInt8]
    var position = 0

    var isAtEnd: Bool { position == text.count }

    mutating func digits(_ count: Int) -> Int? {
        guard position + count <= text.count else { return nil }
        var value = 0
        for byte in text[position..<position + count] {
            guard byte &- UInt8(ascii: "0") < 10 else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
        }
        position += count
        return value
    }

    mutating func run() -> [UInt8] {
        let run = Array(text[position...].prefix { $0 &- UInt8(ascii: "0") < 10 })
        position += run.count
        return run
    }

    /// Takes one of these characters if it is next.
    mutating func take(_ characters: StaticString) -> Bool {
        guard position < text.count else { return false }
        let byte = text[position]
        let isNext = characters.withUTF8Buffer { $0.contains(byte) }
        if isNext { position += 1 }
        return isNext
    }

    /// `Z` or `±hh:mm`, in minutes east.
    mutating func offset() -> Int? {
        if take("Zz") { return 0 }
        let isWest = position < text.count && text[position] == UInt8(ascii: "-")
        guard take("+-"), let hours = digits(2), take(":"), let minutes = digits(2), hours < 24, minutes < 60 else {
            return nil
        }
        return (isWest ? -1 : 1) * (hours * 60 + minutes)
    }
}
