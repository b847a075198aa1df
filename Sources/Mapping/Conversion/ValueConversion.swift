/// What is done to the value of one property: coercion, checks, conversion, in this order; backwards the conversion alone.
struct ValueConversion: Sendable {
    var converter: Converter?
    /// What a value of another type is turned into first.
    var coercion: Coercion?
    var checker: ValueChecker?
    /// Whether null is not to be expected.
    var refusesNull: Bool
    /// Whether one bare identity may stand for a list of them.
    var coerces: Bool

    /// Whether nothing is done to a value.
    var isTrivial: Bool { converter == nil && coercion == nil && checker == nil && !refusesNull }

    /// Compiles what a property declares of its value.
    init(_ property: PropertyDeclaration) throws(MappingError) {
        // Of null the mapped view has something else to say than that it is left out.
        let checks = property.checks.filter { $0 != .notNull }
        checker = checks.isEmpty ? nil : try ValueChecker(checks)
        refusesNull = checks.count < property.checks.count
        if let conversion = property.conversion { converter = try Converter(conversion) }
        coerces = property.coerces
        // The checks see what the conversion would: "5" for a number that is checked to be one.
        coercion = coerces ? (property.conversion ?? Self.conversion(toTypeIn: checks)).flatMap(Coercion.init) : nil
    }

    /// Why a value fails its checks; nil for one that passes as it is or as it is coerced.
    ///
    /// Null passes: of it the mapped view says that it is unexpected, and shows it.
    func fault(in value: JSONSlice) -> String? {
        guard let checker, !value.isNull else { return nil }
        guard let coerced = coercion?.coerced(value) else { return checker.fault(in: value) }
        return checker.fault(in: coerced)
    }

    /// The conversion whose values are of the type that is checked for.
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
