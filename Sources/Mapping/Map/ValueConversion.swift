/// What is done to the value of one property: coercion, checks, conversion, in this order; backwards the conversion alone.
struct ValueConversion: Sendable {
    /// The conversion proper; steps over lists and objects are taken here, so that a warning can name the element.
    indirect enum Form: Sendable {
        case literal
        case transform(Transformer)
        case each(Form, Coercion?)
        case eachMember(Form, Coercion?)
    }

    var form: Form
    /// What a value of another type is turned into first.
    var coercion: Coercion?
    var checker: ValueChecker?
    /// Whether null is not to be expected.
    var refusesNull: Bool
    /// Whether one bare identity may stand for a list of them.
    var coerces: Bool

    /// Whether nothing is done to a value.
    var isTrivial: Bool {
        if case .literal = form { return coercion == nil && checker == nil && !refusesNull }
        return false
    }

    /// Compiles what a property declares of its value.
    init(_ property: PropertyDeclaration) throws(MappingError) {
        let checks = property.checks.filter { $0 != .notNull }
        checker = checks.isEmpty ? nil : try ValueChecker(checks)
        refusesNull = checks.count < property.checks.count
        form = .literal
        if let transform = property.transform { form = try Self.form(transform, coerces: property.coerces) }
        coerces = property.coerces
        coercion = property.coerces ? Coercion(property.transform, checks) : nil
    }

    private static func form(_ transform: TransformDeclaration, coerces: Bool) throws(MappingError) -> Form {
        switch transform {
        case .arrayOf(let element):
            .each(try form(element, coerces: coerces), coerces ? Coercion(element, []) : nil)
        case .dictionaryOf(let value):
            .eachMember(try form(value, coerces: coerces), coerces ? Coercion(value, []) : nil)
        default:
            .transform(try Transformer(transform))
        }
    }
}

/// An opt-in change of type by which nothing is lost.
enum Coercion: Sendable {
    case string, number, integer, boolean, list

    /// What values are turned into so that the conversion, else the check of their type, accepts them.
    init?(_ transform: TransformDeclaration?, _ checks: [ValueCheck]) {
        if let transform {
            guard let coercion = Self.target(of: transform) else { return nil }
            self = coercion
            return
        }
        for case .type(let types) in checks {
            for type in types {
                switch type {
                case .string: self = .string
                case .number: self = .number
                case .integer: self = .integer
                case .boolean: self = .boolean
                case .array: self = .list
                case .object, .null: continue
                }
                return
            }
        }
        return nil
    }

    private static func target(of transform: TransformDeclaration) -> Coercion? {
        switch transform {
        case .named("integer"): .integer
        case .named("decimal"): .number
        case .named("boolean"): .boolean
        case .named("string"), .named("url"), .named("uuid"), .named("base64"), .named("date"): .string
        case .date(.pattern), .number, .enumeration: .string
        case .arrayOf: .list
        case .chain(let steps): steps.first.flatMap(target)
        case .oneWay(let inner, _): target(of: inner)
        case .named, .date, .values, .dictionaryOf: nil
        }
    }

    /// The value in the other type; nil if it has it already, is null, or cannot be turned into it without loss.
    func apply(to value: JSONSlice) -> [UInt8]? {
        guard !value.isNull else { return nil }
        switch self {
        case .list:
            return value.kind == .array ? nil : [UInt8(ascii: "[")] + value.bytes + [UInt8(ascii: "]")]
        case .string:
            guard value.kind == .number || value.kind == .word else { return nil }
            return [UInt8(ascii: "\"")] + value.bytes + [UInt8(ascii: "\"")]
        case .number:
            return number(in: value)
        case .integer:
            return number(in: value).flatMap { $0.allSatisfy { $0 != 0x2E && $0 | 0x20 != 0x65 } ? $0 : nil }
        case .boolean:
            return boolean(in: value).map { Array(($0 ? "true" : "false").utf8) }
        }
    }

    /// The number that a string spells as JSON would.
    private func number(in value: JSONSlice) -> [UInt8]? {
        guard value.kind == .string else { return nil }
        let content = Array(value.bytes.dropFirst().dropLast())
        let isNumber = content.withUnsafeBufferPointer {
            !$0.isEmpty && JSONScanner($0, allowsReferences: true).scanNumber(0) == $0.count
        }
        return isNumber ? content : nil
    }

    private func boolean(in value: JSONSlice) -> Bool? {
        let text = String(decoding: value.bytes, as: UTF8.self).lowercased()
        switch value.kind == .string ? String(text.dropFirst().dropLast()) : text {
        case "true" where value.kind == .string, "t", "yes", "y", "1": return true
        case "false" where value.kind == .string, "f", "no", "n", "0": return false
        default: return nil
        }
    }
}
