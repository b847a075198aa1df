/// The context that an answer's objects belong to: its key's, and what else the answer varies by.
///
/// Two answers under one key that the upstream selected by a field of the request show two representations of their
/// objects, as two languages are (law 5). As one text: the key's context, an empty line, the rest. No context of a key has
/// an empty line.
struct ObjectContext {
    private static let separator = "\n\n"

    let text: String

    init(key: String, selectedBy: String) {
        text = selectedBy.isEmpty ? key : key + Self.separator + selectedBy
    }

    /// Whether a context of the text `context` is one that answers under a key's `parameter` have.
    static func isOfKey(_ context: String, _ parameter: String) -> String {
        "(\(context) = \(parameter) OR substr(\(context), 1, length(\(parameter)) + 2) = \(parameter) || char(10, 10))"
    }

    /// The key's part of a context.
    static func key(of text: String) -> String {
        let bytes = Array(text.utf8)
        guard bytes.count > 1, let end = (0..<bytes.count - 1).first(where: { bytes[$0] == 10 && bytes[$0 + 1] == 10 })
        else { return text }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}
