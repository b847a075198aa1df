/// One request that reached the upstream, and what was said to it.
struct ReferenceExchange: Sendable {
    let step: Int
    let method: String
    let key: Key
    /// The event during which it arrived.
    var arrival: Int
    /// The state of its principal's objects when it arrived; that of a write, when it was done.
    var revision: Int
    /// The state of its principal's objects when its response was made.
    var made = 0
    /// The program that asked, by a field that the upstream does not look at.
    let client: String
    var status = 0
    /// What was sent, or would have been to a GET without conditions.
    var received: Received?
    var ending = ResponsePlan.Ending.whole
    /// Whether a write to the same path was answered while this was on its way (law 10).
    var invalidation = Invalidation.none
    /// Whether it named an ETag of Larder's own, which never goes upstream.
    let hasOwnTag: Bool
    /// Whether its response has been made up.
    var isMade = false
    /// The event with which its client had the response.
    var endedAt: Int?

    var isOver: Bool { endedAt != nil }

    enum Invalidation: Sendable {
        case none
        /// It was asked for anew for those who had joined what the write invalidated: before that was over, or just after.
        case perhaps
        case certain
    }
}
