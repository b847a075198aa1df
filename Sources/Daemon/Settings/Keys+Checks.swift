import Mapping
import Yams

extension PropertyDraft {
    /// The checks on a property's value.
    static let checks: [ConfigKey<PropertyDraft>] = [
        .boolean("required", \.declaration.isRequired, "Whether `larder warnings` lists objects without it."),
        ConfigKey(
            "type",
            .list(.choice(ValueCheck.JSONType.allCases.map(\.rawValue))),
            example: "string",
            "The JSON types that it may have; null is allowed unless `null: false` forbids it. A value that fails a check is left out of the mapped view and listed by `larder warnings`."
        ) { node, draft, reader in
            let words = ValueCheck.JSONType.allCases.map(\.rawValue)
            let types = reader.list(node, wanted: "a type, or a list of them")?.compactMap { element in
                reader.choice(element, of: words).flatMap(ValueCheck.JSONType.init)
            }
            // Unknown words have been reported.
            if let types, !types.isEmpty || node.sequence?.isEmpty == true {
                draft.add(.type(types), node.place, &reader)
            }
        },
        ConfigKey(
            "range",
            .strictList(.anything),
            example: "[0, 100]",
            "The smallest and the largest number allowed; ~ for no bound."
        ) { node, draft, reader in
            guard let bounds = reader.bounds(node) else { return }
            draft.add(.range(minimum: bounds.low, maximum: bounds.high), node.place, &reader)
        },
        ConfigKey(
            "length",
            .strictList(.anything),
            example: "[1, 255]",
            "The smallest and the largest length allowed of a string or a list; ~ for no bound."
        ) { node, draft, reader in
            guard let bounds = reader.bounds(node) else { return }
            let (low, high) = (Self.count(bounds.low), Self.count(bounds.high))
            guard (bounds.low == nil) == (low == nil), (bounds.high == nil) == (high == nil) else {
                return reader.errorHere(node.place, "a length is a whole number")
            }
            draft.add(.length(minimum: low, maximum: high), node.place, &reader)
        },
        ConfigKey(
            "pattern",
            .text,
            example: "\"[a-z0-9-]+\"",
            "The regular expression that a whole string must match."
        ) { node, draft, reader in
            guard let pattern = reader.text(node, wanted: "a regular expression in quotes") else { return }
            draft.add(.pattern(pattern), node.place, &reader)
        },
        ConfigKey("one_of", .list(.anything), example: "[open, closed]", "The values allowed.") { node, draft, reader in
            guard let values = reader.jsonList(node) else { return }
            draft.add(.oneOf(values), node.place, &reader)
        },
        ConfigKey("null", .boolean, fallback: "true", "Whether null is allowed.") { node, draft, reader in
            if reader.boolean(node) == false { draft.declaration.checks.append(.notNull) }
        },
    ]

    private static func count(_ json: [UInt8]?) -> Int? { json.flatMap { Int(String(decoding: $0, as: UTF8.self)) } }

    private mutating func add(_ check: ValueCheck, _ place: Place?, _ reader: inout ConfigReader) {
        do {
            _ = try ValueChecker([check])
            declaration.checks.append(check)
        } catch {
            reader.errorHere(place, error.description)
        }
    }
}

extension ConfigReader {
    /// Two numbers in a list, either of which may be null.
    fileprivate mutating func bounds(_ node: Node) -> (low: [UInt8]?, high: [UInt8]?)? {
        let wanted = "the smallest and the largest, such as [0, 100]; ~ for no bound"
        guard let sequence = node.sequence, sequence.count == 2 else {
            misfit(node, wanted: wanted)
            return nil
        }
        var bounds: [[UInt8]?] = []
        for element in sequence {
            if element.isNothing {
                bounds.append(nil)
            } else if let json = json(element), JSONBody.isNumber(String(decoding: json, as: UTF8.self)) {
                bounds.append(json)
            } else {
                misfit(element, wanted: "a number, or ~ for no bound")
                return nil
            }
        }
        return (bounds[0], bounds[1])
    }
}
