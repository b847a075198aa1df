/// A member of an object that is known at another value than before.
public struct MemberChange: Sendable, Equatable {
    /// The value that one answer showed.
    public struct Shown: Sendable, Equatable {
        /// As raw JSON.
        public var value: [UInt8]
        /// By which answer.
        public var observation: Observation

        init(_ member: ObservedMember, by side: ObservationOrder.Side) {
            value = Array(member.value.bytes)
            observation = side.observation
        }
    }

    /// The JSON pointer (RFC 6901) of the member within its object, without the leading slash.
    public var member: String
    /// What was known.
    public var old: Shown
    /// What is known.
    public var new: Shown
    /// Whether the object says that it was modified in between.
    public var isModified: Bool
}
