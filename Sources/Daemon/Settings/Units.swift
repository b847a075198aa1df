import HTTPSemantics

/// Durations and sizes as people write them: `1h30m`, `500ms`, `64MiB`.
package enum Units {
    private static let durations: [(unit: String, milliseconds: Int64)] = [
        ("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]

    private static let sizes: [(unit: String, bytes: Int)] = [
        ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
        ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000), ("B", 1),
    ]

    private static let noDuration = "is not a duration such as 500ms, 30s, 5m or 1d"
    private static let noSize = "is not a size such as 4096, 512KiB, 64MiB or 1GiB"

    /// Reads `500ms`, `30s`, `5m`, `1h30m`, `1d`, `0` or `forever`; the error says what to write instead.
    package static func duration(_ text: String) throws(InvalidValue) -> Duration {
        if text == "forever" { return .forever }
        if text == "0" { return .zero }
        if let meant = likely(text) { throw invalid(text, "is not a duration as Larder writes it; write \(meant)") }
        var rest = Substring(text)
        var total: Int64 = 0
        while !rest.isEmpty {
            let (number, unit, after) = try numberAndUnit(rest, of: text, else: noDuration)
            guard !unit.isEmpty else { throw invalid(text, "has no unit; write \(number)s for seconds") }
            guard let factor = durations.first(where: { $0.unit == unit })?.milliseconds else {
                throw invalid(text, "has an unknown unit \"\(unit)\"; units are ms, s, m, h, d and w")
            }
            let (product, overflow) = Int64(number).multipliedReportingOverflow(by: factor)
            let (sum, carry) = total.addingReportingOverflow(product)
            guard !overflow, !carry else { throw invalid(text, "is too long; write \"forever\"") }
            total = sum
            rest = after
        }
        guard !text.isEmpty else { throw invalid(text, noDuration) }
        return .milliseconds(total)
    }

    /// How a duration in another notation should be written: `5 minutes`, `5min`, `1.5h`, `PT5M`.
    private static func likely(_ text: String) -> String? {
        var rest = Substring(text.lowercased().filter { !$0.isWhitespace })
        if rest.hasPrefix("p") { rest = Substring(rest.dropFirst().filter { $0 != "t" }) }
        var written = ""
        while !rest.isEmpty {
            let number = rest.prefix { $0.isASCII && $0.isNumber || $0 == "." }
            let word = rest.dropFirst(number.count).prefix(while: \.isLetter)
            guard let value = Double(number), let unit = unit(of: word) else { return nil }
            guard let factor = durations.first(where: { $0.unit == unit })?.milliseconds, value < 1e9
            else { return nil }
            let milliseconds = (value * Double(factor)).rounded()
            guard abs(milliseconds - value * Double(factor)) < 1e-6 else { return nil }
            written += self.text(.milliseconds(Int64(milliseconds)))
            rest = rest.dropFirst(number.count + word.count)
        }
        return written.isEmpty || written == text || isPlain(text) ? nil : written
    }

    /// Whether each number is whole and each unit one of ours.
    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 &- 0x30 < 10 || "wdhms".utf8.contains($0) }
    }

    private static func unit(of word: Substring) -> String? {
        if durations.contains(where: { $0.unit == word }) { return String(word) }
        let words = [
            ("ms", ["milli", "millis", "msec", "millisecond", "milliseconds"]),
            ("s", ["sec", "secs", "second", "seconds"]),
            ("m", ["min", "mins", "minute", "minutes"]), ("h", ["hr", "hrs", "hour", "hours"]), ("d", ["day", "days"]),
            ("w", ["week", "weeks"]),
        ]
        return words.first { $0.1.contains { $0 == word } }?.0
    }

    /// A smaller size needs a unit: `64` is far more likely to mean mebibytes than bytes.
    static let leastPlainSize = 1 << 10

    /// Reads `64MiB`, `1GB`, `4096`, `0`.
    static func size(_ text: String) throws(InvalidValue) -> Int {
        if let meant = likelySize(text) { throw invalid(text, "is not a size as Larder writes it; write \(meant)") }
        let (number, unit, rest) = try numberAndUnit(Substring(text), of: text, else: noSize)
        guard rest.isEmpty else { throw invalid(text, noSize) }
        if unit.isEmpty {
            guard number == 0 || number >= leastPlainSize else {
                throw invalid(text, "has no unit; write \(number)MiB, or \(number)B if bytes are meant")
            }
            return number
        }
        guard let factor = sizes.first(where: { $0.unit == unit })?.bytes else {
            throw invalid(text, "has an unknown unit \"\(unit)\"; units are B, KiB, MiB, GiB, TiB, kB, MB, GB and TB")
        }
        let (product, overflow) = number.multipliedReportingOverflow(by: factor)
        guard !overflow else { throw invalid(text, "is larger than any disk") }
        return product
    }

    /// How a size in another notation should be written: `64 MiB`, `64mb`, `64M`, `64Mi`, `1.5GiB`.
    private static func likelySize(_ text: String) -> String? {
        let plain = text.filter { !$0.isWhitespace }
        let number = plain.prefix { $0.isASCII && $0.isNumber || $0 == "." }
        let word = plain.dropFirst(number.count)
        guard let value = Double(number), let prefix = word.first.map({ $0.uppercased() }), "KMGT".contains(prefix)
        else { return nil }
        let rest = word.dropFirst().lowercased()
        guard ["", "i", "b", "ib"].contains(rest) else { return nil }
        // "K", "M" and "G" alone are powers of 1024 nearly everywhere.
        let unit = rest == "b" ? (prefix == "K" ? "kB" : prefix + "B") : prefix + "iB"
        guard let factor = sizes.first(where: { $0.unit == unit })?.bytes, value < 1e6 else { return nil }
        let bytes = value * Double(factor)
        let written = value == value.rounded() ? "\(Int(value))\(unit)" : self.text(size: Int(bytes))
        return written == text || bytes != bytes.rounded() ? nil : written
    }

    /// The shortest spelling that `duration` reads.
    package static func text(_ duration: Duration) -> String {
        if duration >= .forever { return "forever" }
        let (seconds, attoseconds) = duration.components
        var rest = seconds * 1000 + attoseconds / 1_000_000_000_000_000
        guard rest > 0 else { return "0s" }
        // A single unit reads best: 90m rather than 1h30m, but 1d rather than 24h; weeks are never shorter.
        var text = ""
        for (unit, milliseconds) in durations.dropFirst() where rest >= milliseconds {
            text += "\(rest / milliseconds)\(unit)"
            rest %= milliseconds
        }
        return text
    }

    /// The same without fractions of seconds, if it is longer than a second: `3m12s`.
    package static func roundedText(_ duration: Duration) -> String {
        text(duration < .seconds(1) ? duration : .seconds(duration.components.seconds))
    }

    /// The spelling in the largest binary unit that divides it.
    static func text(size: Int) -> String {
        for (unit, bytes) in sizes.prefix(4) where size > 0 && size % bytes == 0 { return "\(size / bytes)\(unit)" }
        return (1..<leastPlainSize).contains(size) ? "\(size)B" : "\(size)"
    }

    private static func invalid(_ text: String, _ reason: String) -> InvalidValue {
        InvalidValue("\"\(text)\" \(reason)")
    }

    private static func numberAndUnit(_ rest: Substring, of text: String, else reason: String) throws(InvalidValue)
        -> (Int, String, Substring)
    {
        let digits = rest.prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty else { throw invalid(text, reason) }
        guard let number = Int(digits) else { throw invalid(text, "is too large") }
        let tail = rest[digits.endIndex...]
        let unit = tail.prefix { $0.isLetter }
        let after = tail[unit.endIndex...]
        guard after.isEmpty || after.first?.isNumber == true
        else { throw invalid(text, reason) }
        return (number, String(unit), after)
    }
}
