import CachePolicy
import HTTPSemantics

/// What the hit path asks of a request besides its key.
extension RequestHead {
    /// Whether its `Accept` names JSON and nothing that another type would satisfy.
    var asksForJSONOnly: Bool {
        guard let accept = self[.accept] else { return false }
        return ContextFields.isJSONOnlyAccept(accept)
    }

    /// The conditions that a cache evaluates.
    var conditions: Fields {
        var fields = Fields()
        for index in 0..<fieldCount {
            let field = field(at: index)
            guard field.known == .ifNoneMatch || field.known == .ifModifiedSince else { continue }
            fields.lines.append(Field(name: Array(field.name), value: Array(field.value)))
        }
        return fields
    }
}
