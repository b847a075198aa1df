/// Durations as people write them: `90s`, `15m`, `12h`, `7d`.
enum AdminDuration {
    static func parse(_ text: String) -> Duration? {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
        guard let unit = text.last.flatMap({ units[$0] }), let number = Int64(text.dropLast()), number >= 0,
            case (let seconds, false) = number.multipliedReportingOverflow(by: unit), seconds < 1 << 40
        else { return nil }
        return .seconds(seconds)
    }
}
