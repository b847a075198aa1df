import Yams

struct YAMLMistake {
    /// Nil if the parser does not say.
    var place: Place?
    var message: String
    /// The message for a file whose text must not be shown, see `ConfigReader.compose`; nil if that is the same.
    var unquoted: String?

    /// Describes the errors of the parser; `text` is the parsed text.
    static func describe(_ error: any Error, in text: String) -> [YAMLMistake] {
        switch error as? YamlError {
        case .scanner(let context, let problem, let mark, _)?, .parser(let context, let problem, let mark, _)?:
            let place = Place(mark)
            // The parser has a limit of its own, by which it gives up before the measure sees what it reads ahead.
            if problem.contains("nesting level") { return [YAMLMistake(place: place, message: BoundedYAML.tooDeep)] }
            let where_ = context.map { ", \($0.text)\(began(at: $0.mark, before: place))" } ?? ""
            let about = problem + (context?.text ?? "")
            let message = "this is not YAML: \(problem)\(where_)\(hint(about, at: place, in: text))"
            return [YAMLMistake(place: place, message: message)]
        case .composer(_, let problem, let mark, _)?:
            let place = Place(mark)
            let message =
                problem.contains("another document")
                ? "another document begins here, but a config is one; remove the line \"---\" and what follows, or put it into "
                    + "a file of its own and include that"
                : "this is not YAML: \(problem)\(hint(problem, at: place, in: text))"
            return [YAMLMistake(place: place, message: message)]
        case .duplicatedKeysInMapping(let duplicates, let context)?:
            // The parser reports the place of one key only.
            let place = Place(context.mark)
            let keys = YAMLMeasure(text, keysBeside: place).keys
            return duplicates.map { name in
                let places = keys.filter { $0.name == "\(name)" }.map(\.place)
                let said =
                    places.count > 1
                    ? "occurs twice among the same keys, first in line \(places[0].line); keep one of them"
                    : "occurs twice among the same keys; keep one of them"
                return YAMLMistake(
                    place: places.count > 1 ? places[1] : place,
                    message: "\"\(name)\" \(said)",
                    unquoted: "a key \(said)"
                )
            }
        case .reader(let problem, _, _, _)?: return [YAMLMistake(message: "this is not YAML: \(problem)")]
        default: return [YAMLMistake(message: "this is not YAML: \(error)", unquoted: "this is not YAML")]
        }
    }

    /// Where the unfinished construct began, if on an earlier line.
    private static func began(at mark: Mark?, before place: Place) -> String {
        guard let mark, mark.line < place.line else { return "" }
        return " that begins in line \(mark.line)"
    }

    /// What should probably be written instead.
    private static func hint(_ problem: String, at place: Place, in text: String) -> String {
        let line =
            text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).dropFirst(place.line - 1).first
            ?? ""
        let indent = line.prefix { $0 == " " || $0 == "\t" }
        let rest = line.unicodeScalars.dropFirst(place.column - 1).first
        if indent.contains("\t") || rest == "\t" { return "; YAML is indented by spaces, not by tabs" }
        if problem.contains("alias") { return "; a value that begins with \"*\" needs quotes" }
        if let rest, "@`%".unicodeScalars.contains(rest) {
            return "; a value that begins with \"\(rest)\" needs quotes"
        }
        if line.contains("{"), line.contains("#}") || line.contains("/{") {
            return "; a path with braces or \"#\" needs quotes, as in path: \"users/{id:#}\""
        }
        if problem.contains("block mapping") || problem.contains("expected key") {
            return "; keys of one section begin in the same column, and a blank follows each colon"
        }
        return ""
    }
}
