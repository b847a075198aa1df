/// One thing that is demanded of a property's value, in the upstream's form.
public enum ValueCheck: Sendable, Equatable {
    /// The JSON types allowed.
    public enum JSONType: String, Sendable, CaseIterable {
        case string, number, integer, boolean, object, array, null
    }

    /// Of one of these types; null is always allowed unless `notNull` stands beside it.
    case type([JSONType])
    /// A number within bounds (inclusive), each an exact JSON number.
    case range(minimum: [UInt8]?, maximum: [UInt8]?)
    /// A string of so many code points, or an array of so many elements (inclusive).
    case length(minimum: Int?, maximum: Int?)
    /// A string that the regular expression matches as a whole.
    case pattern(String)
    /// Equal to one of these JSON values.
    case oneOf([[UInt8]])
    /// Not null.
    case notNull
}
