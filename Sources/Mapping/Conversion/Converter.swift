/// A compiled conversion, from the upstream's JSON to the mapped JSON and back.
///
/// It is pure and does not depend on the host's locale or time zone. Null stays null in both directions, unless a value
/// map declares otherwise. Conversions that only check a value keep its spelling, so the way back restores the
/// upstream's bytes.
public struct Converter: Sendable {
    private let conversion: any Conversion

    /// Compiles a conversion; throws `.invalidConversion` with the reason if the declaration is wrong.
    public init(_ declaration: ConversionDeclaration) throws(MappingError) {
        conversion = try Self.compile(declaration)
    }

    /// Converts one JSON value of the upstream to its mapped form.
    public func forward(_ value: [UInt8]) -> ConversionResult {
        JSONSlice(value).map(conversion.forward) ?? .failed(reason: "JSON is expected")
    }

    /// Converts one mapped JSON value back to the upstream's form.
    public func reverse(_ value: [UInt8]) -> ConversionResult {
        JSONSlice(value).map(conversion.reverse) ?? .failed(reason: "JSON is expected")
    }

    private static func compile(_ declaration: ConversionDeclaration) throws(MappingError) -> any Conversion {
        switch declaration {
        case .named(let name): try builtIn(name)
        case .date(let form): try form.conversion()
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

    /// The names of the conversions that need nothing but a name.
    public static let names: [String] = builtIn.keys.sorted()

    private static let builtIn: [String: any Conversion] = [
        "base64": Base64Conversion(),
        "boolean": BooleanConversion(),
        "date": RFC3339Conversion(),
        "decimal": CheckedConversion.decimal,
        "integer": CheckedConversion.integer,
        "string": CheckedConversion.string,
        "url": CheckedConversion.url,
        "uuid": CheckedConversion.uuid,
    ]

    private static func builtIn(_ name: String) throws(MappingError) -> any Conversion {
        guard let conversion = builtIn[name] else { throw .invalidConversion("there is no conversion \"\(name)\"") }
        return conversion
    }
}

/// One kind of conversion, wrapped by a `Converter`; both directions take valid JSON and return valid JSON.
protocol Conversion: Sendable {
    func forward(_ value: JSONSlice) -> ConversionResult
    func reverse(_ value: JSONSlice) -> ConversionResult
}

extension JSONSlice {
    /// The content of a string; nil for other values and for text that is not Unicode.
    var string: String? { kind == .string ? withBytes(JSONString.text) : nil }

    /// The exact value of a number; nil for other values.
    var number: JSONNumber? { kind == .number ? withBytes(JSONNumber.init) : nil }

    /// A copy of the value's bytes.
    var json: [UInt8] { Array(bytes) }
}

/// The result of a conversion.
public enum ConversionResult: Sendable, Equatable {
    /// The converted JSON.
    case value([UInt8])
    /// JSON of which some parts could not be converted.
    ///
    /// Such elements keep their original value; a value unknown to an enumeration becomes its fallback.
    case partial([UInt8], faults: [ConversionFault])
    /// The conversion does not accept the value. `reason` says for a person what it expects.
    ///
    /// The caller keeps the value and warns.
    case failed(reason: String)
    /// Nothing is written (`one_way`, `back: drop`).
    case dropped
}

/// A part of a value that could not be converted.
public struct ConversionFault: Sendable, Equatable {
    /// The position in the value: a JSON pointer, empty for the value itself.
    public var pointer: String
    /// What was expected, for a person; it never quotes the value.
    public var reason: String
}

extension ConversionResult {
    /// The resulting JSON; nil if the conversion failed or dropped the value.
    var json: [UInt8]? {
        switch self {
        case .value(let json), .partial(let json, _): json
        case .failed, .dropped: nil
        }
    }

    var faults: [ConversionFault] { if case .partial(_, let faults) = self { faults } else { [] } }

    /// A text as a JSON string.
    static func string(_ text: String) -> ConversionResult { .value(JSONString.literal(text)) }
}

/// How a property's value is converted for the `mapped` view, and back.
///
/// `Converter` is the compiled form. The wire view never changes.
public indirect enum ConversionDeclaration: Sendable, Equatable {
    /// A conversion by its name, one of `Converter.names`.
    case named(String)
    /// A point in time in another form than RFC 3339.
    case date(DateForm)
    /// A number written as text with separators, such as `12,345.678`.
    case number(grouping: String, decimal: String)
    /// An enumeration: the upstream's spelling of each case and its mapped name, in the declared order.
    case enumeration([Case], fallback: String? = nil, reverseFallback: String? = nil)
    /// A declared map from JSON values to JSON values.
    case values([Pair], fallback: [UInt8]?, reverseFallback: [UInt8]?)
    /// Each element of a list.
    case arrayOf(ConversionDeclaration)
    /// The value of each member of an object.
    case dictionaryOf(ConversionDeclaration)
    /// Several conversions in sequence; the way back uses the reverse order.
    case chain([ConversionDeclaration])
    /// A conversion without a way back, and what is written back instead.
    case oneWay(ConversionDeclaration, back: Back)

    /// One case of an enumeration.
    public struct Case: Sendable, Equatable {
        /// The upstream's spelling.
        public var wire: String
        /// The mapped name.
        public var mapped: String

        /// Maps one spelling to one name.
        public init(wire: String, mapped: String) { (self.wire, self.mapped) = (wire, mapped) }
    }

    /// One entry of a value map; both values are JSON.
    public struct Pair: Sendable, Equatable {
        /// The upstream's value.
        public var wire: [UInt8]
        /// The mapped value.
        public var mapped: [UInt8]

        /// Maps one value to one value.
        public init(wire: [UInt8], mapped: [UInt8]) { (self.wire, self.mapped) = (wire, mapped) }
    }

    /// What happens to the value of a one-way conversion on the way back.
    public enum Back: String, Sendable, CaseIterable {
        /// The member is left out.
        case drop
        /// The mapped value is written unchanged.
        case raw
        /// The object cannot be written back.
        case fail
    }
}
