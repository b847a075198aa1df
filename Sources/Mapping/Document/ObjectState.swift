/// What is known of one object: the contributions that together hold each declared member at its newest.
public struct ObjectState: Sendable, Equatable {
    /// How many contributions are kept at most.
    public static let maximumContributions = 16

    /// Newest first; those whose every declared member is known newer are dropped.
    public var contributions: [Contribution]

    /// The state as it was stored.
    public init(contributions: [Contribution] = []) {
        self.contributions = contributions
    }

    /// Takes in what one answer shows of the object, once or several times; all must have one observation sequence.
    ///
    /// - Parameters:
    ///   - lag: microseconds for which a list does not override a detail or a write.
    /// - Returns: whether the newest value of some declared member changed, by JSON's equality.
    public mutating func merge(_ new: [Contribution], model: String, models: Models, lag: Int64) -> Bool {
        contributions.insert(contentsOf: new, at: 0)
        return true
    }

    /// Takes in one contribution. What one answer shows several times is better given at once.
    public mutating func merge(_ new: Contribution, model: String, models: Models, lag: Int64) -> Bool {
        merge([new], model: model, models: models, lag: lag)
    }

    /// The object with every declared member at its newest, in payload form; nil when the first contribution alone says it all.
    public func mergedPayload(model: String, models: Models, lag: Int64) -> [UInt8]? { nil }

    /// The newest value of a member, given as a property's name or a key path.
    public func newest(_ member: String, model: String, models: Models, lag: Int64) -> NewestMember { .unknown }

    /// The newest known JSON of the object for people: references shown as bare identities. Nil when nothing is known.
    public func plainJSON(model: String, models: Models, lag: Int64) -> [UInt8]? { nil }
}

/// What is known of one member of an object.
public enum NewestMember: Sendable, Equatable {
    /// Its newest value as raw JSON; objects in it are reference literals.
    case value([UInt8])
    /// No answer showed it.
    case unknown
    /// Answers that overlapped in time disagree: each document keeps its own literal.
    case disputed
}
