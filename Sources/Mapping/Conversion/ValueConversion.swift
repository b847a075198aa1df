/// Everything declared for the value of one property: coercion, checks and conversion, applied in this order.
///
/// The way back applies only the conversion.
struct ValueConversion: Sendable {
    var converter: Converter?
    /// Converts a value of another type before the checks.
    var coercion: Coercion?
    var checker: ValueChecker?
    /// Whether null is unexpected.
    var refusesNull: Bool
    /// Whether a single bare identity is accepted in place of a list.
    var coerces: Bool

    /// Whether values pass unchanged and unchecked.
    var isTrivial: Bool { converter == nil && coercion == nil && checker == nil && !refusesNull }

    /// Compiles the declarations of a property.
    init(_ property: PropertyDeclaration) throws(MappingError) {
        // Null is not left to the checker: the mapped view shows null with a warning of its own.
        let checks = property.checks.filter { $0 != .notNull }
        checker = checks.isEmpty ? nil : try ValueChecker(checks)
        refusesNull = checks.count < property.checks.count
        if let conversion = property.conversion { converter = try Converter(conversion) }
        coerces = property.coerces
        // The checks see the coerced value: with a check for a number, "5" has become one.
        coercion = coerces ? (property.conversion ?? Self.conversion(toTypeIn: checks)).flatMap(Coercion.init) : nil
    }

    /// Why a value fails its checks; nil for one that passes, as it is or after coercion.
    ///
    /// Null passes: the mapped view shows it and warns that it is unexpected.
    func fault(in value: JSONSlice) -> String? {
        guard let checker, !value.isNull else { return nil }
        guard let coerced = coercion?.coerced(value) else { return checker.fault(in: value) }
        return checker.fault(in: coerced)
    }

    /// The conversion whose values have the first checked type.
    private static func conversion(toTypeIn checks: [ValueCheck]) -> ConversionDeclaration? {
        for case .type(let types) in checks {
            for type in types {
                switch type {
                case .string: return .named("string")
                case .number: return .named("decimal")
                case .integer: return .named("integer")
                case .boolean: return .named("boolean")
                case .array: return .arrayOf(.named("string"))
                case .object, .null: continue
                }
            }
        }
        return nil
    }
}

/// Reads values of another type by their plain meaning, for properties with `coerce: true`.
struct Coercion: Sendable {
    private enum Target { case boolean, number, string, list }

    private let target: Target

    /// The coercion to the input type of a conversion; nil if the conversion has none.
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

    /// The coerced value; nil if it already has the right type or has no plain meaning.
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

    /// Common words for true and false, in any case.
    private static func boolean(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "t", "yes", "y", "on", "1": true
        case "false", "f", "no", "n", "off", "0": false
        default: nil
        }
    }
}
