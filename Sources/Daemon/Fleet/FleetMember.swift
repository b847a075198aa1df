import CachePolicy
import HTTPSemantics
package import Logging
package import Proxy
package import Settings
package import Store
import Synchronization

/// How long is waited for a fleet's server.
package struct FleetTimeouts: Sendable {
    /// A request, for a reply.
    var request: Duration = .milliseconds(50)
    /// A request, until a position is reached.
    var position: Duration = .seconds(1)
    /// The threads, for a reply; then the server counts as away.
    var server: Duration = .seconds(1)
    /// How much of what a former process has applied the store may lack.
    var loss: Duration = .seconds(60)

    package init() {}
}

/// This machine as a member of its fleet: `FleetLink` over a server of the Redis protocol.
///
/// Two threads speak to the server: `FleetReader` reads the streams, and has their news applied; `FleetSender` sends commands. A
/// caller waits for a reply for as long as his limit, and never for a thread. Without the server everything is as without a fleet.
package final class FleetMember: FleetLink {
    private let state: FleetState
    private let sender: FleetSender
    /// The leases that this machine holds, by the names of the documents.
    private let leases = Mutex<[String: (token: [UInt8], epoch: UInt64)]>([:])

    /// The most bytes of a document's head; that of a body is `SharedDocument.bodyByteLimit`.
    private static let headLimit = 256 << 10
    /// How long a document may be on the server, in seconds.
    private static let longestLife: Int64 = 3600
    /// How long no machine waits for a response that may not be shared, in ms.
    private static let pause: Int64 = 120_000

    /// - Parameter timeouts: other ones for tests, which may run on a busy machine; `FleetState` describes the rest.
    package init(
        _ settings: Configuration.Fleet,
        upstreams: [UpstreamKey],
        besideStore store: String,
        now: @escaping @Sendable () -> Int64,
        timeouts: FleetTimeouts = FleetTimeouts(),
        log: Logger
    ) {
        state = FleetState(settings, upstreams: upstreams, besideStore: store, now: now, timeouts: timeouts, log: log)
        sender = FleetSender(state)
    }

    /// The secret of the principal key that a fleet has in place of the store's own.
    package static func principalKey(_ settings: Configuration.Fleet) -> PrincipalKey {
        PrincipalKey(secret: FleetKeys.principalSecret(settings.key.bytes))
    }

    /// Whether the store's principals were made with another key when it was open last.
    ///
    /// - Parameter hasOwnKey: whether the store has been used without a fleet.
    package func isNew(hasOwnKey: Bool) -> Bool {
        FleetMemory.load(besideStore: state.store).key.map { $0 != state.keys.digest } ?? hasOwnKey
    }

    /// Connects, now and whenever the connection is lost.
    package func start(_ follower: any FleetFollower) {
        let time = state.now()
        let left = NewsFile.load(besideStore: state.store)
        state.change { [state] content in
            content.figures.server = "\(state.settings.server)"
            for upstream in state.upstreams { content.upstreams[upstream] = FleetState.Upstream() }
            for (upstream, news) in left where content.upstreams[upstream] != nil {
                // The store's clock may have gone on by more than has passed.
                let known = FleetNews(news.event, start: news.start, end: max(news.end, time))
                content.queue.append(known, in: upstream, isFiled: true)
            }
        }
        sender.start()
        FleetReader(state, sender, follower).start()
    }

    /// Disconnects; what the server does not have yet is kept for the next start.
    ///
    /// - Parameter limit: how long to wait for the server to take what waits.
    package func stop(within limit: Duration) async {
        for upstream in state.upstreams where isSending {
            let taken = Awaited<FleetPosition>()
            if state.change({ $0.queue.wait(for: upstream, taken) }) { _ = await taken.value(within: limit) }
        }
        state.change { $0.isStopped = true }
        state.fetchOutcomes.giveUp()
        sender.wake()
    }

    var isSending: Bool { state.value(\.isSending) }

    package var figures: FleetFigures {
        state.value { content in
            var figures = content.figures
            figures.queued = content.queue.waiting.count
            figures.upstreams = content.upstreams.sorted { $0.key < $1.key }.map {
                .init(key: $0, epoch: $1.epoch, position: $1.applied.text, isFollowing: $1.isFollowing)
            }
            return figures
        }
    }

    // MARK: Positions

    package func shares(_ upstream: UpstreamKey) -> Bool { state.upstreams.contains(upstream) }

    package func position(in upstream: UpstreamKey) -> FleetPosition? {
        state.value { $0.upstreams[upstream].flatMap { $0.isFollowing ? $0.position : nil } }
    }

    package func clientPosition(in upstream: UpstreamKey) async -> FleetPosition? {
        guard position(in: upstream) != nil else { return nil }
        let announced = Awaited<FleetPosition>()
        if state.change({ $0.queue.wait(for: upstream, announced) }),
            await announced.value(within: state.timeouts.request) == nil
        {
            return nil
        }
        return state.value { content in
            guard let known = content.upstreams[upstream], known.isFollowing else { return nil }
            return FleetPosition(epoch: known.epoch, entry: max(known.applied, known.own))
        }
    }

    package func followedSince(_ upstream: UpstreamKey) -> Int64? {
        state.value { content in
            guard let known = content.upstreams[upstream], known.isFollowing, let clock = content.clock,
                let epoch = Int64(exactly: known.epoch)
            else { return nil }
            // An epoch is named after the server's time at its begin.
            return max(clock.local(epoch).upperBound, known.missedAt ?? .min)
        }
    }

    package func reach(_ position: FleetPosition, in upstream: UpstreamKey) async -> Bool {
        guard shares(upstream) else { return false }
        return await state.reach(position, in: upstream, within: state.timeouts.position)
    }

    // MARK: News

    package func announce(_ news: FleetNews, in upstream: UpstreamKey) async -> FleetPosition? {
        guard shares(upstream) else { return nil }
        let announced = Awaited<FleetPosition>()
        state.change { $0.queue.append(news, in: upstream, waiter: announced) }
        sender.wake()
        return await announced.value(within: state.timeouts.request)
    }

    // MARK: Documents

    package func find(_ key: SharedKey) async -> FleetFinding {
        guard let position = position(in: key.upstream) else { return .alone }
        let place = place(of: key, position.epoch)
        var wantsDocument = true
        // Each time that another machine has fetched it without sharing it, somebody else does; and a document may be outdated.
        var deadline = ContinuousClock.now + state.timeouts.request
        for _ in 0..<4 {
            let outcome = state.fetchOutcomes.expect(place.name)
            defer { state.fetchOutcomes.leave(place.name, outcome) }
            let token = Array(SecretFile.randomBytes(16).hexadecimal.utf8)
            let reply = await ask(place, token, wantsDocument: wantsDocument, until: deadline)?.array ?? []
            switch (reply.first?.text, reply.dropFirst().first?.bytes) {
            case ("mine", _):
                leases.withLock { leases in
                    // Each lasts seconds; so many fetches do not run.
                    if leases.count > 10_000 { leases = [:] }
                    leases[place.name] = (token, place.epoch)
                }
                state.change { $0.figures.missed += 1 }
                return .mine
            case ("held", _):
                state.change { $0.figures.waited += 1 }
                switch await outcome.value(within: state.settings.coalesce) {
                case .shared: wantsDocument = true
                case .failed: break
                case .never, nil: return .alone
                }
                deadline = .now + state.timeouts.request
            case ("document", let sealed?):
                if let document = await usable(sealed, place, at: key, until: deadline) {
                    state.change { $0.figures.found += 1 }
                    return .document(document)
                }
                state.change { $0.figures.refused += 1 }
                wantsDocument = false
            default: return .alone
            }
        }
        return .alone
    }

    /// Where the data of one key are on the server.
    private struct Place {
        let names: FleetNames
        let name: String
        let epoch: UInt64

        var document: String { names.document(name, epoch) }
        var lease: String { names.lease(name, epoch) }
        var outcomes: String { names.outcomes(epoch) }
        var epochBytes: [UInt8] { Array("\(epoch)".utf8) }
    }

    private func place(of key: SharedKey, _ epoch: UInt64) -> Place {
        Place(names: state.names(of: key.upstream), name: state.keys.name(of: key), epoch: epoch)
    }

    /// Asks the server for a document, or for the lease of its fetch.
    private func ask(_ place: Place, _ token: [UInt8], wantsDocument: Bool, until deadline: ContinuousClock.Instant)
        async -> RedisReply?
    {
        // As long as others wait, and then they ask for themselves.
        let (seconds, attoseconds) = state.settings.coalesce.components
        let life = max(1, seconds * 1000 + attoseconds / 1_000_000_000_000_000)
        return await sender.ask(within: deadline - .now) { scripts in
            scripts.command(
                .find,
                keys: [place.names.record, place.document, place.lease],
                [place.epochBytes, token, Self.text(life), Self.text(wantsDocument ? 1 : 0)]
            )
        }
    }

    /// A document that another machine has shared, if it opens and is not outdated.
    private func usable(
        _ sealed: [UInt8],
        _ place: Place,
        at key: SharedKey,
        until deadline: ContinuousClock.Instant
    ) async -> SharedDocument? {
        guard let clock = state.value(\.clock) else { return nil }
        guard let (bytes, publisher) = state.sealer.open(sealed, key: state.keys.key(of: key), place: place.document),
            var published = try? PublishedDocument(bytes, clock)
        else {
            state.countUnopened("a document")
            return nil
        }
        let time = state.now()
        // Otherwise its machine knows already that the server's clock was set.
        guard published.document.sent <= time else { return nil }
        published.document.completed = min(published.document.completed, time)
        published.document.fetch = SharedFetch(sender: publisher, url: key.url, start: published.times.ownStart)
        let position = FleetPosition(epoch: place.epoch, entry: published.position)
        guard await state.reach(position, in: key.upstream, within: deadline - .now) else { return nil }
        let isOutdated = state.value { [found = published] content in
            guard let known = content.upstreams[key.upstream], known.epoch == place.epoch, known.isFollowing
            else { return true }
            return known.recent.makesOutdated(found, from: publisher, at: key)
        }
        return isOutdated ? nil : published.document
    }

    package func share(_ document: SharedDocument, at key: SharedKey, from position: FleetPosition) {
        let life = min(document.lifetime, Self.longestLife)
        guard document.head.count <= Self.headLimit, document.body.count <= SharedDocument.bodyByteLimit, life > 0
        else {
            return release(key, isForNow: false)
        }
        let place = place(of: key, position.epoch)
        leases.withLock { _ = $0.removeValue(forKey: place.name) }
        guard let (epoch, clock) = state.value({ $0.writing(to: key.upstream) }), epoch == place.epoch else { return }
        let times = SharedTimes(document.sent, document.completed, clock)
        let published = PublishedDocument(document: document, times: times, position: position.entry)
        let job = FleetSender.Job(size: document.body.count) { [state] scripts in
            state.change { $0.figures.shared += 1 }
            let sealKey = state.keys.key(of: key)
            let sealed = state.sealer.seal(published.encoded, key: sealKey, place: place.document)
            return scripts.command(
                .share,
                keys: [place.names.record, place.document, place.lease, place.outcomes],
                [place.epochBytes, sealed, Self.text(life * 1000), Array(place.name.utf8)]
            )
        }
        sender.submit(job)
    }

    package func release(_ key: SharedKey, isForNow: Bool) {
        let name = state.keys.name(of: key)
        guard let lease = leases.withLock({ $0.removeValue(forKey: name) }) else { return }
        let place = place(of: key, lease.epoch)
        let job = FleetSender.Job { scripts in
            scripts.command(
                .release,
                keys: [place.names.record, place.lease, place.outcomes],
                [place.epochBytes, lease.token, Self.text(isForNow ? 0 : Self.pause), Array(name.utf8)]
            )
        }
        sender.submit(job)
    }

    // MARK: Rate limits

    package func spend(_ expense: SharedExpense, of limit: SharedLimit) async -> SharedBudget {
        let name = state.names(of: limit.upstream).limit(state.keys.name(of: limit))
        var arguments = [state.sealer.sender, Self.text(expense.requests)]
        if let stated = expense.stated {
            arguments += [Self.text(stated.remaining), Self.text(Int64(clamping: stated.left / 1000))]
            arguments.append(stated.limit.map(Self.text) ?? [])
        }
        let reply = await sender.ask(within: state.timeouts.request) { [arguments] scripts in
            scripts.command(.spend, keys: [name, name + ":machines"], arguments)
        }
        guard let parts = reply?.array else { return .alone }
        guard parts.count == 4, let remaining = parts[0].number, let left = parts[1].text.flatMap({ UInt64($0) })
        else { return .unknown }
        let (limit, machines) = (parts[2].number, parts[3].number ?? 1)
        return .known(Budget.Common(limit: limit, remaining: remaining, left: left * 1000, machines: machines))
    }

    private static func text(_ number: Int64) -> [UInt8] { Array("\(number)".utf8) }
}
