/// Values of another type than declared, taken for what they plainly mean; only where `coerce: true` says so.
struct Coercion: Sendable {
    private enum Target { case boolean, number, string, list }

    private let target: Target

    /// The coercion towards what a conversion wants first; nil where there is none.
    init?(_ declaration: ConversionDeclaration) {
        switch declaration {
        case .named("boolean"): target = .boolean
        case .named("integer"), .named("decimal"): target = .number
        case .named("string"), .named("url"), .named("uuid"), .named("base64"), .enumeration: target = .string
        case .arrayOf: target = .list
        case .chain(let links):
            guard let first = links.first, let coercion = Coercion(first) else { return nil }
            self = coercion
        case .oneWay(let inner, _):
            guard let coercion = Coercion(inner) else { return nil }
            self = coercion
        case .named, .date, .number, .values, .dictionaryOf: return nil
        }
    }

    /// The value as it is meant; nil where it is of the wanted type already, or means nothing.
    func coerced(_ value: JSONSlice) -> [UInt8]? {
        guard !value.isNull else { return nil }
        switch target {
        case .boolean:
            return value.string.flatMap(Self.boolean).map { Array(($0 ? "true" : "false").utf8) }
        case .number:
            guard let text = value.string, Reference.isNumber(text) else { return nil }
            return Array(text.utf8)
        case .string:
            guard value.kind == .number || value.kind == .word else { return nil }
            return [UInt8(ascii: "\"")] + value.bytes + [UInt8(ascii: "\"")]
        case .list:
            guard value.kind != .array else { return nil }
            return [UInt8(ascii: "[")] + value.bytes + [UInt8(ascii: "]")]
        }
    }

    /// The words for true and false that are met in the wild, whatever their case.
    private static func boolean(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "t", "yes", "y", "on", "1": true
        case "false", "f", "no", "n", "off", "0": false
        default: nil
        }
    }
}
