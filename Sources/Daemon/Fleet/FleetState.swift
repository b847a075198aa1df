import Logging
import Proxy
import Settings
import Store
import Synchronization

/// What the threads of this room and the callers of `FleetLink` share; what changes is behind one lock, held for moments only.
final class FleetState: Sendable {
    struct Content: Sendable {
        /// The server that the reader is connected to; nil while it is not.
        var server: String?
        var mustReconnect = false
        /// Whether commands reach the server.
        var isSending = false
        var isStopped = false
        var clock: FleetClock?
        /// The server that it is the clock of.
        var clockServer: String?
        var upstreams: [UpstreamKey: Upstream] = [:]
        var queue = NewsQueue()
        var figures = FleetFigures()
        /// Whether the log says already that something does not open.
        var hasLoggedUnopened = false

        /// The epoch and the clock for what is written now; nil while nothing can be.
        func writing(to upstream: UpstreamKey) -> (epoch: UInt64, clock: FleetClock)? {
            guard server != nil, let clock, let epoch = upstreams[upstream]?.epoch, epoch != 0 else { return nil }
            return (epoch, clock)
        }
    }

    /// One upstream's stream, as far as it is applied.
    struct Upstream: Sendable {
        /// 0 while it is not known.
        var epoch: UInt64 = 0
        var applied = EntryID.start
        /// The last entry that this machine has appended in this epoch.
        var own = EntryID.start
        /// When this machine found that it has missed news of this epoch, in µs of its clock; nil if it has not.
        var missedAt: Int64?
        var recent = RecentNews(after: .start)
        /// Whether it is connected, and has read all that there was.
        var isFollowing = false
        var waiters: [(target: FleetPosition, arrived: Awaited<Bool>)] = []

        /// Whether a position is reached; nil if `arrived` will say it.
        fileprivate mutating func wait(for target: FleetPosition, _ arrived: Awaited<Bool>) -> Bool? {
            if target.epoch < epoch { return false }
            if isFollowing, target <= position { return true }
            // Those that have given up are removed when the next entry comes.
            waiters.append((target, arrived))
            return nil
        }

        /// Notes that the epoch is not known any more.
        mutating func leaveEpoch() { (epoch, isFollowing) = (0, false) }

        var position: FleetPosition { FleetPosition(epoch: epoch, entry: applied) }

        /// Lets those go on whose position is reached, or will never be.
        mutating func wake() {
            let position = position
            waiters.removeAll { waiter in
                guard waiter.target.epoch < epoch || waiter.target <= position else { return false }
                waiter.arrived.give(waiter.target.epoch == epoch)
                return true
            }
        }
    }

    let settings: Configuration.Fleet
    let keys: FleetKeys
    let sealer = Sealer()
    let fetchOutcomes = FetchOutcomes()
    /// Those that are shared, as in `ProxiedUpstream.storeKey`.
    let upstreams: [UpstreamKey]
    /// The store's file, beside which this room has its own.
    let store: String
    /// The store's clock, in µs.
    let now: @Sendable () -> Int64
    let timeouts: FleetTimeouts
    let log: Logger
    private let content = Mutex(Content())

    init(
        _ settings: Configuration.Fleet,
        upstreams: [UpstreamKey],
        besideStore store: String,
        now: @escaping @Sendable () -> Int64,
        timeouts: FleetTimeouts,
        log: Logger
    ) {
        (self.settings, self.upstreams, self.store) = (settings, upstreams, store)
        (self.now, self.timeouts, self.log) = (now, timeouts, log)
        keys = FleetKeys(settings.key.bytes)
    }

    func change<Result: Sendable>(_ body: (inout Content) -> Result) -> Result {
        content.withLock { content in body(&content) }
    }

    func value<Result: Sendable>(_ body: (Content) -> Result) -> Result { content.withLock { body($0) } }

    func change<Result: Sendable>(_ upstream: UpstreamKey, _ body: (inout Upstream) -> Result) -> Result {
        content.withLock { content in body(&content.upstreams[upstream, default: Upstream()]) }
    }

    var isStopped: Bool { value(\.isStopped) }

    func connect() throws(RedisError) -> RedisConnection {
        try RedisConnection(settings.server, password: settings.password?.bytes, within: timeouts.server)
    }

    func names(of upstream: UpstreamKey) -> FleetNames { FleetNames(record: keys.name(ofUpstream: upstream)) }

    /// Counts something that is not of this fleet, or was changed; the first one is logged.
    func countUnopened(_ what: String) {
        let (isFirst, server) = change { content in
            content.figures.unopened += 1
            return (!exchange(&content.hasLoggedUnopened, with: true), content.figures.server)
        }
        guard isFirst else { return }
        log.warning(
            "something on the fleet's server does not open with the fleet's key, and is ignored; there may be more of it",
            metadata: ["what": "\(what)", "server": "\(server)"]
        )
    }

    /// Waits until a position is applied; false if it will not be, or not in time.
    func reach(_ target: FleetPosition, in upstream: UpstreamKey, within limit: Duration) async -> Bool {
        let arrived = Awaited<Bool>()
        let known = change { content -> Bool? in
            guard content.server != nil else { return false }
            return content.upstreams[upstream, default: Upstream()].wait(for: target, arrived)
        }
        if let known { return known }
        return await arrived.value(within: limit) ?? false
    }
}

/// Who waits for the fetch of another machine, by the name of the document; any thread.
final class FetchOutcomes: Sendable {
    /// What the machine that fetches it has said.
    enum Outcome: String, Sendable {
        case shared, failed
        /// It is not to be shared.
        case never
    }

    private let waiting = Mutex<[String: [Awaited<Outcome>]]>([:])

    /// What will be said next of a document's fetch; it comes from `give`, until `leave` is called.
    func expect(_ name: String) -> Awaited<Outcome> {
        let awaited = Awaited<Outcome>()
        waiting.withLock { $0[name, default: []].append(awaited) }
        return awaited
    }

    func leave(_ name: String, _ awaited: Awaited<Outcome>) {
        waiting.withLock { waiting in
            waiting[name]?.removeAll { $0 === awaited }
            if waiting[name]?.isEmpty == true { waiting[name] = nil }
        }
    }

    func give(_ outcome: Outcome, for name: String) {
        for awaited in waiting.withLock({ $0.removeValue(forKey: name) }) ?? [] { awaited.give(outcome) }
    }

    /// Lets all ask for themselves.
    func giveUp() {
        for awaited in waiting.withLock({ exchange(&$0, with: [:]) }).values.joined() { awaited.give(nil) }
    }
}
