import HTTPSemantics
import Mapping
import Store

/// What a route says of a body: how it is taken apart, and how far it may be believed.
struct BodyMapping: Sendable {
    var rule: BodyRule?
    var kind: Observation.Kind
    /// Captures of the path that are bound to keys of the object.
    var bound: [String: String]
    /// All captures of the path.
    var captures: [String: String] = [:]

    /// What surrounds a body that is read so.
    func surroundings(url: String, fields: Fields) -> MappingContext {
        guard rule != nil else { return .none }
        var values: [String: String] = [:]
        for line in fields.lines {
            let name = String(decoding: line.name, as: UTF8.self).lowercased()
            // Of several lines the first counts; no field that an identity is made of comes twice.
            if values[name] == nil { values[name] = String(decoding: line.value, as: UTF8.self) }
        }
        return MappingContext(url: url, captures: captures, bound: bound, fields: values)
    }
}
