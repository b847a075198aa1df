/// A mistake in the path pattern of a route, or between two routes.
public struct RouteError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong and what to write instead, for the person who wrote the route.
    public let message: String
    /// The index of the declaration that is wrong; nil when only one pattern was looked at.
    public let index: Int?

    init(_ message: String, index: Int? = nil) {
        self.message = message
        self.index = index
    }

    /// The message.
    public var description: String { message }
}
