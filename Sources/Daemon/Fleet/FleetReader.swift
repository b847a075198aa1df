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
    final class Followed {
        let upstream: UpstreamKey
        let names: FleetNames
        var epoch: UInt64
        var cursor: StreamCursor
        /// The last outcome of a fetch that was read.
        var outcomesPosition = EntryID.start
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

        init(_ upstream: UpstreamKey, _ names: FleetNames, _ known: FleetMemory.Position?) {
            (self.upstream, self.names) = (upstream, names)
            (epoch, cursor) = (known?.epoch ?? 0, StreamCursor(at: known?.entry ?? .start))
            (readAt, missedAt) = (known?.time, known?.missed)
        }

        var stream: String { names.stream(epoch) }
    }

    let state: FleetState
    let sender: FleetSender
    private let follower: any FleetFollower

    init(_ state: FleetState, _ sender: FleetSender, _ follower: any FleetFollower) {
        (self.state, self.sender, self.follower) = (state, sender, follower)
    }

    func start() { Thread.detachNewThread { [self] in run() } }

    private func run() {
        var memory = FleetMemory.load(besideStore: state.store)
        memory.key = state.keys.digest
        state.change { [memory] in ($0.clock, $0.clockServer) = (memory.clock, memory.clockServer) }
        let followed = state.upstreams.map { Followed($0, state.names(of: $0), memory.positions[$0]) }
        var pause = ReconnectPause()
        while !state.isStopped {
            do throws(RedisError) {
                let connection = try state.connect()
                var session = FleetSession(self, connection, followed, memory)
                defer { memory = session.memory }
                try session.begin()
                pause = ReconnectPause()
                connected(to: connection)
                while !state.value({ $0.isStopped || $0.mustReconnect }) { try session.round() }
                session.save()
                throw .away("another server has taken over")
            } catch {
                disconnected(error)
            }
            if !state.isStopped { pause.sleep() }
        }
    }

    private func connected(to connection: RedisConnection) {
        let time = state.now()
        state.change { content in
            content.server = connection.runID
            (content.figures.isConnected, content.figures.since, content.figures.trouble) = (true, time, nil)
            content.figures.version = connection.version
        }
        state.log.notice("connected to the fleet's server", metadata: ["server": "\(state.settings.server)"])
        sender.wake()
    }

    private func disconnected(_ error: RedisError) {
        let time = state.now()
        let isNews = state.change { content -> Bool in
            (content.server, content.isSending, content.mustReconnect) = (nil, false, false)
            for upstream in content.upstreams.keys { content.upstreams[upstream]?.isFollowing = false }
            let isNews = content.figures.isConnected || content.figures.trouble == nil
            if content.figures.isConnected || content.figures.since == 0 { content.figures.since = time }
            (content.figures.isConnected, content.figures.trouble) = (false, "\(error)")
            return isNews && !content.isStopped
        }
        state.fetchOutcomes.giveUp()
        sender.wake()
        guard isNews else { return }
        state.log.warning(
            "the fleet's server cannot be used; this machine goes on alone",
            metadata: ["server": "\(state.settings.server)", "cause": "\(error)"]
        )
    }

    /// Has news applied, and waits for that.
    func apply(_ news: [FleetNews], at position: FleetPosition, in upstream: UpstreamKey) {
        guard !news.isEmpty, !state.isStopped else { return }
        let done = DispatchSemaphore(value: 0)
        Task.detached { [follower] in
            await follower.apply(news, at: position, in: upstream)
            done.signal()
        }
        done.wait()
    }
}
