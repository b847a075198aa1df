import Glibc

/// The Date field of answers that have none, made once per second.
struct DateLine {
    private var second = -1
    /// The whole line with its end.
    private(set) var bytes: [UInt8] = []

    /// The line for this time, in seconds since 1970.
    mutating func line(at seconds: Int) -> [UInt8] {
        if seconds != second {
            second = seconds
            bytes = Array("Date: \(Self.text(seconds))\r\n".utf8)
        }
        return bytes
    }

    /// The time in the preferred form of RFC 9110 §5.6.7.
    static func text(_ seconds: Int) -> String {
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = "\(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900)"
        return
            "\(days[Int(parts.tm_wday)]), \(date) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}
