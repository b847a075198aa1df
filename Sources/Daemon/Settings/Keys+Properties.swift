import Mapping
import Yams

extension PropertyDraft: ConfigSection {
    /// Reads the short form, a key path or a value from the context, or the long one.
    init(name: String, place: Place?, value: Node, _ reader: inout ConfigReader) {
        self.init()
        declaration.name = name
        declaration.from = name
        self.place = place
        if value.mapping != nil {
            let places = reader.section(value, into: &self)
            let relations = ["model", "models", "keyed"].filter { places[$0] != nil }
            if relations.count > 1 {
                reader.errorAtPath(
                    places[relations[1]],
                    "\"model\" (one object), \"models\" (a list of them) and \"keyed\" (an object of them) exclude each other"
                )
            }
            if let both = places["parts"], places["from"] != nil {
                reader.errorAtPath(both, "\"parts\" says where the value comes from; remove \"from\"")
            }
            isNamed = places["from"] != nil || places["parts"] != nil
        } else if let text = reader.text(value, wanted: "the member it is read from, or { from: …, as: …, model: … }") {
            declaration.from = text
            isNamed = true
        }
    }

    static let keys: [ConfigKey<PropertyDraft>] =
        documented([
            """
            The member it is read from; dots lead into other objects (`user.login`), [] takes each element of a list \
            (`tags[].name`), @ a value around the object (`@url.owner`, `@query.page`). Default: its own name.
            """: .parsed("from", wanted: "the name of a member", example: "avatar_url") { text, draft in
                draft.declaration.from = text
            },
            """
            Several members that are shown as one object: the name of each in it, with the member it is read from. With \
            `model`, the object that they identify.
            """:
                ConfigKey("parts", .named(.text, name: "length"), example: "{ start: location, count: length }") {
                    (node, draft, reader) in
                    guard let pairs = reader.pairs(node, wanted: "names, each with the member it is read from")
                    else { return }
                    draft.declaration.parts = pairs.compactMap { name, _, value in
                        reader.text(value, wanted: "the name of a member").map { .init(name: name, from: $0) }
                    }
                    if pairs.isEmpty { reader.errorAtPath(node.place, "it names no member; write { start: location }") }
                },
            """
            How it is shown in the mapped view: \(Converter.names.joined(separator: ", ")), or a longer form such as \
            { enum: { open: open, closed: done } }, { date: unix }, { list_of: url }. Of a list of conversions, the first \
            that fits counts: [date, { date: unix }]. The wire view never changes.
            """: ConfigKey("as", .anything, example: "date") { node, draft, reader in
                draft.declaration.conversion = reader.conversion(node)
            },
            "The model of the object in this member; the member may also contain only its identity.":
                .relation("model") { .one($0) },
            "The model of the objects in the list in this member.": .relation("models") { .many($0) },
            "The model of the objects that are the members of the object in this member.":
                .relation("keyed") { .keyed($0) },
            "The key of the related model (one of its `keys`) that stands in this member instead of the identity.":
                .parsed("by", wanted: "the name of a key", example: "login") { text, draft in
                    draft.declaration.relatedKey = text
                },
            "The member it is written to when objects are converted back to the upstream's JSON; none: it is left out. Default: the member it is read from.":
                .parsed("to", wanted: "a key path, or none", example: "created.at") { text, draft in
                    draft.declaration.output = text == "none" ? .none : .path(text)
                },
            "Whether values of another type are converted if their meaning is plain: \"5\" to 5, \"yes\" to true, a value to a list of one.":
                .boolean("coerce", \.declaration.coerces),
            "What the mapped view shows if the member is absent. It is marked there and never stored.":
                ConfigKey("default", .anything, example: "0") { node, draft, reader in
                    draft.declaration.defaultValue = reader.json(node)
                },
            "Whether the mapped view shows each element of a list once, in the place of the first.":
                .boolean("unique", \.declaration.isUnique),
            """
            How a new value is combined with the known one. latest: the newest counts, embedded objects of a model member by \
            member; replace: embedded objects as a whole; keep: the first; union: lists are joined; sum: numbers are added.
            """: .choice("merge", \.declaration.merge),
            """
            What happens to an object that this relation no longer names. keep: it is no longer linked. delete: it counts as \
            deleted, for relations that always show all of their objects.
            """: .choice("former", \.declaration.former),
        ]) + checks

    static let checks: [ConfigKey<PropertyDraft>] = documented([
        "Whether `larder warnings` lists objects without it.": .boolean("required", \.declaration.isRequired),
        "The JSON types that it may have; null is allowed unless `null: false` forbids it. A value that fails a check is left out of the mapped view and listed by `larder warnings`.":
            .check("type", .list(.choice(typeNames)), example: "string") { node, reader in
                let list = reader.list(node, wanted: "a type, or a list of them")
                let read = list?.compactMap { element in
                    reader.choice(element, of: typeNames).flatMap(ValueCheck.JSONType.init)
                }
                guard let types = read else { return nil }
                // Unknown words have been reported; an empty list is meant.
                let isMeant = !types.isEmpty || node.sequence?.isEmpty == true
                return isMeant ? .type(types) : nil
            },
        "The smallest and the largest number allowed; ~ for no bound.":
            .check("range", .strictList(.anything), example: "[0, 100]") { node, reader in
                reader.bounds(node).map { .range(minimum: $0.low, maximum: $0.high) }
            },
        "The smallest and the largest length allowed of a string or a list; ~ for no bound.":
            .check("length", .strictList(.anything), example: "[1, 255]") { node, reader in
                guard let bounds = reader.bounds(node) else { return nil }
                let (low, high) = (count(bounds.low), count(bounds.high))
                guard (bounds.low == nil) == (low == nil), (bounds.high == nil) == (high == nil)
                else { return reader.failAtPath(node.place, "a length is a whole number") }
                return .length(minimum: low, maximum: high)
            },
        "The regular expression that a whole string must match.":
            .check("pattern", .text, example: "\"[a-z0-9-]+\"") { node, reader in
                reader.text(node, wanted: "a regular expression in quotes").map { .pattern($0) }
            },
        "The values allowed.":
            .check("one_of", .list(.anything), example: "[open, closed]") { node, reader in
                reader.jsonList(node).map { .oneOf($0) }
            },
        "Whether null is allowed.":
            ConfigKey("null", .boolean, fallback: "\(!PropertyDraft().declaration.checks.contains(.notNull))") {
                (node, draft, reader) in
                if reader.boolean(node) == false { draft.declaration.checks.append(.notNull) }
            },
    ])

    private static let typeNames = ValueCheck.JSONType.allCases.map(\.rawValue)

    private static func count(_ json: [UInt8]?) -> Int? { json.flatMap { Int(String(decoding: $0, as: UTF8.self)) } }
}

extension ConfigKey<PropertyDraft> {
    fileprivate static func relation(_ name: String, _ make: @escaping @Sendable (String) -> Relation) -> ConfigKey {
        ConfigKey(name, .text, example: "User") { node, draft, reader in
            guard let name = reader.text(node, wanted: "the name of a model") else { return }
            draft.declaration.relation = make(name)
            draft.modelPlace = node.place
        }
    }

    /// A check, which is reported if no value could pass it.
    fileprivate static func check(
        _ name: String,
        _ kind: ConfigKind,
        example: String,
        _ read: @escaping @Sendable (Node, inout ConfigReader) -> ValueCheck?
    ) -> ConfigKey {
        ConfigKey(name, kind, example: example) { node, draft, reader in
            guard let check = read(node, &reader) else { return }
            do {
                _ = try ValueChecker([check])
                draft.declaration.checks.append(check)
            } catch { reader.errorAtPath(node.place, "\(error)") }
        }
    }
}

extension ConfigReader {
    /// Two numbers in a list, either of which may be null.
    fileprivate mutating func bounds(_ node: Node) -> (low: [UInt8]?, high: [UInt8]?)? {
        let wanted = "the smallest and the largest, such as [0, 100]; ~ for no bound"
        guard let sequence = node.sequence, sequence.count == 2 else { return failMisfit(node, wanted: wanted) }
        var bounds: [[UInt8]?] = []
        for element in sequence {
            if element.isNothing {
                bounds.append(nil)
            } else if let json = json(element), JSONBody.isNumber(String(decoding: json, as: UTF8.self)) {
                bounds.append(json)
            } else {
                return failMisfit(element, wanted: "a number, or ~ for no bound")
            }
        }
        return (bounds[0], bounds[1])
    }
}
