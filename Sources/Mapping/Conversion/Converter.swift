/// A declared conversion compiled once: from the upstream's JSON to the mapped JSON, and back.
///
/// Pure and independent of the host's locale and time zone. Null stays null in both directions, unless a value map says
/// otherwise. What a conversion only checks keeps its spelling, so that the way back gives the upstream's bytes.
public struct Converter: Sendable {
    private let conversion: any Conversion

    /// Compiles a conversion; the error, `.invalidConversion`, says what is wrong with its declaration.
    public init(_ declaration: ConversionDeclaration) throws(MappingError) {
        conversion = try Self.compile(declaration)
    }

    /// The mapped form of one JSON value of the upstream's.
    public func forward(_ value: [UInt8]) -> ConversionResult {
        JSONSlice(value).map(conversion.forward) ?? .failed(reason: "JSON is expected")
    }

    /// The upstream's form of one mapped JSON value.
    public func reverse(_ value: [UInt8]) -> ConversionResult {
        JSONSlice(value).map(conversion.reverse) ?? .failed(reason: "JSON is expected")
    }

    private static func compile(_ declaration: ConversionDeclaration) throws(MappingError) -> any Conversion {
        switch declaration {
        case .named(let name): try named(name)
        case .date(.unixSeconds): UnixTimeConversion(digitsBelowSecond: 0)
        case .date(.unixMilliseconds): UnixTimeConversion(digitsBelowSecond: 3)
        case .date(.pattern(let pattern, let zone)): try DatePatternConversion(pattern, zone: zone)
        case .number(let grouping, let decimal): try NumberTextConversion(grouping: grouping, decimal: decimal)
        case .enumeration(let cases, let fallback, let reverseFallback):
            try ValueMapConversion(cases, fallback: fallback, reverseFallback: reverseFallback)
        case .values(let pairs, let fallback, let reverseFallback):
            try ValueMapConversion(pairs, fallback: fallback, reverseFallback: reverseFallback)
        case .arrayOf(let element): ListConversion(element: try compile(element))
        case .dictionaryOf(let value): DictionaryConversion(value: try compile(value))
        case .chain(let links): try ChainConversion(links.map { (link) throws(MappingError) in try compile(link) })
        case .oneWay(let inner, let back): OneWayConversion(inner: try compile(inner), back: back)
        }
    }

    private static func named(_ name: String) throws(MappingError) -> any Conversion {
        switch name {
        case "base64": return Base64Conversion()
        case "boolean": return BooleanConversion()
        case "date": return RFC3339Conversion()
        case "decimal": return CheckedConversion.decimal
        case "integer": return CheckedConversion.integer
        case "string": return CheckedConversion.string
        case "url": return CheckedConversion.url
        case "uuid": return CheckedConversion.uuid
        default:
            throw .invalidConversion("there is no conversion \"\(name)\"")
        }
    }
}

/// One kind of conversion, of which a `Converter` is made; both directions get valid JSON and give valid JSON.
protocol Conversion: Sendable {
    func forward(_ value: JSONSlice) -> ConversionResult
    func reverse(_ value: JSONSlice) -> ConversionResult
}

extension JSONSlice {
    /// The content of a string; nil for other values and for text that is not Unicode.
    var string: String? { kind == .string ? withBytes(JSONString.text) : nil }

    /// The exact value of a number; nil for other values.
    var number: JSONNumber? { kind == .number ? withBytes(JSONNumber.init) : nil }

    /// The value's own bytes.
    var json: [UInt8] { Array(bytes) }
}

/// What came of a conversion.
public enum ConversionResult: Sendable, Equatable {
    /// JSON.
    case value([UInt8])
    /// JSON, though not all of it could be converted: elements that could not are as they were, and a value that is
    /// unknown to an enumeration is its fallback.
    case partial([UInt8], faults: [ConversionFault])
    /// The value is none that the conversion knows; `reason` says what it expects, for a person.
    ///
    /// The caller keeps the value and warns.
    case failed(reason: String)
    /// Nothing is written (`one_way`, `back: drop`).
    case dropped
}

/// Something within a value that could not be converted.
public struct ConversionFault: Sendable, Equatable {
    /// Where in the value: a JSON pointer, empty for the value itself.
    public var pointer: String
    /// What was expected, for a person; never quotes the value.
    public var reason: String

    /// Describes a fault.
    public init(pointer: String, reason: String) {
        self.pointer = pointer
        self.reason = reason
    }
}

extension ConversionResult {
    /// The JSON that it leaves; nil where there is none.
    var json: [UInt8]? {
        switch self {
        case .value(let json), .partial(let json, _): json
        case .failed, .dropped: nil
        }
    }

    var faults: [ConversionFault] {
        if case .partial(_, let faults) = self { faults } else { [] }
    }

    /// A text as JSON.
    static func string(_ text: String) -> ConversionResult {
        var json: [UInt8] = []
        JSONString.append(text, to: &json)
        return .value(json)
    }
}
