import HTTPSemantics
import Mapping
import Yams

/// How `as:` spells the conversions that need more than a name.
enum ConversionForms {
    static let all = ["enum", "values", "date", "number", "list_of", "dictionary_of", "chain", "one_way"]

    static let wanted =
        "a conversion: \(Converter.names.joined(separator: ", ")), a form with \(all.joined(separator: ", ")), or a list "
        + "of conversions, of which the first that fits counts"
}

extension ConfigReader {
    /// Reads the value of `as:`; below `one_way`, a map of values needs no way back.
    mutating func conversion(_ node: Node, isOneWay: Bool = false) -> ConversionDeclaration? {
        let read: ConversionDeclaration? =
            if node.sequence != nil {
                conversions(node, isOneWay: isOneWay).map { .firstOf($0) }
            } else if node.mapping != nil {
                longConversion(node, isOneWay: isOneWay)
            } else {
                namedConversion(node)
            }
        guard let declaration = read else { return nil }
        do {
            _ = try Converter(isOneWay ? .oneWay(declaration, back: .drop) : declaration)
            return declaration
        } catch { return failAtPath(node.place, error.description) }
    }

    private mutating func conversions(_ node: Node, isOneWay: Bool) -> [ConversionDeclaration]? {
        guard let nodes = node.sequence else { return failMisfit(node, wanted: "a list of conversions") }
        let conversions = nodes.compactMap { conversion($0, isOneWay: isOneWay) }
        return conversions.count == nodes.count ? conversions : nil
    }

    private mutating func namedConversion(_ node: Node) -> ConversionDeclaration? {
        guard let name = text(node, wanted: ConversionForms.wanted) else { return nil }
        guard Converter.names.contains(name) else {
            let meant = Suggestion.word(for: name, among: Converter.names + ConversionForms.all)
            return failAtPath(
                node.place,
                "there is no conversion \"\(name)\"; "
                    + (meant.map { "did you mean \"\($0)\"?" }
                        ?? "write \(ConversionForms.wanted.dropFirst("a conversion: ".count))")
            )
        }
        return .named(name)
    }

    private mutating func longConversion(_ node: Node, isOneWay: Bool) -> ConversionDeclaration? {
        let companions = ["default", "reverse_default", "back"]
        guard let keys = mapping(node, keys: ConversionForms.all + companions, wanted: ConversionForms.wanted)
        else { return nil }
        let forms = ConversionForms.all.filter { keys[$0] != nil }
        guard forms.count == 1, let form = forms.first, let value = keys[form] else {
            if keys.isEmpty || forms.count > 1 || !forms.isEmpty {
                errorAtPath(node.place, "exactly one conversion belongs here; write \(ConversionForms.wanted)")
            }
            return nil
        }
        for companion in companions where keys[companion] != nil {
            let isAllowed = companion == "back" ? form == "one_way" : form == "enum" || form == "values"
            if !isAllowed {
                errorAtPath(keys[companion]?.place, "\"\(companion)\" has no effect with \"\(form)\"; remove it")
            }
        }
        return under(form) { $0.conversion(form, value, keys, isOneWay: isOneWay) }
    }

    private mutating func conversion(_ form: String, _ value: Node, _ keys: [String: Node], isOneWay: Bool)
        -> ConversionDeclaration?
    {
        switch form {
        case "enum": return enumeration(value, keys)
        case "values":
            guard let pairs = values(value) else { return nil }
            let (usual, reverse) = (keys["default"].flatMap { json($0) }, keys["reverse_default"].flatMap { json($0) })
            return .values(pairs, fallback: usual, reverseFallback: reverse)
        case "date": return dateForm(value).map { .date($0) }
        case "number":
            let wanted = "{ grouping: \",\", decimal: \".\" }"
            guard let parts = mapping(value, keys: ["grouping", "decimal"], wanted: wanted) else { return nil }
            return .number(
                grouping: parts["grouping"].flatMap { text($0, wanted: "a separator") } ?? "",
                decimal: parts["decimal"].flatMap { text($0, wanted: "a separator") } ?? "."
            )
        case "list_of": return conversion(value, isOneWay: isOneWay).map { .arrayOf($0) }
        case "dictionary_of": return conversion(value, isOneWay: isOneWay).map { .dictionaryOf($0) }
        case "chain": return conversions(value, isOneWay: isOneWay).map { .chain($0) }
        default:
            let words = ConversionDeclaration.Back.allCases.map(\.rawValue)
            let back = keys["back"].flatMap { choice($0, of: words) }.flatMap(ConversionDeclaration.Back.init)
            return conversion(value, isOneWay: true).map { .oneWay($0, back: back ?? .drop) }
        }
    }

    private static func json(_ text: String) -> [UInt8] { Array(JSONText.string(text).text.utf8) }

    private mutating func dateForm(_ node: Node) -> ConversionDeclaration.DateForm? {
        guard node.mapping != nil else {
            let forms = ConversionDeclaration.DateForm.words
            let words = forms.map(\.key)
            if let text = node.scalar?.string, !words.contains(text) {
                return failAtPath(
                    node.place,
                    Suggestion.word(for: text, among: ["date"]) != nil
                        ? "\"\(text)\" is what \"as: date\" reads by itself; write that"
                        : "\"\(text)\" is not one of \(words.joined(separator: ", ")); a pattern is written { format: \"yyyy-MM-dd\" }"
                )
            }
            let word = choice(node, of: words)
            return forms.first { $0.key == word }?.value
        }
        guard let keys = mapping(node, keys: ["format", "zone"], wanted: "{ format: \"yyyy-MM-dd\", zone: UTC }")
        else { return nil }
        guard let format = keys["format"] else {
            return failAtPath(node.place, "\"format\" is missing; write { format: \"yyyy-MM-dd\", zone: UTC }")
        }
        let zone = keys["zone"].flatMap { text($0, wanted: "a time zone such as UTC") } ?? "UTC"
        return text(format, wanted: "a date pattern").map { .pattern($0, zone: zone) }
    }

    /// A map of strings; their names are strings, too, unless one of them is a number, true or false.
    private mutating func enumeration(_ node: Node, _ keys: [String: Node]) -> ConversionDeclaration? {
        let names = node.mapping?.map(\.value) ?? []
        let isTyped = names.contains { $0.scalar != nil && !$0.isNothing && json($0)?.first != UInt8(ascii: "\"") }
        let pairs: [ConversionDeclaration.Pair]
        if node.sequence != nil {
            guard let names = texts(node, wanted: "a list of spellings") else { return nil }
            for (index, name) in names.enumerated() where names[..<index].contains(where: { $0.text == name.text }) {
                return failAtPath(name.place, "\"\(name.text)\" is listed twice")
            }
            pairs = names.map { .init(wire: Self.json($0.text), mapped: Self.json($0.text)) }
        } else {
            guard let named = self.pairs(node, wanted: "the upstream's spellings, each with a name") else { return nil }
            if named.isEmpty { return failAtPath(node.place, "it has no case; write { open: open, closed: done }") }
            pairs = named.compactMap { wire, _, value in
                name(value, isTyped: isTyped).map { .init(wire: Self.json(wire), mapped: $0) }
            }
        }
        return .values(
            pairs,
            fallback: keys["default"].flatMap { $0.isNothing ? Array("null".utf8) : name($0, isTyped: isTyped) },
            reverseFallback: keys["reverse_default"].flatMap { name($0, isTyped: false) }
        )
    }

    private mutating func name(_ node: Node, isTyped: Bool) -> [UInt8]? {
        isTyped ? json(node) : text(node, wanted: "a name").map(Self.json)
    }

    /// A value map: keys that look like numbers, true, false or null are read as such.
    private mutating func values(_ node: Node) -> [ConversionDeclaration.Pair]? {
        guard let mapping = node.mapping, !mapping.isEmpty else {
            return failMisfit(node, wanted: "the upstream's values, each with another, such as { 1: one, 2: two }")
        }
        return mapping.compactMap { key, value in
            guard let wire = json(key), let mapped = json(value) else { return nil }
            return .init(wire: wire, mapped: mapped)
        }
    }
}
