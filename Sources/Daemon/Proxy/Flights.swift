import Logging
import Store

/// All requests that are on their way to upstreams, and what may be done with their answers.
///
/// Lives on the upstream loop. One flight is shared by all clients that ask for the same document (coalescing); what it
/// brings is kept in memory at once and handed to the store behind it.
///
/// Law 10: no request joins a flight that began before the last write to its upstream was answered, and such a flight
/// stores nothing that the write invalidated. Both are settled by `writeAnswered`, on this one thread.
final class Flights {
    let loop: EventLoop
    let settings: Settings
    let client: UpstreamClient
    let cache: AnswerCache
    let metrics: Metrics
    private let log: Logger
    private var inAir: [ObjectIdentifier: Flight] = [:]
    private var joinable: [Digest128: Flight] = [:]

    init(loop: EventLoop, settings: Settings, client: UpstreamClient, cache: AnswerCache, metrics: Metrics, log: Logger) {
        self.loop = loop
        self.settings = settings
        self.client = client
        self.cache = cache
        self.metrics = metrics
        self.log = log
    }

    /// How many requests are in the air.
    var count: Int { inAir.count }

    // MARK: Asking

    /// Has a client wait for the flight that fetches its document; starts one if there is none to join.
    func ask(_ demand: Demand, _ reply: Reply, stored: ReadyAnswer?) {
        if let flight = joinable[demand.digest], flight.isJoinable, !demand.isHead {
            metrics.upstream.coalesced.add()
            flight.join(demand, reply, isLeader: false)
            return
        }
        let flight = start(demand, stored: stored)
        flight.join(demand, reply, isLeader: true)
    }

    /// Fetches for one client alone: what it wanted to join turned out not to be for sharing.
    func askAlone(_ relay: Relay) {
        let flight = Flight(
            relay.demand,
            stored: nil,
            isConditional: false,
            start: cache.now,
            requestTime: Int64(loop.wallSeconds),
            flights: self
        )
        depart(flight)
        flight.join(relay.demand, relay.reply, isLeader: true)
    }

    /// Fetches a document that was served stale, for the next one who asks; never twice at a time.
    func refresh(_ demand: Demand, stored: ReadyAnswer) {
        if let flight = joinable[demand.digest], flight.isJoinable { return }
        _ = start(demand, stored: stored)
    }

    private func start(_ demand: Demand, stored: ReadyAnswer?) -> Flight {
        let isConditional = stored?.answer.isValidatable == true && stored?.residence.isDirty.load(ordering: .relaxed) == false
        let flight = Flight(
            demand,
            stored: stored,
            isConditional: isConditional,
            start: cache.now,
            requestTime: Int64(loop.wallSeconds),
            flights: self
        )
        if demand.isShareable { joinable[demand.digest] = flight }
        depart(flight)
        return flight
    }

    private func depart(_ flight: Flight) {
        inAir[ObjectIdentifier(flight)] = flight
        metrics.upstream.requests.add()
        let request = flight.demand.upstreamRequest(validating: flight.isConditional ? flight.stored?.answer : nil)
        flight.depart(request, through: client)
    }

    /// A flight takes no more followers.
    func retire(_ flight: Flight) {
        if joinable[flight.demand.digest] === flight { joinable[flight.demand.digest] = nil }
    }

    /// A flight is over.
    func ended(_ flight: Flight) {
        retire(flight)
        inAir[ObjectIdentifier(flight)] = nil
    }

    // MARK: Writes

    /// A write was answered, or never will be: flights of its upstream take no more followers, and those for what it
    /// invalidated store nothing.
    func writeAnswered(upstream: Upstream, invalidated: (Flight) -> Bool) {
        for flight in inAir.values where flight.demand.upstream === upstream {
            retire(flight)
            if invalidated(flight) { flight.storesNothing = true }
        }
    }

    /// The store was cleaned: nothing that is in the air now may bring back what was removed.
    func cleaned() {
        for flight in inAir.values {
            retire(flight)
            flight.storesNothing = true
        }
    }

    // MARK: Answers

    /// A 304: what is stored is good for longer.
    func renewed(_ stored: ReadyAnswer, by head: UpstreamHead, in flight: Flight, for relays: [Relay]) {
        // A document that became dirty meanwhile is not what the 304 spoke of.
        guard !stored.residence.isDirty.load(ordering: .relaxed) else {
            for relay in relays { askAlone(relay) }
            return
        }
        let ready = cache.renew(stored, by: head, in: flight)
        serve(ready, to: relays, as: .revalidated)
    }

    /// Whether a stored answer is served in the place of an error.
    func standsIn(_ stored: ReadyAnswer, for head: UpstreamHead, in flight: Flight) -> Bool {
        flight.demand.upstream.isFailure(status: head.status, fields: head.fields)
            && stored.answer.maySubstitute(at: Int64(loop.wallSeconds), for: flight.demand)
    }

    func served(_ stored: ReadyAnswer, insteadOf head: UpstreamHead, to relays: [Relay]) {
        log.debug("served stale instead of an error", metadata: ["status": "\(head.status)"])
        serve(stored, to: relays, as: .substituted(status: head.status))
    }

    /// No answer came, or none that could be used.
    func failed(_ error: UpstreamError, _ flight: Flight, stored: ReadyAnswer?, relays: [Relay]) {
        metrics.upstream.failures.add()
        log.debug("upstream failed", metadata: ["error": "\(error.label)", "upstream": "\(flight.demand.upstream.name)"])
        if let stored, stored.answer.maySubstitute(at: Int64(loop.wallSeconds), for: flight.demand) {
            serve(stored, to: relays, as: .substituted(status: nil))
            return
        }
        for relay in relays {
            relay.reply.refuse(.upstreamFailed(error, upstream: flight.demand.upstream.name))
        }
    }

    /// Answers clients from a ready answer, each in its own view and for its own address.
    func serve(_ ready: ReadyAnswer, to relays: [Relay], as manner: Manner) {
        for relay in relays {
            relay.reply.serve(
                ready.based(on: relay.demand.base),
                for: relay.demand,
                as: relay.isLeader ? manner : manner.collapsed,
                now: Int64(loop.wallSeconds)
            )
        }
    }
}
