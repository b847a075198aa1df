/// A declaration that is wrong, and where.
public struct ModelMistake: Sendable, Hashable {
    /// The index of the model's declaration.
    public var model: Int
    /// The index of the property within it, if one is to blame.
    public var property: Int?
    /// What is wrong.
    public var error: MappingError

    /// Describes a mistake.
    public init(model: Int, property: Int? = nil, error: MappingError) {
        self.model = model
        self.property = property
        self.error = error
    }
}
