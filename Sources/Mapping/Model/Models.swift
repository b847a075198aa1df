/// The models of one upstream, checked and compiled once.
public struct Models: Sendable {
    /// What was declared, in order.
    public let declarations: [ModelDeclaration]

    /// Checks and compiles.
    public init(_ declarations: [ModelDeclaration]) throws(MappingError) {
        self.declarations = declarations
    }
}
