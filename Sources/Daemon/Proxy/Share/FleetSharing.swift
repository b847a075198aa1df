import Basics
import Logging
import Store
import Synchronization

/// What this machine announces to the others of its fleet, and the position that its responses have.
///
/// Any thread. A response that says a position must not show anything that is announced later. So whoever makes something
/// visible begins an announcement before, and a response waits for those that have begun (`announcedPosition`).
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
    struct Announcement: Sendable {
        let upstream: UpstreamKey
        fileprivate let end = Signal()
    }

    /// Begins an announcement, before anything that it will say is visible.
    func begin(in upstream: UpstreamKey) -> Announcement {
        let announcement = Announcement(upstream: upstream)
        announcements.withLock { $0[upstream, default: Announcements()].open.append(announcement.end) }
        return announcement
    }

    /// Announces; returns once the server has it, or has taken too long.
    func announce(_ news: FleetNews, _ announcement: Announcement) async {
        let entry = await link.announce(news, in: announcement.upstream)
        log.debug("announced", metadata: news.metadata(at: entry, in: announcement.upstream))
        end(announcement, at: entry)
    }

    /// Ends an announcement that says nothing, or that has the entry.
    func end(_ announcement: Announcement, at entry: FleetPosition? = nil) {
        announcements.withLock { announcements in
            announcements[announcement.upstream]?.open.removeAll { $0 === announcement.end }
            if let entry { announcements[announcement.upstream]?.reach(entry) }
        }
        announcement.end.give()
    }

    /// Notes that something is being applied that makes this machine's position a later one.
    func applies(_ position: FleetPosition, in upstream: UpstreamKey) {
        announcements.withLock { $0[upstream, default: Announcements()].reach(position) }
    }

    /// The position after everything that is visible now; nil if the server does not have all of it.
    func announcedPosition(in upstream: UpstreamKey) async -> FleetPosition? {
        for end in announcements.withLock({ $0[upstream]?.open ?? [] }) { await end.wait() }
        guard let known = await link.clientPosition(in: upstream) else { return nil }
        return max(known, announcements.withLock { $0[upstream]?.newest } ?? known)
    }
}
