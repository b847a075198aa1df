import HTTPSemantics

/// A line and column of the config file, both from 1; columns count Unicode scalars.
package struct Place: Sendable, Hashable, Comparable {
    package var line: Int
    package var column: Int

    static let start = Place(line: 0, column: 0)

    package static func < (left: Place, right: Place) -> Bool { (left.line, left.column) < (right.line, right.column) }
}

/// A message about a config: the place, the mistake, and what to write instead.
package struct Diagnostic: Sendable, Hashable, CustomStringConvertible {
    package enum Severity: String, Sendable, Encodable {
        /// The config is not used.
        case error
        /// The config works, but probably not as intended or not as safely as it could.
        case warning
    }

    package var severity: Severity = .error
    package var file: String
    /// Nil if it concerns the file as a whole.
    package var place: Place?
    package var message: String

    /// `larder.yaml:3:5: error: …`, a form that editors and terminals understand.
    package var description: String {
        let position = place.map { ":\($0.line):\($0.column)" } ?? ""
        return "\(file)\(position): \(severity.rawValue): \(message)"
    }
}

/// Suggestions for misspelled words.
package enum Suggestion {
    /// The candidate nearest to `word`, if it is near enough for a typing error.
    package static func nearest(to word: String, among candidates: some Sequence<String>) -> String? {
        let plain = simplified(word)
        let limit = max(1, plain.count / 3)
        return
            candidates
            .map { (candidate: $0, distance: distance(plain, simplified($0))) }
            .filter { $0.distance <= limit }
            // Of two equally near ones, prefers the longer, as letters are more often left out than added: "models" rather than
            // "mode" for "model", "serve" rather than "save" for "srve".
            .min {
                ($0.distance, -$0.candidate.count, $0.candidate) < ($1.distance, -$1.candidate.count, $1.candidate)
            }?
            .candidate
    }

    /// The candidate that a word means, if it is misspelled or another language's name for it.
    static func word(for word: String, among candidates: some Sequence<String>) -> String? {
        let candidates = Array(candidates)
        let other = synonyms.first { $0.words.contains(word.lowercased()) && candidates.contains($0.candidate) }
        return other?.candidate ?? nearest(to: word, among: candidates)
    }

    private static let synonyms: [(candidate: String, words: Set<String>)] = [
        ("integer", ["int", "int32", "int64", "long", "whole"]), ("decimal", ["float", "double", "number", "numeric"]),
        ("number", ["float", "double", "decimal", "numeric"]), ("boolean", ["bool", "flag"]),
        ("string", ["str", "text", "varchar"]),
        ("date", ["datetime", "date-time", "timestamp", "time", "iso8601", "rfc3339", "instant"]),
        ("array", ["list"]), ("object", ["map", "dict", "dictionary", "hash", "record"]),
        ("list_of", ["array_of", "array", "list"]), ("dictionary_of", ["map_of", "object_of", "map", "dict"]),
    ]

    /// The boolean that a word means in other languages and YAML 1.1.
    static func boolean(_ word: String) -> Bool? {
        switch word.lowercased() {
        case "true", "yes", "y", "on", "1", "enabled": true
        case "false", "no", "n", "off", "0", "disabled": false
        default: nil
        }
    }

    /// Removes differences in case, `-` and `_`, the most common mistakes.
    private static func simplified(_ word: String) -> [UInt8] {
        word.utf8.filter { $0 != UInt8(ascii: "_") && $0 != UInt8(ascii: "-") }.map { asciiLowercased($0) }
    }

    /// The least number of inserted, removed, replaced and swapped letters (optimal string alignment).
    static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast = [Int](repeating: 0, count: right.count + 1)
        var last = Array(0...right.count)
        for (row, a) in left.enumerated() {
            var current = [row + 1]
            for (column, b) in right.enumerated() {
                var best = min(last[column + 1] + 1, current[column] + 1, last[column] + (a == b ? 0 : 1))
                if row > 0, column > 0, a == right[column - 1], left[row - 1] == b {
                    best = min(best, beforeLast[column - 1] + 1)
                }
                current.append(best)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
