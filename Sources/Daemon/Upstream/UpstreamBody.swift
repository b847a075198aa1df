/// A request's body on its way upstream, which arrives while it is being sent.
package protocol UpstreamBody: AnyObject, Sendable {
    /// The length that the client declared; nil when it comes in chunks.
    var declaredLength: Int? { get }

    /// Whether all of it has arrived.
    var isComplete: Bool { get }

    /// The next bytes, at most `max` of them.
    func take(max: Int) -> UpstreamBodyPart

    /// Calls back once there may be more to take after `.pending`; perhaps at once, on any thread.
    func onAvailable(_ notify: @escaping @Sendable () -> Void)
}

/// What a request's body has to give at one moment.
package enum UpstreamBodyPart: Sendable {
    case bytes([UInt8])
    /// Nothing now; `onAvailable` tells when to ask again.
    case pending
    /// Nothing more: the body is whole.
    case end
    /// The body will never be whole: the client left or broke off.
    case failed(String)
}
