import Mapping

extension HTTPDate {
    /// The IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`; always 29 bytes for the years 0 to 9999.
    static func format(_ seconds: Int64) -> [UInt8] {
        // Beyond these the form has no room: 0000-01-01 and 9999-12-31.
        let clamped = min(max(seconds, -62_167_219_200), 253_402_300_799)
        let days = (clamped >= 0 ? clamped : clamped - 86_399) / 86_400
        let time = Int(clamped - days * 86_400)
        let (year, month, day) = CivilCalendar.date(ofDay: Int(days))
        var text: [UInt8] = []
        text.reserveCapacity(29)
        appendName(weekdays[Int((days % 7 + 7) % 7)], to: &text)
        text += [0x2C, 0x20]
        appendDigits(day, 2, to: &text)
        text.append(0x20)
        appendName(months[month - 1], to: &text)
        text.append(0x20)
        appendDigits(year, 4, to: &text)
        text.append(0x20)
        appendDigits(time / 3600, 2, to: &text)
        text.append(0x3A)
        appendDigits(time / 60 % 60, 2, to: &text)
        text.append(0x3A)
        appendDigits(time % 60, 2, to: &text)
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
}
