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
        public init(wire: String, mapped: String) {
            self.wire = wire
            self.mapped = mapped
        }
    }

    /// One entry of a value map; both values are JSON.
    public struct Pair: Sendable, Equatable {
        /// The upstream's value.
        public var wire: [UInt8]
        /// The mapped value.
        public var mapped: [UInt8]

        /// Maps one value to one value.
        public init(wire: [UInt8], mapped: [UInt8]) {
            self.wire = wire
            self.mapped = mapped
        }
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
