/// A value that is not in the object itself but around it.
///
/// Written where a key path may stand, with `@` before it.
public enum ContextValue: Sendable, Equatable {
    /// `@url`: the answer's URL, path and query.
    case url
    /// `@url.owner`: what a capture of the route matched.
    case capture(String)
    /// `@header.etag`: a field of the answer, by its name in lower case.
    case header(String)
    /// `@parent.id`: a key path in the nearest object of a declared model around this one; an envelope is one if the
    /// route names its model.
    case parent(String)
    /// `@root.id`: a key path in the outermost object, the envelope included.
    case root(String)
    /// `@index`: the position in the list, from 0.
    case index
    /// `@key`: the name of the member that the object is the value of.
    case key
    /// `@self`: the object itself; with a relation to one, a child made of its parent's own members.
    case itself

    /// Reads the spelling with `@`; nil if there is no such value.
    public init?(_ text: String) {
        guard text.hasPrefix("@") else { return nil }
        let parts = text.dropFirst().split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let rest = parts.count == 2 && !parts[1].isEmpty ? String(parts[1]) : nil
        switch (parts[0], rest) {
        case ("url", nil) where parts.count == 1: self = .url
        case ("url", let name?): self = .capture(name)
        case ("header", let name?): self = .header(name.lowercased())
        case ("parent", let path?): self = .parent(path)
        case ("root", let path?): self = .root(path)
        case ("index", nil) where parts.count == 1: self = .index
        case ("key", nil) where parts.count == 1: self = .key
        case ("self", nil) where parts.count == 1: self = .itself
        default: return nil
        }
    }

    /// Whether an entry is meant as a value from the context.
    public static func isSpelled(_ text: String) -> Bool { text.hasPrefix("@") }
}

/// What surrounds a body: where it came from and with which fields.
public struct MappingContext: Sendable, Equatable {
    /// Path and query of the answer, credentials redacted.
    public var url: String
    /// What the route's captures matched, decoded.
    public var captures: [String: String]
    /// Members of the outermost object that the route binds to captures (`object:`).
    public var bound: [String: String]
    /// The answer's fields, names in lower case.
    public var fields: [String: String]

    /// Describes the surroundings of a body.
    public init(
        url: String = "",
        captures: [String: String] = [:],
        bound: [String: String] = [:],
        fields: [String: String] = [:]
    ) {
        self.url = url
        self.captures = captures
        self.bound = bound
        self.fields = fields
    }

    /// Nothing is known around the body.
    public static let none = MappingContext()
}
