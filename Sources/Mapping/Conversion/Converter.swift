import Basics

/// A compiled conversion, from the upstream's JSON to the mapped JSON and back.
///
/// It is pure and does not depend on the host's locale or time zone. In both directions, null stays null, unless a
/// value map declares otherwise, and a value that does not fit stays as it is, with a fault. This holds for the elements
/// of lists and the members of dictionaries, too. Conversions that only check a value keep its spelling, so the way back
/// restores the upstream's bytes.
public struct Converter: Sendable {
    private let conversion: CompiledConversion

    /// Compiles a conversion; throws `.invalidConversion` with the reason if the declaration is wrong.
    public init(_ declaration: ConversionDeclaration) throws(MappingError) {
        conversion = try CompiledConversion(declaration)
    }

    /// Converts one JSON value of the upstream to its mapped form.
    func forward(_ value: [UInt8]) -> ConversionResult { convert(value, ConversionRun(isReverse: false)) }

    /// Converts one mapped JSON value back to the upstream's form.
    ///
    /// - Parameter unconverted: the pointers of the faults by which `forward` kept parts of the value as they were.
    func reverse(_ value: [UInt8], unconverted: Set<String> = []) -> ConversionResult {
        convert(value, ConversionRun(isReverse: true, unconverted: unconverted))
    }

    private func convert(_ value: [UInt8], _ run: consuming ConversionRun) -> ConversionResult {
        let json = JSONSlice(value).map { run.convert($0, conversion) } ?? value
        if let refusal = run.refusal { return .refused(reason: refusal) }
        guard let json else { return .dropped }
        return run.faults.isEmpty ? .value(json) : .partial(json, faults: run.faults)
    }

    /// The names of the conversions that need nothing but a name.
    public static let names: [String] = Conversion.builtIn.keys.sorted()
}

/// A conversion of single values; both directions take valid JSON and return valid JSON.
struct Conversion: Sendable {
    typealias Direction = @Sendable (JSONSlice) throws(Misfit) -> [UInt8]

    var forward: Direction
    var reverse: Direction
    /// Whether it converts null; null otherwise stays null.
    var convertsNull = false
}

/// Why a conversion does not accept a value.
struct Misfit: Error {
    /// What is expected, for a person.
    var reason: String
    /// The JSON that takes the place of the value; nil if the value stays.
    var substitute: [UInt8]?

    init(_ reason: String, substitute: [UInt8]? = nil) { (self.reason, self.substitute) = (reason, substitute) }
}

extension JSONSlice {
    /// The content of a string; nil for other values and for text that is not Unicode.
    var string: String? { kind == .string ? withBytes(JSONString.text) : nil }

    /// The exact value of a number; nil for other values.
    var number: JSONNumber? { kind == .number ? withBytes(JSONNumber.init) : nil }

    var json: [UInt8] { Array(bytes) }

    /// The point in time that a string in RFC 3339 names.
    var timestamp: Timestamp? { string.flatMap { Timestamp(Array($0.utf8)) } }

    /// The value of a JSON text in a declaration.
    init(declared json: [UInt8]) throws(MappingError) {
        guard !JSONBody.isMalformed(json), let slice = JSONSlice(json) else {
            throw .invalidConversion("\"\(String(decoding: json, as: UTF8.self))\" is not JSON")
        }
        self = slice
    }

    /// The value as text, for messages about a config.
    var spelled: String { String(decoding: bytes, as: UTF8.self) }

    /// A sentence that names the allowed values, or the first of many.
    static func expectation(of values: [JSONSlice]) -> String {
        let shown = values.prefix(8).map(\.spelled).joined(separator: ", ")
        return "one of \(shown)\(values.count > 8 ? ", …" : "") is expected"
    }
}

/// What became of one value.
enum ConversionResult: Sendable, Equatable {
    case value([UInt8])
    /// JSON of which some parts do not fit, or the whole.
    case partial([UInt8], faults: [ConversionFault])
    /// Nothing is written (`one_way`, `back: drop`).
    case dropped
    /// The value must not be written back (`one_way`, `back: fail`).
    case refused(reason: String)

    var json: [UInt8]? {
        switch self {
        case .value(let json), .partial(let json, _): json
        case .dropped, .refused: nil
        }
    }

    var faults: [ConversionFault] { if case .partial(_, let faults) = self { faults } else { [] } }
}

/// A value, or a part of one, that does not fit.
struct ConversionFault: Sendable, Equatable {
    /// The position in the value: a JSON pointer, empty for the value itself.
    var pointer: String
    /// What was expected, for a person; it never quotes the value.
    var reason: String
    var value: [UInt8]
    /// Whether it stays as it is; otherwise the default of a value map takes its place.
    var isKept: Bool
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
    /// A declared map from JSON values to JSON values, in the declared order; the fallbacks are for all others.
    case values([Pair], fallback: [UInt8]? = nil, reverseFallback: [UInt8]? = nil)
    case arrayOf(ConversionDeclaration)
    case dictionaryOf(ConversionDeclaration)
    /// Several conversions in sequence; the way back uses the reverse order.
    case chain([ConversionDeclaration])
    /// The first of several conversions that accepts the value, in both directions.
    case firstOf([ConversionDeclaration])
    /// A conversion without a way back, and what is written back instead.
    case oneWay(ConversionDeclaration, back: Back)

    /// One entry of a value map; both values are JSON.
    public struct Pair: Sendable, Equatable {
        public var wire: [UInt8]
        public var mapped: [UInt8]

        /// Both values as JSON.
        public init(wire: [UInt8], mapped: [UInt8]) { (self.wire, self.mapped) = (wire, mapped) }

        /// Whether the upstream's value is a string.
        public var isString: Bool { wire.first == UInt8(ascii: "\"") }
    }

    /// What the way back does with a mapped value that has no upstream value.
    public enum Back: String, Sendable, CaseIterable {
        /// The member is left out.
        case drop
        /// The mapped value is written unchanged.
        case raw
        /// The object cannot be written back.
        case fail
    }
}
