import Foundation
import HTTPSemantics

/// Numbers and texts formatted for people.
enum HumanText {
    /// `1.2 MiB`.
    static func bytes(_ count: Int) -> String {
        guard count >= 1024 else { return "\(count) B" }
        var value = Double(count)
        var unit = 0
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
        // 1023.95 and more would be rounded to 1024.0.
        while value >= 1023.95, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        return "\(tenths(value)) \(units[unit])"
    }

    /// `1.2`.
    static func tenths(_ number: Double) -> String {
        let tenths = Int((number * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// What a request takes: `85µs`, `0.2ms`, `1.4s`.
    static func duration(_ seconds: Double) -> String {
        switch seconds {
        case ..<0.000_1: "\(Int((seconds * 1_000_000).rounded()))µs"
        case ..<0.1: tenths(seconds * 1_000) + "ms"
        case ..<1: "\(Int((seconds * 1_000).rounded()))ms"
        default: tenths(seconds) + "s"
        }
    }

    /// How long something has lasted, or how long ago it was, in its two largest units: `3d 4h`, `5m 2s`.
    static func longDuration(_ seconds: Int) -> String {
        let units = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)]
        guard let first = units.firstIndex(where: { seconds >= $0.1 }) else { return "0s" }
        var rest = seconds
        return units[first...].prefix(2).compactMap { unit, length in
            defer { rest %= length }
            return rest >= length ? "\(rest / length)\(unit)" : nil
        }.joined(separator: " ")
    }

    /// `1 object`, `2 objects`.
    static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    /// `1 object, 2 documents`.
    static func counts(_ objects: Int, _ documents: Int) -> String {
        "\(count(objects, "object")), \(count(documents, "document"))"
    }

    static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    /// One line, cut to a width; characters unsafe for a terminal are escaped.
    static func line(_ text: String, width: Int) -> String {
        let spaced =
            text.contains { $0.isNewline || $0 == "\t" }
            ? String(text.map { $0.isNewline || $0 == "\t" ? " " : $0 }) : text
        return cut(spaced.printable, to: width)
    }

    /// The text with lines no wider than a terminal, broken at spaces; a line that `hangs` goes on further to the right.
    ///
    /// Unless `breaksWords`, the terminal breaks wider words, so that a URL or a command can still be copied.
    static func folded(_ text: String, width: Int?, breaksWords: Bool = false, hangs: Bool = true) -> String {
        guard let width, width >= 10, text.displayWidth > width else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false)
            .flatMap { folded(line: $0, width: width, breaksWords: breaksWords, hangs: hangs) }
            .joined(separator: "\n")
    }

    private static func folded(line: Substring, width: Int, breaksWords: Bool, hangs: Bool) -> [String] {
        guard String(line).displayWidth > width else { return [String(line)] }
        let depth = line.prefix { $0 == " " }.count
        // A deep indentation, as of a column, would leave no room.
        let start = String(repeating: " ", count: depth < width / 2 ? depth : 2)
        let indentation = start + (hangs && start.count + 2 < width / 2 ? "  " : "")
        var (lines, current, gap) = ([String](), start, "")
        for word in line.dropFirst(depth).split(separator: " ", omittingEmptySubsequences: false) {
            let isBegun = current.contains { $0 != " " }
            let isBroken = breaksWords && String(word).displayWidth > width - indentation.count
            if isBegun, !word.isEmpty, !isBroken, (current + gap + word).displayWidth > width {
                lines.append(current)
                (current, gap) = (indentation, "")
            }
            guard !word.isEmpty else {
                gap += " "
                continue
            }
            current += gap
            for character in word {
                if breaksWords, (current + String(character)).displayWidth > width {
                    lines.append(current)
                    current = indentation
                }
                current.append(character)
            }
            gap = " "
        }
        return lines + [current]
    }

    /// The beginning of a text that fits into a number of columns.
    static func cut(_ text: String, to width: Int) -> String {
        guard text.displayWidth > width else { return text }
        var (kept, used) = ("", 0)
        for character in text {
            let next = String(character).displayWidth
            guard used + next <= width - 1 else { break }
            kept.append(character)
            used += next
        }
        return kept + "…"
    }
}

extension String {
    var displayWidth: Int { reduce(0) { $0 + $1.displayWidth } }
}

extension Character {
    /// East Asian characters and emoji take two columns, accents none of their own.
    fileprivate var displayWidth: Int {
        guard let first = unicodeScalars.first else { return 0 }
        switch first.value {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE4F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }
}
