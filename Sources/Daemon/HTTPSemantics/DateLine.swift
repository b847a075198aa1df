/// The Date field of answers that have none, made once per second.
package struct DateLine {
    private var second = -1
    /// The whole line with its end.
    private(set) var bytes: [UInt8] = []

    package init() {}

    /// The line for this time, in seconds since 1970.
    package mutating func line(at seconds: Int) -> [UInt8] {
        if seconds != second {
            second = seconds
            bytes = Array("Date: ".utf8) + HTTPDate.format(Int64(seconds)) + [0x0D, 0x0A]
        }
        return bytes
    }
}
