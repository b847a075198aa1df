import Logging
package import CachePolicy
package import Mapping
package import Store

/// What this machine shares with the other Larders of its fleet; the room `Fleet` implements it over a server.
///
/// Any thread. All times are in µs of this store's clock, widened by what is not known of the other machines' clocks. No call
/// waits for the server longer than its limit.
package protocol FleetLink: Sendable {
    /// Whether an upstream's responses are shared.
    ///
    /// - Parameter upstream: as in `ProxiedUpstream.storeKey`.
    func shares(_ upstream: UpstreamKey) -> Bool

    /// How far this machine has read the upstream's stream, and applied it; nil while it cannot say, as the server is away.
    func position(in upstream: UpstreamKey) -> FleetPosition?

    /// The position for a client (`Larder-Position`): another machine that has read as far knows all that this one has served.
    ///
    /// It includes what this machine has announced itself, which `position` has only after it is read back. It waits for
    /// announcements under way, 50 ms at most; nil if one is kept because the server is away.
    func clientPosition(in upstream: UpstreamKey) async -> FleetPosition?

    /// Since when this machine has read all that was announced: news from before may be lost, with their epoch; nil while it does
    /// not follow the stream.
    func followedSince(_ upstream: UpstreamKey) -> Int64?

    /// Returns once this machine has read the stream up to a position; false if that takes longer than a second.
    func reach(_ position: FleetPosition, in upstream: UpstreamKey) async -> Bool

    /// Looks for a response that another machine has shared, and asks to be the one machine that fetches it if there is none.
    ///
    /// Takes one round trip, 50 ms at most. While another machine fetches it, it waits for that, at most for the upstream's
    /// `coalesce`.
    func find(_ key: SharedKey) async -> FleetFinding

    /// Shares a response after its commit. It returns at once.
    ///
    /// A machine may use it only if it has applied every entry after `position`, and if no later invalidation covers it. A machine
    /// that has just started therefore applies what the stream still has before it uses what was shared before.
    ///
    /// - Parameter position: how far this machine had read the stream when the request was sent.
    func share(_ document: SharedDocument, at key: SharedKey, from position: FleetPosition)

    /// Says that the response that `find` left to this machine will not be shared: machines that wait for it ask the upstream.
    ///
    /// - Parameter isForNow: whether the fetch has failed; otherwise the response may not be shared, and no machine waits for the
    ///   next ones either.
    func release(_ key: SharedKey, isForNow: Bool)

    /// Appends to the upstream's stream, in the order of the calls.
    ///
    /// It returns once the server has it, or after 50 ms; then it is kept, and appended when the server is back. The times within
    /// an `Invalidation` need no conversion: those of the news count.
    ///
    /// - Returns: its entry; nil if the server does not have it yet.
    @discardableResult
    func announce(_ news: FleetNews, in upstream: UpstreamKey) async -> FleetPosition?

    /// Counts what this machine has taken of a rate limit, in the order of the calls, and returns what is left for all machines.
    ///
    /// Takes one round trip, 50 ms at most.
    func spend(_ expense: SharedExpense, of limit: SharedLimit) async -> SharedBudget
}

/// A rate limit that all machines of the fleet spend.
package struct SharedLimit: Sendable, Hashable {
    /// As in `ProxiedUpstream.storeKey`.
    package var upstream: UpstreamKey
    /// What identifies the credential on every machine; it never leaves this process.
    package var credential: [UInt8]
    /// What is limited.
    package var scope: String

    package init(upstream: UpstreamKey, credential: [UInt8], scope: String) {
        (self.upstream, self.credential, self.scope) = (upstream, credential, scope)
    }
}

/// What one machine has taken of a rate limit, and what the upstream has said of it.
package struct SharedExpense: Sendable {
    /// Requests that were sent; negative if more were given back.
    package var requests: Int64
    /// The upstream's words, if a response had any.
    package var stated: Budget.Common?

    package init(requests: Int64 = 0, stated: Budget.Common? = nil) {
        (self.requests, self.stated) = (requests, stated)
    }
}

/// What the server says of a rate limit.
package enum SharedBudget: Sendable, Equatable {
    case known(Budget.Common)
    /// No machine has said what is left.
    case unknown
    /// The server does not say it, or not in time.
    case alone
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
    package var entry: EntryID

    package init(epoch: UInt64, entry: EntryID) { (self.epoch, self.entry) = (epoch, entry) }

    package static func < (one: Self, other: Self) -> Bool { (one.epoch, one.entry) < (other.epoch, other.entry) }
}

/// The id of an entry in a stream: milliseconds and a number, as the server makes them.
package struct EntryID: Sendable, Hashable, Comparable {
    package var milliseconds: UInt64
    package var number: UInt64

    /// Before the first entry of any stream.
    package static let start = EntryID(0)

    package init(_ milliseconds: UInt64, _ number: UInt64 = 0) {
        (self.milliseconds, self.number) = (milliseconds, number)
    }

    /// Reads an id as the server writes it.
    package init?(_ text: String?) {
        guard let text, let dash = text.firstIndex(of: "-"), let milliseconds = UInt64(text[..<dash]),
            let number = UInt64(text[text.index(after: dash)...])
        else { return nil }
        self.init(milliseconds, number)
    }

    package var text: String { "\(milliseconds)-\(number)" }

    package static func < (one: Self, other: Self) -> Bool {
        (one.milliseconds, one.number) < (other.milliseconds, other.number)
    }
}

/// A cache key that means the same on every machine of the fleet.
package struct SharedKey: Sendable, Hashable {
    /// As in `ProxiedUpstream.storeKey`.
    package var upstream: UpstreamKey
    package var context: String
    package var url: String
    /// The text that identifies the principal; nil for an anonymous request.
    ///
    /// It never leaves this process: it seals the response.
    package var credentials: [UInt8]?

    package init(upstream: UpstreamKey, context: String, url: String, credentials: [UInt8]?) {
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
    /// For how many seconds from now on it is of use; the server may forget it then.
    package var lifetime: Int64
    /// The objects that it shows.
    package var objects: [ObjectName]
    /// The entry up to which its publisher had announced all that it shows: whoever has been served it has seen as much.
    package var announced: FleetPosition?
    /// How its publisher has got it; nil if that is not known.
    package var fetch: SharedFetch?

    package init(
        status: Int,
        head: [UInt8],
        body: [UInt8],
        variant: [UInt8],
        sent: Int64,
        completed: Int64,
        lifetime: Int64,
        objects: [ObjectName]
    ) {
        (self.status, self.head, self.body, self.variant) = (status, head, body, variant)
        (self.sent, self.completed, self.lifetime, self.objects) = (sent, completed, lifetime, objects)
    }
}

/// What one machine announces to all others.
package struct FleetNews: Sendable, Equatable {
    /// What has happened.
    package enum Event: Sendable, Equatable {
        /// A write is about to be sent; `wrote` or `withdrawn` with the same number follows. Without it, the write counts as
        /// unanswered.
        ///
        /// The number is random, so that it is the only one of the fleet.
        case suspect(UInt64, Invalidation)
        /// A write has ended, and makes this outdated; of some of the objects, its response has shown the new values.
        case wrote(UInt64, Invalidation, shown: SharedObservation? = nil)
        /// A write has ended without changing anything.
        case withdrawn(UInt64)
        /// A webhook, or a value too large to be announced, makes this outdated.
        case invalidated(Invalidation)
        case cleaned(SharedClean)
        /// A response has shown new values of objects.
        case observed(SharedObservation)
    }

    package var event: Event
    /// When it began: the request's sending; no value is older than this.
    package var start: Int64
    /// When it was over.
    package var end: Int64
    /// The other machine's fetch that has shown values; nil if it is not known.
    package var fetch: SharedFetch?

    package init(_ event: Event, start: Int64, end: Int64, fetch: SharedFetch? = nil) {
        (self.event, self.start, self.end, self.fetch) = (event, start, end, fetch)
    }

    func metadata(at position: FleetPosition?, in upstream: UpstreamKey) -> Logger.Metadata {
        let (kind, observation): (String, SharedObservation?) =
            switch event {
            case .suspect: ("suspect", nil)
            case .wrote(_, _, let shown): ("wrote", shown)
            case .withdrawn: ("withdrawn", nil)
            case .invalidated: ("invalidated", nil)
            case .cleaned: ("cleaned", nil)
            case .observed(let shown): ("observed", shown)
            }
        var metadata: Logger.Metadata = ["kind": "\(kind)", "start": "\(start)", "end": "\(end)"]
        if let position { metadata["position"] = "\(PositionField.text(position, of: upstream.name))" }
        if let observation {
            metadata["url"] = "\(observation.url)"
            metadata["objects"] = "\(observation.objects.map { "\($0.model) \($0.identity)" })"
        }
        return metadata
    }
}

/// A clean of one upstream's data, to be carried out on every machine.
package struct SharedClean: Sendable, Equatable, Codable {
    package var model: String?
    package var identity: String?
    /// The principal's label; machines of one fleet label a principal alike.
    package var principal: String?
    /// Path and query of documents, or how they begin if it ends with `*`.
    package var url: String?
    /// The path of a route, as in the config.
    package var route: String?
    /// In µs.
    package var olderThan: Int64?

    package init() {}

    /// All that it removes of an upstream, unless it names a URL or a route.
    package func filter(of upstream: UpstreamKey) -> CleanFilter {
        CleanFilter(model: model, identity: identity, upstream: upstream, principal: principal, olderThan: olderThan)
    }
}

/// What the room `Fleet` gives to the path of a request.
package protocol FleetFollower: Sendable {
    /// Applies what other machines have announced; returns once memory and disk obey all of it.
    ///
    /// The news are in the order of the stream, and no call begins before the last one for the upstream has returned; the same
    /// news may come again. What this machine has announced itself does not come, but counts for `position` and `reach`.
    ///
    /// - Parameter position: the last entry, up to which this machine will have read the stream then.
    func apply(_ news: [FleetNews], at position: FleetPosition, in upstream: UpstreamKey) async
}
