/// A date of the proleptic Gregorian calendar and a time of day, in UTC.
///
/// The years -399 to 9999 are exact, as no other is read or written.
package struct CivilTime {
    /// Days since 1970.
    package let dayNumber: Int
    package let year, month, day: Int
    package let hour, minute, second: Int

    /// - Parameter seconds: since 1970.
    package init(_ seconds: Int) {
        dayNumber = (seconds - (seconds < 0 ? 86_399 : 0)) / 86_400
        let secondOfDay = seconds - dayNumber * 86_400
        (hour, minute, second) = (secondOfDay / 3_600, secondOfDay / 60 % 60, secondOfDay % 60)
        (year, month, day) = Self.date(dayNumber)
    }

    /// The days from 1970 to a date; nil if its month has no such day.
    package static func dayNumber(year: Int, month: Int, day: Int) -> Int? {
        let years = year + (month > 2 ? 400 : 399)
        let days = years * 365 + years / 4 - years / 100 + years / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        // Another date than the one that was given means that there is none.
        return date(days - epoch) == (year, month, day) ? days - epoch : nil
    }

    /// 1970, in days since the first of March of the year -400: years begin with March, so that the leap day is their last.
    private static let epoch = 865_565

    private static func date(_ dayNumber: Int) -> (year: Int, month: Int, day: Int) {
        let (era, dayOfEra) = (dayNumber + epoch).quotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = (era - 1) * 400 + yearOfEra + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}

extension [UInt8] {
    /// Writes the last `count` decimal digits of a number in front of a position.
    package mutating func setDigits(_ count: Int = 2, of number: Int, before end: Int) {
        var rest = number
        for index in (end - count..<end).reversed() {
            self[index] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        }
    }
}
