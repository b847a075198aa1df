import Dispatch
import Foundation
import Logging
import Proxy
import Settings
import Store

/// The thread that reads the streams of all upstreams, and has their news applied; it also keeps the clock.
///
/// Its life, again and again: connect; ask for the time; enter each upstream's epoch; then rounds: read what there is, for at most
/// a quarter of a second, apply it, and look whether the epochs are still the same. With an error it begins anew after a while.
final class FleetReader: Sendable {
    /// What is read of one upstream; it belongs to the thread.
    struct Followed {
        let upstream: String
        let names: FleetNames
        var epoch: UInt64 = 0
        var cursor = StreamCursor(at: .start)
        /// The last word about fetches that was read.
        var words = EntryID.start
        /// The last entry that a former process has applied; up to it, only observed values are applied again.
        var wasApplied = EntryID.start
        /// The stream's last entry when this machine began to read it.
        var wasCleaned = EntryID.start
        /// When all of the stream was read last, in µs of this machine's clock; nil if that is not known.
        var readAt: Int64?
        /// Whether a clock was set, so that the times in the epoch's entries mean nothing any more and the epoch has to end.
        var isClockSet = false
        /// When this machine found that it has missed news of the epoch, in µs of its clock; nil if it has not.
        var missedAt: Int64?

        init(_ upstream: String, _ names: FleetNames) { (self.upstream, self.names) = (upstream, names) }
    }

    /// How many entries are read at a time.
    static let batch = 32

    let settings: Configuration.Fleet
    let keys: FleetKeys
    let sealer: Sealer
    let state: FleetState
    let words: FetchWords
    let sender: FleetSender
    let follower: any FleetFollower
    let upstreams: [String]
    let store: String
    let now: @Sendable () -> Int64
    let limits: FleetLimits
    let log: Logger

    init(
        _ settings: Configuration.Fleet,
        _ keys: FleetKeys,
        _ sealer: Sealer,
        _ state: FleetState,
        _ words: FetchWords,
        _ sender: FleetSender,
        follower: any FleetFollower,
        upstreams: [String],
        besideStore store: String,
        now: @escaping @Sendable () -> Int64,
        limits: FleetLimits,
        log: Logger
    ) {
        (self.settings, self.keys, self.sealer, self.state) = (settings, keys, sealer, state)
        (self.words, self.sender, self.follower, self.upstreams) = (words, sender, follower, upstreams)
        (self.store, self.now, self.limits, self.log) = (store, now, limits, log)
    }

    func start() { Thread.detachNewThread { [self] in run() } }

    private var isStopped: Bool { state.value(\.isStopped) }

    private func run() {
        var memory = FleetMemory.load(besideStore: store)
        memory.key = keys.digest
        state.change { [memory] in ($0.clock, $0.clockServer) = (memory.clock, memory.clockServer) }
        var followed = upstreams.map { upstream -> Followed in
            var followed = Followed(upstream, FleetNames(record: keys.name(ofUpstream: upstream)))
            guard let known = memory.positions[upstream] else { return followed }
            (followed.epoch, followed.cursor) = (known.epoch, StreamCursor(at: known.entry))
            (followed.readAt, followed.missedAt) = (known.time, known.missed)
            return followed
        }
        var pause = Backoff()
        while !isStopped {
            var wasConnected = false
            do throws(RedisError) {
                let connection = try RedisConnection(
                    settings.server,
                    password: settings.password?.bytes,
                    within: limits.server
                )
                var session = FleetSession(self, connection, followed, memory)
                defer { (followed, memory) = (session.followed, session.memory) }
                try session.begin()
                wasConnected = true
                pause = Backoff()
                connected(to: connection)
                while !isStopped, !state.value(\.mustReconnect) { try session.round() }
                session.save()
                throw .away("another server has taken over")
            } catch {
                disconnected(error, wasConnected: wasConnected)
            }
            if !isStopped { pause.sleep() }
        }
    }

    private func connected(to connection: RedisConnection) {
        let time = now()
        state.change { content in
            content.server = connection.runID
            (content.figures.isConnected, content.figures.since, content.figures.trouble) = (true, time, nil)
            content.figures.version = connection.version
        }
        log.notice("connected to the fleet's server", metadata: ["server": "\(settings.server)"])
        sender.wake()
    }

    private func disconnected(_ error: RedisError, wasConnected: Bool) {
        let time = now()
        let isNews = state.change { content -> Bool in
            (content.server, content.isSending, content.mustReconnect) = (nil, false, false)
            for upstream in content.upstreams.keys { content.upstreams[upstream]?.isFollowing = false }
            let isNews = content.figures.isConnected || content.figures.trouble == nil
            if content.figures.isConnected || content.figures.since == 0 { content.figures.since = time }
            (content.figures.isConnected, content.figures.trouble) = (false, "\(error)")
            return isNews && !content.isStopped
        }
        words.giveUp()
        sender.wake()
        guard isNews else { return }
        log.warning(
            "the fleet's server cannot be used; this machine goes on alone",
            metadata: ["server": "\(settings.server)", "cause": "\(error)"]
        )
    }

    /// Has news applied, and waits for that.
    func apply(_ news: [FleetNews], at position: FleetPosition, in upstream: String) {
        guard !news.isEmpty, !isStopped else { return }
        let done = DispatchSemaphore(value: 0)
        Task.detached { [follower] in
            await follower.apply(news, at: position, in: upstream)
            done.signal()
        }
        done.wait()
    }
}
