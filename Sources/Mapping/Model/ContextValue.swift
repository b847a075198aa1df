/// A value from an object's surroundings.
///
/// It is written with `@` in place of a key path.
public enum ContextValue: Sendable, Equatable {
    /// `@url`: the path and query of the request.
    case url
    /// `@url.owner`: the value of a capture of the route.
    case capture(String)
    /// `@header.etag`: a header field of the response, by its name in lower case.
    case header(String)
    /// `@parent.id`: a key path in the nearest enclosing object of a declared model.
    ///
    /// An envelope counts if the route names its model.
    case parent(String)
    /// `@root.id`: a key path in the outermost object, the envelope included.
    case root(String)
    /// `@index`: the position in the list, from 0.
    case index
    /// `@key`: the name of the member whose value the object is.
    case key
    /// `@self`: the object itself; with a relation to one object, a child made of its parent's own members.
    case itself

    /// Parses the spelling with `@`; nil if there is no such value.
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

    /// Whether an entry is written as a value from the context.
    public static func isSpelled(_ text: String) -> Bool { text.hasPrefix("@") }
}

/// The surroundings of a body: its URL and its header fields.
public struct MappingContext: Sendable, Equatable {
    /// The path and query of the request, with credentials redacted.
    public var url: String
    /// The decoded values of the route's captures.
    public var captures: [String: String]
    /// The captures that the route binds to members of the outermost object (`object:`), by member.
    public var bound: [String: String]
    /// The header fields of the response, with names in lower case.
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

    /// Unknown surroundings.
    public static let none = MappingContext()
}
