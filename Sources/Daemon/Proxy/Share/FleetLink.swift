package import Store

/// What this machine shares with the other Larders of its fleet; the room `Fleet` implements it over a server.
///
/// Any thread. All times are in µs of this store's clock, widened by what is not known of the other machines' clocks. No call
/// waits for the server longer than its limit.
package protocol FleetLink: Sendable {
    /// Whether an upstream's responses are shared.
    ///
    /// - Parameter upstream: as in `ProxiedUpstream.storeKey`.
    func shares(_ upstream: String) -> Bool

    /// How far this machine has read the upstream's stream, and applied it; nil while it cannot say, as the server is away.
    func position(in upstream: String) -> FleetPosition?

    /// The position for a client (`Larder-Position`): another machine that has read as far knows all that this one has served.
    ///
    /// It includes what this machine has announced itself, which `position` has only after it is read back. It waits for
    /// announcements under way, 50 ms at most; nil if one is kept because the server is away.
    func clientPosition(in upstream: String) async -> FleetPosition?

    /// Returns once this machine has read the stream up to a position; false if that takes longer than a second.
    func reach(_ position: FleetPosition, in upstream: String) async -> Bool

    /// Looks for a response that another machine has shared, and asks to be the one machine that fetches it if there is none.
    ///
    /// Takes one round trip, 50 ms at most. While another machine fetches it, it waits for that, at most for the upstream's
    /// `coalesce`.
    func find(_ key: SharedKey) async -> FleetFinding

    /// Shares a response after its commit. It returns at once.
    ///
    /// - Parameters:
    ///   - position: how far this machine had read the stream when the request was sent.
    ///   - lifetime: how long it is of use to others: while it is fresh, or may be validated. An hour counts at most.
    func share(_ document: SharedDocument, at key: SharedKey, from position: FleetPosition, lifetime: Duration)

    /// Says that the response that `find` left to this machine will not be shared: machines that wait for it ask the upstream.
    ///
    /// - Parameter isForNow: whether the fetch has failed; otherwise the response may not be shared, and nobody waits for the
    ///   next ones either.
    func release(_ key: SharedKey, isForNow: Bool)

    /// Appends to the upstream's stream. It returns once the server has it, or after 50 ms; then it is kept, and appended when
    /// the server is back.
    ///
    /// - Returns: where it is in the stream; nil if it is kept.
    @discardableResult
    func announce(_ news: FleetNews, in upstream: String) async -> FleetPosition?
}

/// What `FleetLink.find` found.
package enum FleetFinding: Sendable {
    case document(SharedDocument)
    /// Nothing is shared: this machine asks the upstream, then calls `share` or `release`.
    case mine
    /// Nothing is known of the fleet, or nothing is shared under this key: this machine asks the upstream for itself.
    case alone
}

/// A place in an upstream's stream, within the epoch in which the places are comparable.
package struct FleetPosition: Sendable, Hashable, Comparable {
    package var epoch: UInt64
    /// The stream's entry: milliseconds and a number, as the server counts them.
    package var entry: (UInt64, UInt64)

    package init(epoch: UInt64, entry: (UInt64, UInt64)) { (self.epoch, self.entry) = (epoch, entry) }

    package static func == (one: Self, other: Self) -> Bool { one.epoch == other.epoch && one.entry == other.entry }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(epoch)
        hasher.combine(entry.0)
        hasher.combine(entry.1)
    }

    package static func < (one: Self, other: Self) -> Bool {
        (one.epoch, one.entry.0, one.entry.1) < (other.epoch, other.entry.0, other.entry.1)
    }
}

/// A cache key that means the same on every machine of the fleet.
package struct SharedKey: Sendable, Hashable {
    /// As in `ProxiedUpstream.storeKey`.
    package var upstream: String
    package var context: String
    package var url: String
    /// The text that identifies the principal; nil for an anonymous request. It never leaves this process: it seals the response.
    package var credentials: [UInt8]?

    package init(upstream: String, context: String, url: String, credentials: [UInt8]?) {
        (self.upstream, self.context, self.url, self.credentials) = (upstream, context, url, credentials)
    }
}

/// A whole response as another machine has received it.
package struct SharedDocument: Sendable, Equatable {
    package var status: Int
    /// The head's fields as received, as text of field lines.
    package var head: [UInt8]
    package var body: [UInt8]
    /// The values of the request fields that selected it, as in `VarySelection.bytes`.
    package var variant: [UInt8]
    /// When its request was sent, and when it was complete.
    package var sent: Int64
    package var completed: Int64
    /// The objects that it shows.
    package var objects: [ObjectName]

    package init(
        status: Int,
        head: [UInt8],
        body: [UInt8],
        variant: [UInt8],
        sent: Int64,
        completed: Int64,
        objects: [ObjectName]
    ) {
        (self.status, self.head, self.body, self.variant) = (status, head, body, variant)
        (self.sent, self.completed, self.objects) = (sent, completed, objects)
    }
}

/// What one machine announces to all others.
package struct FleetNews: Sendable, Equatable {
    /// What has happened.
    package enum Event: Sendable, Equatable, Codable {
        /// A write is about to be sent; `wrote` with the same number follows. Without it, the write counts as unanswered.
        ///
        /// The number is random, so that it is the only one of the fleet.
        case suspect(UInt64, Invalidation)
        /// A write has ended, and makes this outdated.
        case wrote(UInt64, Invalidation)
        /// A clean, a webhook or a lost object makes this outdated.
        case invalidated(Invalidation)
        /// A response has replaced settled values.
        case observed(SharedObservation)
    }

    package var event: Event
    /// When it began: the request's sending; no value is older than this.
    package var start: Int64
    /// When it was over.
    package var end: Int64

    package init(_ event: Event, start: Int64, end: Int64) { (self.event, self.start, self.end) = (event, start, end) }
}

/// The values of an object that a response of another machine has settled.
package struct SharedObservation: Sendable, Equatable, Codable {
    package var model: String
    package var identity: String
    /// The principal's label; machines of one fleet label a principal alike.
    package var principal: String
    package var context: String
    /// The members as a JSON object, as received; at most 4 KiB.
    package var payload: [UInt8]
    /// Whether it came from a detail, so that no `lag` widens it.
    package var isDetail: Bool

    package init(
        model: String,
        identity: String,
        principal: String,
        context: String,
        payload: [UInt8],
        isDetail: Bool
    ) {
        (self.model, self.identity, self.principal) = (model, identity, principal)
        (self.context, self.payload, self.isDetail) = (context, payload, isDetail)
    }
}

/// What the room `Fleet` gives to the path of a request.
package protocol FleetFollower: Sendable {
    /// Applies what other machines have announced; returns once memory and disk obey all of it.
    ///
    /// The news are in the order of the stream, and no call begins before the last one has returned. What this machine has
    /// announced itself does not come. The same may come twice.
    func apply(_ news: [FleetNews], in upstream: String) async
}
