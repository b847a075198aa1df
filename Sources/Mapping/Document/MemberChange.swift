/// A member whose settled value is another one than before.
public struct MemberChange: Sendable, Equatable {
    /// The JSON pointer (RFC 6901) of the member within its object, without the leading slash.
    public var member: String
    /// The value that was settled, as raw JSON.
    public var old: [UInt8]
    /// The value that is settled now, as raw JSON.
    public var new: [UInt8]
    /// By which response.
    public var observation: Observation
}
