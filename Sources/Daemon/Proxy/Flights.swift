import Logging
import Store
import Synchronization

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
    let cache: AnswerCache
    private let clients: [UpstreamClient]
    private let metrics: Metrics
    /// Where answers of the upstream loop are counted by their outcome.
    let outcomes: WorkerMetrics
    let log: Logger
    /// What keeps flights alive until their end.
    private var inAir: [ObjectIdentifier: AnyObject] = [:]
    private var joinable: [Digest128: Flight] = [:]
    /// Flights that are over, and whose answer waits for the store.
    var settling: [ObjectIdentifier: Flight] = [:]
    /// Those of them whose answers tell of objects, and whose clients wait for that.
    var tellings: [ObjectIdentifier: Telling] = [:]
    var hitForMiss: HitForMiss
    var pauses = UpstreamPauses()
    private var refreshes = Refreshes()
    /// What waits for a commit or for a slow reader, by number; given what was read of the store for it.
    private var errands: [Int: ([StoredDocument]) -> Void] = [:]
    private var errandNumber = 0
    /// Bytes of bodies that flights keep, and that readers who lag behind a finished one have still to take.
    private var held = 0
    /// How many there may be; past it flights are mere relays, which go at their readers' pace.
    private var heldLimit: Int { 8 * settings.limits.document }

    /// - Parameter clients: one per upstream, in their order.
    init(
        loop: EventLoop,
        settings: Settings,
        clients: [UpstreamClient],
        cache: AnswerCache,
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

    /// Seconds since 1970.
    var now: Int64 { Int64(loop.wallSeconds) }

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
        stored: ReadyAnswer?,
        variants: [Variant] = [],
        parts: ReadyAnswer? = nil,
        completes: Bool = false
    ) {
        let sharesNothing = demand.isShareable && hitForMiss.contains(demand.digest, now: loop.now)
        if demand.isShareable, !sharesNothing, let flight = joinable[demand.digest], flight.isJoinable(by: demand),
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
    ///   of it is for anybody else. Who has been put together with others in vain is not so again.
    func askApart(_ relays: [Relay], by selection: VarySelection?, stored: ReadyAnswer?) {
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
    func askAlone(_ relay: Relay, stored: ReadyAnswer? = nil) {
        if isHeldBack(relay, stored: stored) { return }
        start(relay.demand, stored: nil, isJoinable: false).join(relay.demand, relay.reply, isLeader: true)
    }

    /// Fetches without conditions for clients whom a 304 did not help; together.
    ///
    /// Behind a stale answer nobody waits: there the refresh goes on, since a 304 of the same kind would come each time.
    func askAgain(_ relays: [Relay], stored: ReadyAnswer?, insteadOf helpless: Flight) {
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
    func refresh(_ demand: Demand, stored: ReadyAnswer) {
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
        stored: ReadyAnswer?,
        variants: [Variant] = [],
        isJoinable: Bool = true,
        isConditional: Bool = true,
        parts: ReadyAnswer? = nil,
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
        if demand.isShareable, isJoinable { joinable[demand.digest] = flight }
        inAir[ObjectIdentifier(flight)] = flight
        metrics.upstream(demand.upstream.name).started()
        let request = demand.upstreamRequest(validation, completing: flight.completing)
        flight.depart(request, through: clients[demand.upstream.index])
        return flight
    }

    /// A flight takes no more followers.
    func retire(_ flight: Flight) {
        if joinable[flight.demand.digest] === flight { joinable[flight.demand.digest] = nil }
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

    private func ended(_ flight: AnyObject, upstream: Upstream, _ result: FlightResult, since start: Int64) {
        inAir[ObjectIdentifier(flight)] = nil
        let seconds = Double(max(0, cache.now - start)) / 1_000_000
        let metrics = metrics.upstream(upstream.name)
        switch result {
        case .answered(let status): metrics.ended(status: status, seconds: seconds)
        case .failed(let error): metrics.ended(result: error.label, seconds: seconds)
        }
    }

    // MARK: Memory

    /// Counts bytes of a body that a flight keeps; false when there are too many, and it has to let go of them.
    func hold(_ bytes: Int) -> Bool {
        held += bytes
        return held <= heldLimit
    }

    /// Counts bytes no longer, once none of these clients has any of them to take.
    func release(_ bytes: Int, after replies: [any Recipient] = []) {
        guard let slow = replies.first(where: { $0.backlog > 0 }) else {
            held -= bytes
            return
        }
        let (number, flights) = (errand { [self] _ in release(bytes, after: replies) }, LoopReference(self, on: loop))
        slow.onDrain(below: 1) { flights.enqueue { $0.run(errand: number) } }
    }

    // MARK: Writes and cleanings

    /// A write was answered, or never will be: flights of its upstream take no more followers, and those for what it
    /// invalidated store nothing.
    ///
    /// - Parameter time: when it was over.
    func writeAnswered(
        upstream: Upstream,
        invalidated paths: [String],
        matching patterns: [InvalidationPattern] = [],
        at time: Int64
    ) {
        for flight in flightsThatMayStore where flight.demand.upstream === upstream {
            retire(flight)
            flight.overtakenAt = flight.overtakenAt ?? time
            let path = flight.demand.key.url.prefix { $0 != "?" }
            if paths.contains(where: { $0 == path }) || patterns.contains(where: { $0.matches(url: path) }) {
                flight.storesNothing = true
            }
        }
        hitForMiss.forget(upstream: upstream.name, paths: paths)
    }

    /// The store was cleaned: nothing that is in the air now may bring back what was removed.
    func cleaned() {
        for flight in flightsThatMayStore {
            retire(flight)
            flight.storesNothing = true
        }
        hitForMiss.forgetAll()
    }

    // MARK: Answers

    /// What to store of an answer whose head has come; nil for nothing.
    func storage(of head: UpstreamHead, in flight: Flight) -> Flight.Storing? {
        let demand = flight.demand
        // A stream of events has no end to wait for, and no use as a document.
        guard demand.isShareable || demand.isForParts, !flight.storesNothing, !head.isEventStream, !head.isGarbled
        else { return nil }
        let part = part(in: head, of: flight)
        // An answer to a request for a part is kept where it is the part, or the whole instead.
        if part == nil, head.status == 206 || flight.asksForRange && (head.status != 200 || head.isCoded) { return nil }
        let policy = policy(of: head, in: flight)
        guard policy.storability == .yes else { return nil }
        // An error, cacheable as it may be, never takes the place of a good answer.
        let isFailure = head.status >= 500 || isFailure(head, in: flight)
        if isFailure, let stored = flight.stored, stored.answer.status < 500 { return nil }
        if let length = head.fields.text("content-length").flatMap(Int.init), length > settings.limits.document {
            return nil
        }
        let (route, request) = (demand.overrides, demand.request.fields)
        guard let selection = demand.upstream.selection(policy, route: route, request: request) else { return nil }
        let fields = StoredFields.storable(
            head.fields,
            leavingOut: policy.fieldsNotStored + policy.fieldsNotReused,
            replaysCookies: demand.upstream.settings.cookies == .replay
        )
        // Parts of a body that is served otherwise than it came would not fit the whole.
        if part != nil, isServedTransformed(head, in: flight) { return nil }
        let dated = StoredFields.dated(fields, at: now)
        return Flight.Storing(policy: policy.answer, fields: dated, selection: selection, part: part)
    }

    /// The reading of an answer whose head has come.
    func policy(of head: UpstreamHead, in flight: Flight) -> ResponsePolicy {
        let demand = flight.demand
        return ResponsePolicy(
            request: RequestFacts(method: demand.request.method, fields: demand.request.fields),
            status: head.status,
            fields: head.fields,
            requestTime: flight.requestTime,
            responseTime: now,
            settings: demand.upstream.policySettings,
            route: demand.overrides
        )
    }

    /// Whether an answer's body is served otherwise than it came.
    func isServedTransformed(_ head: UpstreamHead, in flight: Flight) -> Bool {
        flight.demand.upstream.settings.rewriteLinks && flight.demand.upstream.isJSON(head.fields)
    }

    /// Makes an answer ready that has come whole and is not stored.
    func unkept(_ head: UpstreamHead, body: [UInt8], from flight: Flight) -> ReadyAnswer {
        let demand = flight.demand
        let answer = Answer(
            key: demand.key,
            document: nil,
            status: head.status,
            fields: StoredFields.storable(head.fields),
            body: body,
            policy: policy(of: head, in: flight).answer,
            selection: .none,
            form: .received,
            objects: []
        )
        return ReadyAnswer(answer, digest: demand.digest, upstream: demand.upstream, base: demand.base)
    }

    /// Keeps what a POST has made of its target, once what that invalidated is gone.
    func keep(_ posted: PostedAnswer, of demand: Demand) {
        let ready = ReadyAnswer(posted.answer, digest: demand.digest, upstream: demand.upstream, base: demand.base)
        let reading = demand.upstream.reading(
            demand,
            method: "GET",
            status: posted.answer.status,
            fields: posted.answer.fields
        )
        // A write's answer is as new as its completion (law 3).
        cache.keep(ready, sent: cache.now, age: 0, reading: reading, overtakenAt: nil)
    }

    /// All flights whose answers may still be kept.
    private var flightsThatMayStore: [Flight] {
        inAir.values.compactMap { $0 as? Flight } + settling.values
    }

    /// Does something here once everything that the store was given so far is committed.
    func afterCommits(_ work: @escaping () -> Void) {
        afterCommits(reading: nil, where: { _ in false }, then: { _ in work() })
    }

    /// The same, with the documents of a key that are wanted.
    func afterCommits(
        reading key: DocumentKey?,
        where isWanted: @escaping @Sendable ([UInt8]) -> Bool,
        then work: @escaping ([StoredDocument]) -> Void
    ) {
        let (number, flights) = (errand(work), LoopReference(self, on: loop))
        Task { [cache] in
            await cache.store.flush()
            var found: [StoredDocument] = []
            // What cannot be read is as good as gone.
            if let key { found = (try? await cache.store.documents(at: key, where: isWanted)) ?? [] }
            flights.enqueue { [found] in $0.run(errand: number, found) }
        }
    }

    /// Does something here once something else is done on other threads.
    func after(_ step: @escaping @Sendable () async -> Void, then work: @escaping () -> Void) {
        let (number, flights) = (errand { _ in work() }, LoopReference(self, on: loop))
        Task {
            await step()
            flights.enqueue { $0.run(errand: number) }
        }
    }

    /// Notes what is to be done here once something on another thread has happened.
    private func errand(_ work: @escaping ([StoredDocument]) -> Void) -> Int {
        defer { errandNumber += 1 }
        errands[errandNumber] = work
        return errandNumber
    }

    private func run(errand number: Int, _ found: [StoredDocument] = []) {
        errands.removeValue(forKey: number)?(found)
    }

    /// Serves a stored answer in the place of an error, or of no answer at all.
    func substitute(
        _ stored: ReadyAnswer,
        forStatus status: Int?,
        error: UpstreamError? = nil,
        to relays: [Relay]
    ) {
        serve(stored, to: relays, as: { .substituted($0.reason, status: status, error: error) })
    }

    /// No answer came, or none that could be used.
    func failed(_ error: UpstreamError, _ flight: Flight, relays: [Relay]) {
        let upstream = flight.demand.upstream.name
        log.debug("upstream failed", metadata: ["error": "\(error.label)", "upstream": "\(upstream)"])
        for relay in relays {
            if let stored = flight.stored, stored.maySubstitute(at: now, for: relay.demand) {
                substitute(stored, forStatus: nil, error: error, to: [relay])
                continue
            }
            count(.error, for: relay)
            relay.reply.refuse(
                .upstreamFailed(error, upstream: upstream, isValidation: flight.stored != nil),
                relay.demand.failed(error)
            )
        }
    }

    /// Counts how a client was answered; what Larder asks for itself is no request.
    func count(_ outcome: Outcome, for relay: Relay) {
        if relay.reply.isRequest { outcomes.count(outcome) }
    }

    /// Answers clients from a ready answer, each in its own view and for its own address.
    ///
    /// - Parameter cookies: the upstream's `Set-Cookie` lines, and others that are for nobody but the one whose request they
    ///   answer.
    func serve(
        _ ready: ReadyAnswer,
        to relays: [Relay],
        as manner: (Demand) -> Manner,
        cookies: [Field] = []
    ) {
        for relay in relays {
            let manner = manner(relay.demand)
            count(manner.outcome(of: ready), for: relay)
            relay.reply.serve(
                cache.shown(ready, to: relay.demand),
                for: relay.demand,
                as: manner,
                isCollapsed: !relay.isLeader,
                cookies: relay.isLeader ? cookies : [],
                now: now
            )
        }
    }
}

/// How a flight ended, for the metrics.
enum FlightResult {
    case answered(status: Int)
    case failed(UpstreamError)
}
