import Glibc

extension HTTPDate {
    /// The IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`; always 29 bytes for the years 0 to 9999.
    package static func format(_ seconds: Int64) -> [UInt8] {
        // Beyond these the form has no room: 0000-01-01 and 9999-12-31.
        let parts = Self.calendar(min(max(seconds, -62_167_219_200), 253_402_300_799))
        var text: [UInt8] = []
        text.reserveCapacity(29)
        // The names begin with Thursday, the day of 1970-01-01; C's days with Sunday.
        appendName(weekdays[(Int(parts.tm_wday) + 3) % 7], to: &text)
        text += [0x2C, 0x20]
        appendDigits(Int(parts.tm_mday), 2, to: &text)
        text.append(0x20)
        appendName(months[Int(parts.tm_mon)], to: &text)
        text.append(0x20)
        appendDigits(Int(parts.tm_year) + 1900, 4, to: &text)
        text.append(0x20)
        appendDigits(Int(parts.tm_hour), 2, to: &text)
        text.append(0x3A)
        appendDigits(Int(parts.tm_min), 2, to: &text)
        text.append(0x3A)
        appendDigits(Int(parts.tm_sec), 2, to: &text)
        text += [0x20, 0x47, 0x4D, 0x54]
        return text
    }

    private static func appendName(_ name: StaticString, to text: inout [UInt8]) {
        text.append(name.utf8Start[0] & ~0x20)
        text.append(name.utf8Start[1])
        text.append(name.utf8Start[2])
    }

    private static func appendDigits(_ value: Int, _ count: Int, to text: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<count { divisor *= 10 }
        while divisor > 0 {
            text.append(UInt8(0x30 + value / divisor % 10))
            divisor /= 10
        }
    }

    /// The date and time of day of a point in time.
    static func calendar(_ seconds: Int64) -> tm {
        var (time, parts) = (time_t(seconds), tm())
        gmtime_r(&time, &parts)
        return parts
    }

    /// The seconds of a day's beginning; nil where its month has no such day.
    static func seconds(year: Int, month: Int, day: Int) -> Int64? {
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
        let seconds = timegm(&parts)
        // What does not exist counts as a day of another month.
        return parts.tm_mday == Int32(day) && parts.tm_mon == Int32(month - 1) ? Int64(seconds) : nil
    }
}
