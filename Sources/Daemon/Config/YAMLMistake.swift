import Yams

/// What is wrong with a file as YAML, in words.
enum YAMLMistake {
    /// Where, if the parser says so, and what.
    static func describe(_ error: any Error) -> (Place?, String) {
        switch error as? YamlError {
        case .scanner(let context, let problem, let mark, _)?, .parser(let context, let problem, let mark, _)?:
            let aliasHint =
                context?.text.contains("alias") == true || problem.contains("alias")
                ? "; a value that begins with \"*\" needs quotes" : ""
            let where_ = context.map { ", \($0.text)" } ?? ""
            return (Place(line: mark.line, column: mark.column), "this is not YAML: \(problem)\(where_)\(aliasHint)")
        case .composer(_, let problem, let mark, _)?:
            let hint = problem.contains("alias") ? "; a value that begins with \"*\" needs quotes" : ""
            return (Place(line: mark.line, column: mark.column), "this is not YAML: \(problem)\(hint)")
        case .duplicatedKeysInMapping(let duplicates, let context)?:
            let names = duplicates.map { "\"\($0)\"" }.joined(separator: ", ")
            return (
                Place(line: context.mark.line, column: context.mark.column),
                "\(names) stands twice among the same keys; keep one of them"
            )
        case .reader(let problem, _, _, _)?: return (nil, "this is not YAML: \(problem)")
        default: return (nil, "this is not YAML: \(error)")
        }
    }
}
