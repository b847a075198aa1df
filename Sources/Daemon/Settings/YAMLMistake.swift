import Yams

/// A syntax error in YAML.
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
            let place = Place(line: mark.line, column: mark.column)
            // The parser has a limit of its own, by which it gives up before the measure sees what it reads ahead.
            if problem.contains("nesting level") { return [YAMLMistake(place: place, message: BoundedYAML.tooDeep)] }
            let where_ = context.map { ", \($0.text)\(began(at: $0.mark, before: place))" } ?? ""
            let about = problem + (context?.text ?? "")
            return [
                YAMLMistake(
                    place: place,
                    message: "this is not YAML: \(problem)\(where_)\(hint(about, at: place, in: text))"
                )
            ]
        case .composer(_, let problem, let mark, _)?:
            let place = Place(line: mark.line, column: mark.column)
            if problem.contains("another document") {
                return [
                    YAMLMistake(
                        place: place,
                        message:
                            "another document begins here, but a config is one; remove the line \"---\" and what follows, or put it into "
                            + "a file of its own and include that"
                    )
                ]
            }
            return [
                YAMLMistake(place: place, message: "this is not YAML: \(problem)\(hint(problem, at: place, in: text))")
            ]
        case .duplicatedKeysInMapping(let duplicates, let context)?:
            let start = Place(line: context.mark.line, column: context.mark.column)
            return duplicates.map { name in
                let places = DuplicateKey.places(of: "\(name)", inMappingAt: start, in: text)
                let said =
                    places.count > 1
                    ? "occurs twice among the same keys, first in line \(places[0].line); keep one of them"
                    : "occurs twice among the same keys; keep one of them"
                return YAMLMistake(
                    place: places.count > 1 ? places[1] : start,
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

/// A key that occurs several times in one mapping: the parser reports the mapping, but not the places.
private enum DuplicateKey {
    /// The places at which a mapping has a key, as far as they can be found without parsing.
    static func places(of name: String, inMappingAt start: Place, in text: String) -> [Place] {
        let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map {
            Array($0.unicodeScalars)
        }
        guard start.line >= 1, start.line <= lines.count else { return [] }
        let first = lines[start.line - 1]
        guard start.column >= 1, start.column <= first.count else { return [] }
        // The parser reports the place of the first key, or of the brace.
        let isBrace = first[start.column - 1] == "{"
        let isWithinBraces = first[..<(start.column - 1)].last { $0 != " " } == "{"
        return isBrace || isWithinBraces
            ? inFlow(name, from: start, depth: isBrace ? 0 : 1, lines) : inBlock(name, from: start, lines)
    }

    private static func inBlock(_ name: String, from start: Place, _ lines: [[Unicode.Scalar]]) -> [Place] {
        var places: [Place] = []
        for index in (start.line - 1)..<lines.count {
            let line = lines[index]
            let indent = index == start.line - 1 ? start.column - 1 : line.prefix { $0 == " " }.count
            guard indent < line.count, line[indent] != "#" else { continue }
            if indent < start.column - 1 { break }
            if indent == start.column - 1, isKey(name, at: indent, in: line) {
                places.append(Place(line: index + 1, column: indent + 1))
            }
        }
        return places
    }

    private static func inFlow(
        _ name: String,
        from start: Place,
        depth outer: Int,
        _ lines: [[Unicode.Scalar]]
    ) -> [Place] {
        var places: [Place] = []
        var depth = outer
        var quote: Unicode.Scalar?
        var isKeyNext = outer > 0
        for index in (start.line - 1)..<lines.count {
            let line = lines[index]
            for column in line.indices where index > start.line - 1 || column >= start.column - 1 {
                let scalar = line[column]
                if let open = quote {
                    if scalar == open { quote = nil }
                    continue
                }
                if depth == 1, isKeyNext, scalar != " ", scalar != "\t" {
                    if isKey(name, at: column, in: line) { places.append(Place(line: index + 1, column: column + 1)) }
                    isKeyNext = false
                }
                switch scalar {
                case "\"", "'": quote = scalar
                case "{", "[": depth += 1
                case "}", "]": depth -= 1
                default: break
                }
                if depth == 1, scalar == "," || scalar == "{" { isKeyNext = true }
                if depth == 0 { return places }
            }
        }
        return places
    }

    /// Whether a key of this name begins here, quoted or not.
    private static func isKey(_ name: String, at column: Int, in line: [Unicode.Scalar]) -> Bool {
        for spelled in [name, "\"\(name)\"", "'\(name)'"] {
            let spelled = Array(spelled.unicodeScalars)
            guard line[column...].starts(with: spelled) else { continue }
            if line[(column + spelled.count)...].first(where: { $0 != " " }) == ":" { return true }
        }
        return false
    }
}
