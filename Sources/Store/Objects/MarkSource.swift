/// By which request it came to be known that an object is gone, or that nobody was told what has become of it.
public struct MarkSource: Sendable, Hashable {
    /// Its method; nil: a write that was under way when the daemon ended.
    public var method: String?
    /// Its path, without the query; nil where that is not known.
    public var path: String?

    /// Names a request; empty texts stand for what is not known.
    init(method: String, path: String) {
        self.method = method.isEmpty ? nil : method
        self.path = path.isEmpty ? nil : path
    }

    // MARK: As a text

    /// As the store has it: `PATCH /users/1`.
    var text: String { "\(method ?? "") \(path ?? "")" }

    init(text: String) {
        let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        self.init(method: String(parts[0]), path: parts.count > 1 ? String(parts[1]) : "")
    }
}
