import Foundation

/// A regular expression that a string has to match as a whole, searched for with a bounded effort.
///
/// The engine is ICU's, which tries one way after the other: what a pattern such as `(a+)+b` costs may double with every
/// character. Such a search is given up after a number of steps that is always the same, and counts as a mismatch.
struct PatternSearch: Sendable {
    private let pattern: String
    private let expression: NSRegularExpression
    /// Longer strings are not searched; bytes.
    private static let longest = 10_000
    /// How often the engine may report that it is still busy, each time after ten thousand steps.
    private static let patience = 20

    init(_ pattern: String) throws(MappingError) {
        // By itself first: a bracket too many would close the one that is put around it.
        guard (try? NSRegularExpression(pattern: pattern)) != nil,
            let expression = try? NSRegularExpression(pattern: "\\A(?:\(pattern))\\z")
        else {
            throw .invalidCheck("\"\(pattern)\" is not a regular expression")
        }
        self.pattern = pattern
        self.expression = expression
    }

    /// Why a string is not as it should be, for a person; nil when it matches.
    func fault(in text: String) -> String? {
        guard text.utf8.count <= Self.longest else { return "a string of at most \(Self.longest) bytes is expected" }
        var (isFound, isGivenUp) = (false, false)
        var reports = 0
        let range = NSRange(location: 0, length: text.utf16.count)
        expression.enumerateMatches(in: text, options: .reportProgress, range: range) { match, _, stop in
            if match != nil {
                isFound = true
                stop.pointee = true
            } else {
                reports += 1
                isGivenUp = reports > Self.patience
                if isGivenUp { stop.pointee = true }
            }
        }
        if isFound { return nil }
        return isGivenUp
            ? "a string of the pattern \(pattern), and found to be one without a long search, is expected"
            : "a string of the pattern \(pattern) is expected"
    }
}
