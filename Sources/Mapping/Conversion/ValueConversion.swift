import Foundation

/// What is declared for a property's value: coercion, checks and conversion, in this order; the way back only converts.
struct ValueConversion: Sendable {
    var converter: Converter?
    private let coercion: Coercion?
    var checker: ValueChecker?
    var refusesNull: Bool
    /// Whether a single bare identity is accepted in place of a list.
    var coerces: Bool
    private let hasAlternatives: Bool

    /// Whether values pass unchanged and unchecked.
    var isTrivial: Bool { converter == nil && coercion == nil && checker == nil && !refusesNull }

    init(_ property: PropertyDeclaration) throws(MappingError) {
        // Null is not left to the checker: the mapped view shows null with a warning of its own.
        let checks = property.checks.filter { $0 != .notNull }
        checker = checks.isEmpty ? nil : try ValueChecker(checks)
        refusesNull = checks.count < property.checks.count
        if let conversion = property.conversion { converter = try Converter(conversion) }
        coerces = property.coerces
        // The checks see the coerced value: with a check for a number, "5" has become one.
        coercion = coerces ? (property.conversion ?? Self.conversion(toTypeIn: checks)).flatMap(Coercion.to) : nil
        hasAlternatives = if case .firstOf = property.conversion { true } else { false }
    }

    /// The value that one of another type stands for; nil if it is not coerced.
    func coerced(_ value: JSONSlice) -> [UInt8]? {
        guard let json = coercion?.coerced(value) else { return nil }
        // One of several conversions may accept the value as it is.
        if hasAlternatives, let converter, case .value = converter.forward(value.json) { return nil }
        return json
    }

    /// Why a value fails its checks, as it is or after coercion; null passes: the mapped view shows it with a warning.
    func fault(in value: JSONSlice) -> String? {
        guard let checker, !value.isNull else { return nil }
        guard let coerced = coerced(value) else { return checker.fault(in: value) }
        return JSONSlice(coerced).flatMap { checker.fault(in: $0) }
    }

    /// The conversion whose values have the first checked type.
    private static func conversion(toTypeIn checks: [ValueCheck]) -> ConversionDeclaration? {
        for case .type(let types) in checks {
            if let conversion = types.lazy.compactMap({ conversions[$0] }).first { return conversion }
        }
        return nil
    }

    private static let conversions: [ValueCheck.JSONType: ConversionDeclaration] = [
        .string: .named("string"), .number: .named("decimal"), .integer: .named("integer"),
        .boolean: .named("boolean"), .array: .arrayOf(.named("string")),
    ]
}

/// Reads values of another type by their plain meaning, for properties with `coerce: true`.
enum Coercion: Sendable {
    case boolean, number, string, list

    /// The coercion to the input type of a conversion; nil if the conversion has none.
    static func to(_ declaration: ConversionDeclaration) -> Coercion? {
        switch declaration {
        case .named("boolean"): .boolean
        case .named("integer"), .named("decimal"), .date(.unixSeconds), .date(.unixMilliseconds): .number
        case .named("string"), .named("url"), .named("uuid"), .named("base64"): .string
        case .values(let pairs, _, _): pairs.allSatisfy(\.isString) ? .string : nil
        case .arrayOf: .list
        case .chain(let links): links.first.flatMap(to)
        case .firstOf(let alternatives): alternatives.lazy.compactMap(to).first
        case .oneWay(let inner, _): to(inner)
        case .named, .date, .number, .dictionaryOf: nil
        }
    }

    /// The coerced value; nil if it already has the right type or has no plain meaning.
    func coerced(_ value: JSONSlice) -> [UInt8]? {
        guard !value.isNull else { return nil }
        switch (self, value.kind) {
        case (.boolean, .string): return value.string.flatMap(Self.boolean).map { Array(($0 ? "true" : "false").utf8) }
        case (.number, .string): return value.string.flatMap { JSONBody.isNumber($0) ? Array($0.utf8) : nil }
        case (.string, .number), (.string, .boolean): return [UInt8(ascii: "\"")] + value.bytes + [UInt8(ascii: "\"")]
        case (.list, let kind) where kind != .array: return [UInt8(ascii: "[")] + value.bytes + [UInt8(ascii: "]")]
        default: return nil
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

/// The compiled checks of one property.
public struct ValueChecker: Sendable {
    /// By check, why a value that is not null fails it, for a person; nil for one that passes.
    private let faults: [@Sendable (JSONSlice) -> String?]
    private let refusesNull: Bool

    /// Compiles the checks; throws if one of them is malformed.
    public init(_ checks: [ValueCheck]) throws(MappingError) {
        faults = try checks.map { (check) throws(MappingError) in try Self.compile(check) }
        refusesNull = checks.contains(.notNull)
    }

    private static func compile(_ check: ValueCheck) throws(MappingError) -> @Sendable (JSONSlice) -> String? {
        switch check {
        case .type(let types):
            guard !types.isEmpty else { throw .invalidCheck("no type is allowed; name at least one") }
            let reason = "of type \(types.map(\.rawValue).joined(separator: " or ")) is expected"
            return { value in types.contains { isOf(value, $0) } ? nil : reason }
        case .range(let minimum, let maximum):
            let (low, high) = (try minimum.map(number), try maximum.map(number))
            if let low, let high, high < low { throw .invalidCheck("the range ends before it begins") }
            return { value in
                guard let number = value.number else { return "a number is expected" }
                if let low, number < low { return "at least \(low.canonicalText) is expected" }
                return high.flatMap { $0 < number ? "at most \($0.canonicalText) is expected" : nil }
            }
        case .length(let minimum, let maximum):
            let (low, high) = (minimum ?? 0, maximum ?? .max)
            guard low >= 0, low <= high else { throw .invalidCheck("the lengths allowed end before they begin") }
            return { value in
                guard let length = length(of: value) else { return "a string or a list is expected" }
                if length < low { return "a length of at least \(low) is expected" }
                return length > high ? "a length of at most \(high) is expected" : nil
            }
        case .pattern(let pattern):
            let search = try PatternSearch(pattern)
            return { value in value.string.map { search.fault(in: $0) } ?? "a string is expected" }
        case .oneOf(let values):
            guard !values.isEmpty else { throw .invalidCheck("no value is allowed; name at least one") }
            let slices = try values.map(JSONSlice.init(declared:))
            let reason = JSONSlice.expectation(of: slices)
            return { value in slices.contains { $0.isEqual(to: value) } ? nil : reason }
        case .notNull: return { _ in nil }
        }
    }

    private static func number(_ json: [UInt8]) throws(MappingError) -> JSONNumber {
        let text = String(decoding: json, as: UTF8.self)
        guard JSONBody.isNumber(text) else { throw .invalidCheck("\"\(text)\" is not a number") }
        return json.withUnsafeBufferPointer { JSONNumber($0) }
    }

    /// Why a value of the upstream fails the checks, for a person and without quoting the value; nil if it passes.
    func fault(in value: JSONSlice) -> String? {
        // Null is the absence of a value: only the null check can reject it.
        if value.isNull { return refusesNull ? "null is not allowed" : nil }
        for fault in faults { if let fault = fault(value) { return fault } }
        return nil
    }

    private static func isOf(_ value: JSONSlice, _ type: ValueCheck.JSONType) -> Bool {
        switch type {
        case .string: value.kind == .string
        case .number: value.kind == .number
        case .integer: value.number?.isWhole ?? false
        case .boolean: value.kind == .boolean
        case .object: value.kind == .object
        case .array: value.kind == .array
        case .null: value.isNull
        }
    }

    /// The number of code points in a string or of elements in a list; nil for other values.
    private static func length(of value: JSONSlice) -> Int? {
        switch value.kind {
        case .string: value.withBytes { JSONString.codePoints($0).count }
        case .array: value.elements.count
        case .object, .number, .boolean, .null: nil
        }
    }
}

/// A regular expression that must match a whole string, with a bound on the effort.
///
/// The engine, ICU's, backtracks: the cost of a pattern such as `(a+)+b` can double with every character. A search that
/// takes too many steps is stopped and counts as a mismatch. The limit is a step count, so the result never depends on
/// the machine.
struct PatternSearch: Sendable {
    private let pattern: String
    private let expression: NSRegularExpression
    /// The longest string that is searched, in bytes.
    private static let longest = 10_000
    /// How many progress reports of the engine a search may take; one report comes every ten thousand steps.
    private static let reportLimit = 20

    init(_ pattern: String) throws(MappingError) {
        // The bare pattern is compiled first: the added parentheses would hide an unmatched one in it.
        guard (try? NSRegularExpression(pattern: pattern)) != nil,
            let expression = try? NSRegularExpression(pattern: "\\A(?:\(pattern))\\z")
        else { throw .invalidCheck("\"\(pattern)\" is not a regular expression") }
        (self.pattern, self.expression) = (pattern, expression)
    }

    /// Why a string does not match, for a person; nil if it matches.
    func fault(in text: String) -> String? {
        guard text.utf8.count <= Self.longest else { return "a string of at most \(Self.longest) bytes is expected" }
        var (isFound, reports) = (false, 0)
        let range = NSRange(location: 0, length: text.utf16.count)
        expression.enumerateMatches(in: text, options: .reportProgress, range: range) { match, _, stop in
            if match != nil { isFound = true } else { reports += 1 }
            if isFound || reports > Self.reportLimit { stop.pointee = true }
        }
        let quickly = reports > Self.reportLimit ? ", and found to be one without a long search," : ""
        return isFound ? nil : "a string of the pattern \(pattern)\(quickly) is expected"
    }
}
