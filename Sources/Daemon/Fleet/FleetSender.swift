import Basics
import Foundation
import Logging
import Proxy
import Synchronization

/// The thread that sends commands: all that wait go together, and the replies come in their order.
///
/// Who awaits one waits no longer than his own limit, whatever the thread does. While the server is away, news are kept in a file.
final class FleetSender: Sendable {
    /// A command that somebody wants to be sent.
    struct Job: Sendable {
        /// After it, the command is of no use; nil for never.
        var deadline: ContinuousClock.Instant?
        /// How many bytes it keeps in memory.
        var size = 0
        var make: @Sendable (LoadedScripts) -> RedisCommand
        var reply: Awaited<RedisReply>?
    }

    private struct Jobs {
        var waiting: [Job] = []
        var size = 0
    }

    /// How much may wait; what is beyond is not sent.
    private static let jobLimit = 1000
    private static let sizeLimit = 32 << 20
    private static let batch = 64
    /// How many news the server keeps of an upstream.
    private static let streamLength = "100000"

    private let state: FleetState
    private let jobs = Mutex(Jobs())
    private let work = TimedSemaphore()

    init(_ state: FleetState) { self.state = state }

    /// Has the thread look whether there is something to do; any thread.
    func wake() { work.signal() }

    /// Sends a command if the server is there, and returns its reply; nil if there is none within a limit.
    func ask(within limit: Duration, _ make: @escaping @Sendable (LoadedScripts) -> RedisCommand) async -> RedisReply? {
        let reply = Awaited<RedisReply>()
        guard submit(Job(deadline: .now + limit, make: make, reply: reply)) else { return nil }
        let found = await reply.value(within: limit)
        if found == nil { state.change { $0.figures.timedOut += 1 } }
        return found
    }

    /// Puts a command into the queue; false if the server is away, or too much waits.
    @discardableResult
    func submit(_ job: Job) -> Bool {
        guard state.value(\.isSending) else { return false }
        let isTaken = jobs.withLock { jobs in
            guard jobs.waiting.count < Self.jobLimit, jobs.size + job.size <= Self.sizeLimit else { return false }
            jobs.waiting.append(job)
            jobs.size += job.size
            return true
        }
        if isTaken { work.signal() }
        return isTaken
    }

    // MARK: The thread

    func start() { Thread.detachNewThread { [self] in run() } }

    private func run() {
        let file = NewsFile(besideStore: state.store, log: state.log)
        var pause = ReconnectPause()
        while !state.isStopped {
            guard let server = state.value(\.server) else {
                giveUp(file)
                work.wait(for: .milliseconds(100))
                continue
            }
            do throws(RedisError) {
                try serve(server, file) { pause = ReconnectPause() }
            } catch {
                state.log.debug("the fleet's server gets no commands", metadata: ["cause": "\(error)"])
                state.change { if $0.server == server { $0.figures.sendingTrouble = "\(error)" } }
            }
            state.change { $0.isSending = false }
            giveUp(file)
            if !state.isStopped { pause.sleep() }
        }
        giveUp(file)
    }

    /// Sends what there is until the reader's connection ends.
    private func serve(_ server: String, _ file: NewsFile, begun: () -> Void) throws(RedisError) {
        let connection = try state.connect()
        guard connection.runID == server else {
            // Both threads must be connected to the same server.
            state.change { $0.mustReconnect = true }
            throw .away("another server has taken over")
        }
        let scripts = try LoadedScripts(connection)
        begun()
        state.change { ($0.isSending, $0.figures.sendingTrouble) = (true, nil) }
        while state.value({ $0.server == server && !$0.isStopped }) {
            let (jobs, news) = (takeJobs(), nextNews())
            guard !jobs.isEmpty || !news.isEmpty else {
                work.wait(for: .milliseconds(200))
                continue
            }
            try send(jobs, news, by: connection, scripts)
            if state.value({ $0.queue.waiting.isEmpty }) { file.clear() }
        }
    }

    private func takeJobs() -> [Job] {
        jobs.withLock { jobs in
            let taken = Array(jobs.waiting.prefix(Self.batch))
            jobs.waiting.removeFirst(taken.count)
            jobs.size -= taken.reduce(0) { $0 + $1.size }
            return taken
        }
    }

    /// News, with the epoch and the clock of their command.
    private typealias Ready = (item: NewsQueue.Item, epoch: UInt64, clock: FleetClock)

    /// News that can be announced in the current epochs.
    private func nextNews() -> [Ready] {
        state.value { content in
            let held = Set(content.upstreams.keys.filter { content.writing(to: $0) == nil })
            return content.queue.next(Self.batch, without: held).compactMap { item in
                content.writing(to: item.upstream).map { (item, $0.epoch, $0.clock) }
            }
        }
    }

    private func send(_ jobs: [Job], _ news: [Ready], by connection: RedisConnection, _ scripts: LoadedScripts)
        throws(RedisError)
    {
        let start = ContinuousClock.now
        func isLate(_ job: Job) -> Bool { job.deadline.map { $0 <= start } ?? false }
        for job in jobs where isLate(job) { job.reply?.give(nil) }
        let asked = jobs.filter { !isLate($0) }
        let commands = asked.map { $0.make(scripts) } + news.map { command(for: $0, scripts) }
        guard !commands.isEmpty else { return }
        let replies: [RedisReply]
        do throws(RedisError) {
            replies = try connection.send(commands)
        } catch {
            for job in asked { job.reply?.give(nil) }
            throw error
        }
        for (job, reply) in zip(asked, replies) { job.reply?.give(reply) }
        wereSent(news, Array(replies.dropFirst(asked.count)))
        for (index, reply) in replies.enumerated() {
            guard case .error(let message) = reply else { continue }
            // A full server takes no documents; with all other refusals it is not the one that it was.
            if index >= asked.count || !message.hasPrefix("OOM") { throw .refused(message) }
        }
    }

    private func command(for news: Ready, _ scripts: LoadedScripts) -> RedisCommand {
        let upstream = news.item.upstream
        let names = state.names(of: upstream)
        let bounded = PublishedNews.bounded(news.item.news, of: upstream)
        let published = PublishedNews(bounded.event, SharedTimes(bounded.start, bounded.end, news.clock))
        let stream = names.stream(news.epoch)
        let sealed = state.sealer.seal(published.encoded, key: state.keys.newsKey, place: stream)
        let arguments = [Array("\(news.epoch)".utf8), Array(Self.streamLength.utf8), sealed]
        return scripts.command(.announce, keys: [names.record, stream], arguments)
    }

    /// Notes which news the server has; those of an epoch that is over wait for the next one.
    private func wereSent(_ news: [Ready], _ replies: [RedisReply]) {
        var positions: [UInt64: FleetPosition] = [:]
        for ((item, epoch, _), reply) in zip(news, replies) {
            if let entry = EntryID(reply.text) { positions[item.number] = FleetPosition(epoch: epoch, entry: entry) }
        }
        let time = state.now()
        state.change { [positions] content in
            content.queue.wereAnnounced(positions, at: time)
            content.figures.announced += UInt64(positions.count)
            for (item, epoch, _) in news where content.upstreams[item.upstream]?.epoch == epoch {
                if let position = positions[item.number] { content.upstreams[item.upstream]?.own = position.entry }
            }
        }
        // The reader finds out which epoch it is now.
        if replies.contains(.nothing) { work.wait(for: .milliseconds(50)) }
    }

    /// Gives up what waits for a reply, and keeps the news.
    private func giveUp(_ file: NewsFile) {
        for job in jobs.withLock({ exchange(&$0, with: Jobs()) }).waiting { job.reply?.give(nil) }
        let (new, isCondensed, all) = state.change { content in
            (content.queue.file(), exchange(&content.queue.isCondensed, with: false), content.queue.waiting)
        }
        if isCondensed {
            state.log.warning(
                "too much waits for the fleet's server; what it was is replaced: all documents are outdated for others"
            )
            file.clear()
        }
        file.append(isCondensed ? all : new)
        // From now on it outlives the process.
        state.change { $0.queue.stopWaiting() }
    }
}
