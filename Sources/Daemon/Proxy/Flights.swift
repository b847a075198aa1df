import CachePolicy
import EventLoops
import HTTPServer
import Logging
import Settings
import Store
import Synchronization
import Upstream

/// All requests that are on their way to upstreams, and what may be done with their answers.
///
/// Lives on the upstream loop. One flight is shared by all clients that ask for the same document (coalescing); what it
/// brings is kept in memory and handed to the store (`Flights+Keeping`).
///
/// Law 10: no request joins a flight that began before the last write to its upstream was answered, and such a flight
/// stores nothing that the write invalidated. Both are settled by `writeAnswered`, on this one thread.
package final class Flights {
    let loop: EventLoop
    let settings: Configuration
    let cache: ResponseCache
    private let clients: [UpstreamClient]
    let metrics: Metrics
    /// Where answers of the upstream loop are counted by their outcome.
    let outcomes: WorkerMetrics
    let log: Logger
    /// What keeps flights alive until their end.
    var inAir: [ObjectIdentifier: AnyObject] = [:]
    var joinable: [Digest128: Flight] = [:]
    /// Flights that are over, and whose answer waits for the store.
    var settling: [ObjectIdentifier: Flight] = [:]
    /// Those of them whose answers tell of objects, and whose clients wait for that.
    var withheld: [ObjectIdentifier: WithheldResponse] = [:]
    var hitForMiss: HitForMiss
    /// What was not stored lately, and why.
    package var unstored = UnstoredResponses()
    package var pauses = UpstreamPauses()
    private var refreshes = Refreshes()
    /// What waits for a commit or for a slow reader, by number; given what was read of the store for it.
    var errands: [Int: ([StoredDocument]) -> Void] = [:]
    var errandNumber = 0
    /// Bytes of bodies that flights keep, and that readers who lag behind a finished one have still to take.
    var held = 0
    /// How many there may be; past it flights are mere relays, which go at their readers' pace.
    var heldLimit: Int { 8 * settings.limits.document }

    /// - Parameter clients: one per upstream, in their order.
    init(
        loop: EventLoop,
        settings: Configuration,
        clients: [UpstreamClient],
        cache: ResponseCache,
        metrics: Metrics,
        outcomes: WorkerMetrics,
        log: Logger
    ) {
        self.loop = loop
        self.settings = settings
        self.clients = clients
        self.cache = cache
        self.metrics = metrics
        self.outcomes = outcomes
        self.log = log
        hitForMiss = HitForMiss(now: loop.now)
    }

    /// Seconds of the store's clock, by which ages are counted.
    var now: Int64 { cache.seconds }

    /// Seconds of the wall clock, with which dates in messages are compared.
    var wall: Int64 { Int64(loop.wallSeconds) }

    // MARK: Asking

    /// Has a client wait for the flight that fetches its document; starts one if there is none to join.
    ///
    /// Where the last answers were of use to nobody but who had asked, nobody waits for another's.
    ///
    /// - Parameters:
    ///   - variants: what else is stored under the demand's key, for the upstream to say whether it is that.
    ///   - parts: what is stored in parts of it.
    ///   - completes: whether only what is missing in them is asked for.
    func ask(
        _ demand: Demand,
        _ reply: any Recipient,
        stored: ReadyResponse?,
        variants: [Variant] = [],
        parts: ReadyResponse? = nil,
        completes: Bool = false
    ) {
        let place = place(of: demand)
        let sharesNothing = place.map { hitForMiss.contains($0, now: loop.now) } ?? true
        if let place, !sharesNothing, let flight = joinable[place], flight.isJoinable(by: demand),
            demand.mayShare(with: flight.demand)
        {
            metrics.upstream(demand.upstream.name).coalesced.add()
            flight.join(demand, reply, isLeader: false)
            return
        }
        if isHeldBack(Relay(demand, reply, isLeader: true), stored: stored) { return }
        let flight = start(
            demand,
            stored: stored,
            variants: variants,
            isJoinable: !sharesNothing,
            parts: parts,
            completes: completes
        )
        flight.join(demand, reply, isLeader: true)
    }

    /// Fetches for clients who turned out to want something else than the flight that they waited for brings.
    ///
    /// - Parameter selection: what the answer varies by, by which those who want the same are put together; nil where nothing
    ///   of it is for anybody else. A client that was regrouped once without success is fetched for alone.
    func askApart(_ relays: [Relay], by selection: VarySelection?, stored: ReadyResponse?) {
        let names = selection?.lines.map(\.name) ?? []
        var groups: [(selection: VarySelection, isJSON: Bool, flight: Flight)] = []
        for relay in relays {
            guard selection != nil, !relay.hasMoved,
                let wanted = VarySelection(.fields(names), request: relay.demand.request.fields)
            else {
                askAlone(relay, stored: stored)
                continue
            }
            if isHeldBack(relay, stored: stored) { continue }
            let isJSON = relay.demand.wantsJSONOnly
            if let group = groups.first(where: { $0.selection == wanted && $0.isJSON == isJSON }) {
                group.flight.join(relay.demand, relay.reply, isLeader: false, hasMoved: true)
            } else {
                let flight = start(relay.demand, stored: nil, isJoinable: false)
                flight.join(relay.demand, relay.reply, isLeader: true, hasMoved: true)
                groups.append((wanted, isJSON, flight))
            }
        }
    }

    /// Fetches for one client alone: what it wanted to join turned out not to be for it.
    ///
    /// - Parameter stored: what is served in the place of an answer if the upstream must not be asked.
    func askAlone(_ relay: Relay, stored: ReadyResponse? = nil) {
        if isHeldBack(relay, stored: stored) { return }
        start(relay.demand, stored: nil, isJoinable: false).join(relay.demand, relay.reply, isLeader: true)
    }

    /// Fetches without conditions for clients whom a 304 did not help; together.
    ///
    /// Behind a stale answer nobody waits: there the refresh goes on, since a 304 of the same kind would come each time.
    func askAgain(_ relays: [Relay], stored: ReadyResponse?, insteadOf helpless: Flight) {
        guard let first = relays.first else {
            guard let subject = helpless.refreshes, !helpless.storesNothing else { return }
            helpless.refreshes = nil
            start(helpless.demand, stored: stored, isConditional: false).refreshes = subject
            return
        }
        let flight = start(first.demand, stored: stored, isConditional: false)
        for relay in relays { flight.join(relay.demand, relay.reply, isLeader: relay.isLeader) }
    }

    /// Fetches a document that was served stale, for the next one who asks; never twice at a time, nor soon after a failure.
    func refresh(_ demand: Demand, stored: ReadyResponse) {
        guard let demand = demand.ofWhole else { return }
        if let flight = joinable[demand.digest], flight.isJoinable(by: demand) { return }
        if pauses.pause(for: demand, now: loop.now) != nil { return }
        let subject = Refreshes.Subject(stored)
        guard refreshes.begin(subject, now: loop.now) else { return }
        start(demand, stored: stored).refreshes = subject
    }

    /// Sends an unsafe request; returns when its answer has come, but for the last piece passed on to the client.
    func write(_ demand: Demand, _ reply: Reply) -> WriteFlight {
        let flight = WriteFlight(demand, reply, flights: self)
        inAir[ObjectIdentifier(flight)] = flight
        metrics.upstream(demand.upstream.name).started()
        flight.depart(demand.upstreamRequest(), through: clients[demand.upstream.index])
        return flight
    }

    @discardableResult
    private func start(
        _ demand: Demand,
        stored: ReadyResponse?,
        variants: [Variant] = [],
        isJoinable: Bool = true,
        isConditional: Bool = true,
        parts: ReadyResponse? = nil,
        completes: Bool = false
    ) -> Flight {
        // What is missing comes with a condition of its own, `If-Range`.
        let validation =
            isConditional && !completes ? Validation(demand, stored: stored, variants: variants) : .none
        let flight = Flight(
            demand,
            stored: stored,
            validation: validation,
            parts: parts,
            completes: completes,
            start: cache.now,
            requestTime: now,
            flights: self
        )
        if isJoinable, let place = place(of: demand) { joinable[place] = flight }
        inAir[ObjectIdentifier(flight)] = flight
        metrics.upstream(demand.upstream.name).started()
        let request = demand.upstreamRequest(
            validation,
            completing: flight.completing,
            settlesDoubt: stored?.answer.doubts.isEmpty == false
        )
        flight.depart(request, through: clients[demand.upstream.index])
        return flight
    }

    /// A flight takes no more followers.
    func retire(_ flight: Flight) {
        guard let place = place(of: flight.demand), joinable[place] === flight else { return }
        joinable[place] = nil
    }

    /// Where those are found who may wait for one another's answer: by the document, or by the part of it that they ask for;
    /// nil where nobody may.
    func place(of demand: Demand) -> Digest128? {
        demand.isShareable ? demand.digest : demand.partKey.map { cache.store.hasher.digest($0) }
    }

    /// A flight is over.
    func ended(_ flight: Flight, result: FlightResult) {
        retire(flight)
        ended(flight, upstream: flight.demand.upstream, result, since: flight.start)
        if settling[ObjectIdentifier(flight)] == nil { refreshed(flight) }
    }

    /// A flight has brought what it will, also to the store.
    func refreshed(_ flight: Flight) {
        guard let subject = flight.refreshes else { return }
        refreshes.ended(subject, hasSucceeded: flight.hasRefreshed, now: loop.now)
    }

    /// A write is over.
    func ended(_ flight: WriteFlight, result: FlightResult) {
        ended(flight, upstream: flight.demand.upstream, result, since: flight.start)
    }

    private func ended(_ flight: AnyObject, upstream: ProxiedUpstream, _ result: FlightResult, since start: Int64) {
        inAir[ObjectIdentifier(flight)] = nil
        let seconds = Double(max(0, cache.now - start)) / 1_000_000
        let metrics = metrics.upstream(upstream.name)
        switch result {
        case .answered(let status): metrics.ended(status: status, seconds: seconds)
        case .failed(let error): metrics.ended(result: error.label, seconds: seconds)
        }
    }
}

/// How a flight ended, for the metrics.
enum FlightResult {
    case answered(status: Int)
    case failed(UpstreamError)
}
