import Basics
import Logging
import Store
import Synchronization

/// What this machine announces to the others of its fleet, and the position that its responses have.
///
/// Any thread. A response that says a position must not show anything that is announced later. So whoever makes something
/// visible begins an announcement before, and a response waits for those that have begun (`settled`).
final class FleetSharing: Sendable {
    let link: any FleetLink
    let log: Logger

    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct Announcements {
        /// The ends of those that are under way.
        var open: [Signal] = []
        /// The latest entry of this machine, or that it has begun to apply.
        var newest: FleetPosition?

        mutating func reach(_ position: FleetPosition) { newest = max(newest ?? position, position) }
    }

    /// By upstream.
    private let announcements = Mutex<[UpstreamKey: Announcements]>([:])

    init(_ link: any FleetLink, log: Logger) { (self.link, self.log) = (link, log) }

    /// An announcement that has begun; it counts until it is given to `announce` or `end`.
    struct Turn: Sendable {
        let upstream: UpstreamKey
        fileprivate let end = Signal()
    }

    /// Begins an announcement, before anything that it will say is visible.
    func begin(in upstream: UpstreamKey) -> Turn {
        let turn = Turn(upstream: upstream)
        announcements.withLock { $0[upstream, default: Announcements()].open.append(turn.end) }
        return turn
    }

    /// Announces; returns once the server has it, or has taken too long.
    func announce(_ news: FleetNews, _ turn: Turn) async {
        let entry = await link.announce(news, in: turn.upstream)
        log.debug("announced", metadata: news.metadata(at: entry, in: turn.upstream))
        end(turn, at: entry)
    }

    /// Ends an announcement that says nothing, or that has the entry.
    func end(_ turn: Turn, at entry: FleetPosition? = nil) {
        announcements.withLock { announcements in
            announcements[turn.upstream]?.open.removeAll { $0 === turn.end }
            if let entry { announcements[turn.upstream]?.reach(entry) }
        }
        turn.end.give()
    }

    /// Notes that something is being applied that makes this machine's position a later one.
    func applies(_ position: FleetPosition, in upstream: UpstreamKey) {
        announcements.withLock { $0[upstream, default: Announcements()].reach(position) }
    }

    /// The position after everything that is visible now; nil if the server does not have all of it.
    func settled(in upstream: UpstreamKey) async -> FleetPosition? {
        for end in announcements.withLock({ $0[upstream]?.open ?? [] }) { await end.wait() }
        guard let known = await link.clientPosition(in: upstream) else { return nil }
        return max(known, announcements.withLock { $0[upstream]?.newest } ?? known)
    }
}

/// A request for a response that no machine has shared: the response is shared once it is committed.
///
/// It exists as long as that is possible. If it ends without, the machines that wait for the response ask the upstream.
final class FleetTurn: Sendable {
    let key: SharedKey
    private let sharing: FleetSharing
    /// How far this machine had read the stream when the request was sent; nil if nothing is shared.
    private let position: FleetPosition?
    /// Whether other machines wait for the response.
    private let isAwaited: Bool
    private let state = Mutex(State.open)

    // Not private: the compiler (6.3.1) cannot lay it out in a mutex from other files if it is.
    enum State { case open, shared, unshareable }

    init(_ sharing: FleetSharing, _ key: SharedKey, isAwaited: Bool) {
        (self.sharing, self.key, self.isAwaited) = (sharing, key, isAwaited)
        position = sharing.link.position(in: key.upstream)
    }

    /// Shares the response, after its commit, and once the server has what it has shown: others would serve it before.
    func share(_ document: SharedDocument) async {
        guard let position, let announced = await sharing.settled(in: key.upstream), announced.epoch == position.epoch
        else { return }
        var document = document
        document.announced = announced
        state.withLock { $0 = .shared }
        sharing.link.share(document, at: key, from: position)
    }

    /// Notes that the response may not be shared, nor probably the next ones.
    func refuse() { state.withLock { if $0 == .open { $0 = .unshareable } } }

    deinit {
        let state = state.withLock { $0 }
        if isAwaited, state != .shared { sharing.link.release(key, isForNow: state == .open) }
    }
}
