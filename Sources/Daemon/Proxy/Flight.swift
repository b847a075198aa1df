import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
import Store
import Upstream

/// One request on its way to the upstream and back, and everybody who waits for its answer.
///
/// Lives on the upstream loop only. Its life:
/// 1. asked: the request is sent, clients may join;
/// 2. headed: the answer's head is here and it is settled what becomes of it — relayed, answered from what is stored
///    (304, errors), or kept back until it is whole;
/// 3. over: stored or not, and forgotten by `Flights`.
final class Flight: TransferDelegate {
    /// What the request asked for, as the one who started the flight put it.
    let demand: Demand
    /// What a 304 would renew, and what may stand in for an error.
    let stored: ReadyResponse?
    /// What is stored in parts of what is asked for.
    let parts: ReadyResponse?
    /// The same, where only what is missing in them is asked for.
    let completing: ReadyResponse?
    /// When the request was sent, on the store's clock.
    let start: Int64
    /// When the request was sent, in seconds since 1970.
    let requestTime: Int64
    /// What `PendingCommits` gave then for what it may renew.
    let generation: Int
    /// What was asked about stored answers.
    let validation: Validation
    /// When the first write to its upstream that overtook it was answered, on the store's clock: what it brings may be older
    /// than what is known.
    var overtakenAt: Int64?
    /// Set when a write to its URL or a cleaning has overtaken it: its answer is passed on and forgotten.
    var storesNothing = false
    /// The document that it refreshes behind a stale answer.
    var refreshes: Refreshes.Subject?
    /// Whether it has brought something newer than what it refreshes.
    var hasRefreshed = false

    unowned let flights: Flights
    var relays: [Relay] = []
    var transfer: Transfer?
    var head: UpstreamHead?
    var settlement = Settlement.pending
    var buffer: BodyBuffer
    var storing: Storing?
    var isOver = false
    /// The bytes of the body that count as held.
    var charge = 0
    /// Whether the head waits until what it says of an object holds everywhere.
    private var isHeldBack = false
    /// How it ended while the head waited.
    private var ending: Result<TransferSummary, UpstreamError>?
    /// Whether the answer tells of objects, so that its end waits for what it tells to hold everywhere.
    private var tells = false

    /// What becomes of the answer.
    enum Settlement {
        case pending
        /// Passed on as it arrives.
        case relaying
        /// Kept until it is whole, because it is served transformed.
        case gathering
        /// Everybody was answered otherwise; what still arrives is of no interest.
        case answered
    }

    /// What will be stored when the body is whole.
    struct Storing {
        var policy: StoredPolicy
        var fields: Fields
        var selection: VarySelection
        /// Which part of the answer the body is; nil: the whole.
        var part: ContentRange?
    }

    init(
        _ demand: Demand,
        stored: ReadyResponse?,
        validation: Validation,
        parts: ReadyResponse? = nil,
        completes: Bool = false,
        start: Int64,
        requestTime: Int64,
        flights: Flights
    ) {
        self.demand = demand
        self.stored = stored
        self.validation = validation
        self.parts = parts
        completing = completes ? parts : nil
        self.start = start
        self.requestTime = requestTime
        self.flights = flights
        generation = flights.cache.commits.generation(of: stored?.residence.digest ?? demand.digest)
        buffer = BodyBuffer(limit: flights.settings.limits.document)
    }

    /// Whether the request went upstream with a `Range`.
    var asksForRange: Bool { demand.isForParts || completing != nil }

    /// Whether another client may still join: the whole body will be at hand, and it is of the variant asked for.
    func isJoinable(by demand: Demand) -> Bool {
        guard !isOver else { return false }
        return switch settlement {
        // A 304 or a failure would have the stored answer served, which is of one variant.
        case .pending: stored?.answers(demand) ?? true
        // Who insists on asking would get what was said before.
        case .relaying: buffer.isWhole && matches(demand) && !demand.insistsOnAsking && demand.view != .mapped
        case .gathering: buffer.isWhole && matches(demand) && !demand.insistsOnAsking
        case .answered: false
        }
    }

    /// Sends the request.
    func depart(_ request: UpstreamRequest, through client: UpstreamClient) {
        transfer = client.start(request, self)
    }

    /// Lets a client wait for the answer, or gives it what has arrived so far.
    func join(_ demand: Demand, _ reply: any Recipient, isLeader: Bool, hasMoved: Bool = false) {
        let relay = Relay(demand, reply, isLeader: isLeader)
        relay.hasMoved = hasMoved
        relays.append(relay)
        let (flight, reference) = (LoopReference(self, on: flights.loop), LoopReference(relay, on: flights.loop))
        reply.onDisconnect {
            flight.enqueue { flight in reference.onLoop.map(flight.left) }
        }
        guard let head, case .relaying = settlement else { return }
        begin(relay, head)
        for piece in buffer.pieces { relay.write(piece) }
    }

    // MARK: What the upstream says

    func informational(status: Int, fields: Fields) {
        for relay in relays { relay.inform(status: status, fields: fields) }
    }

    func received(head: UpstreamHead) {
        self.head = head
        flights.heedRetryAfter(of: head, to: demand)
        guard let absence = flights.absence(in: head, of: self) else { return proceed(with: head) }
        isHeldBack = true
        flights.note(absence) { [self] in
            isHeldBack = false
            // All of it may be with its clients before the transfer is over; who asks then asks anew.
            flights.retire(self)
            proceed(with: head)
            if let ending { completed(ending) } else { transfer?.resume() }
        }
    }

    private func proceed(with head: UpstreamHead) {
        if !validation.isEmpty, head.status == 304 {
            settlement = .answered
            hasRefreshed = true
            flights.notModified(head, self, for: takeRelays())
            return
        }
        if demand.isHead, head.status == 200, let stored { flights.compare(stored, with: head, self) }
        if let stored, flights.isFailure(head, in: self) {
            let content = takeRelays { stored.maySubstitute(at: flights.now, for: $0.demand) }
            flights.substitute(stored, forStatus: head.status, to: content)
            if relays.isEmpty {
                settlement = .answered
                // The error's body is not worth waiting for.
                transfer?.cancel()
                return
            }
        }
        if completing != nil, head.status == 206 || head.status == 416 || head.fields.isContentCoded,
            !flights.completes(head, in: self)
        {
            // Nobody here asked for a part, nor for a coding: what is stored is of no use, and the whole is fetched.
            settlement = .answered
            flights.askForWhole(takeRelays(), insteadOf: self)
            transfer?.cancel()
            return
        }
        if asksForRange { flights.disbelieveParts(after: head, in: self) }
        settle(head)
    }

    private func settle(_ head: UpstreamHead) {
        do throws(Unstored) {
            storing = try flights.storage(of: head, in: self)
        } catch {
            flights.note(error, of: head, in: self)
        }
        tells = storing != nil && storing?.part == nil && flights.tells(head, in: self)
        flights.noteSharing(of: head, in: self, isStored: storing != nil)
        let isGone = !demand.isHead && (head.status == 404 || head.status == 410)
        let isNews = refreshes != nil || isGone || isAnswer(head)
        if storing == nil, isNews, !storesNothing, !flights.isFailure(head, in: self) {
            hasRefreshed = true
            flights.supersede(self, by: nil)
        }
        // Once the client has the last byte, no worker may still serve the answer that this one takes the place of.
        if let storing, storing.part == nil, let stored {
            flights.cache.memory.remove(stored, at: stored.residence.digest)
        }
        // Events come when they come.
        if head.isEventStream { transfer?.setStallTimeout(nil) }
        // The variant is known now: clients wanting another are fetched for separately, grouped by variant.
        let others = takeRelays { !$0.isLeader && !matches($0.demand) }
        flights.askApart(others, by: storing?.selection, stored: stored)
        // What is not stored is kept only for those who are shown it mapped, and are still here.
        if storing == nil, !isMapped(head) { buffer.letGo() }
        if isServedOtherwise(head) {
            settlement = .gathering
            return
        }
        settlement = .relaying
        for relay in relays { begin(relay, head) }
        giveUpIfUseless()
    }

    /// Whether a head is that of what there is for everybody who asks the same.
    private func isAnswer(_ head: UpstreamHead) -> Bool {
        demand.isShareable && (200..<400).contains(head.status) && ![202, 206, 304].contains(head.status)
    }

    func received(body bytes: UnsafeRawBufferPointer) -> Flow {
        if isHeldBack { return .pause }
        if case .answered = settlement { return .proceed }
        if !buffer.isWhole, isCongested { return .pause }
        let piece = [UInt8](bytes)
        let held = buffer.pieces
        buffer.append(piece)
        if buffer.isWhole {
            charge += piece.count
            if !flights.hold(piece.count) { buffer.letGo() }
        }
        if storing != nil || settlement.isGathering, !buffer.isWhole { outgrew(held) }
        if case .relaying = settlement {
            for relay in relays { relay.write(piece) }
            if !buffer.isWhole { cutLaggards() }
        }
        return .proceed
    }

    func completed(_ result: Result<TransferSummary, UpstreamError>) {
        guard !isHeldBack else { return ending = result }
        isOver = true
        transfer = nil
        switch result {
        case .success(let summary):
            if summary.isCodingWhole { finished() } else { brokeOff() }
            flights.ended(self, result: .answered(status: head?.status ?? 0))
        case .failure(let error):
            failed(error)
            flights.ended(self, result: .failed(error))
        }
        flights.onceTold(by: self) { [self] in releaseCharge() }
    }

    // MARK: -

    /// Whether the variant that a follower asks for is the one that arrives; never where it will not be stored.
    private func matches(_ demand: Demand) -> Bool {
        guard let storing else { return false }
        return storing.selection.matches { demand.request.fields.combinedBytes($0) }
            && (!demand.wantsJSONOnly || demand.upstream.isJSON(storing.fields))
    }

    /// Whether clients are sent something else than what arrives, and have to wait until it is whole.
    private func isServedOtherwise(_ head: UpstreamHead) -> Bool {
        if isMapped(head) { return true }
        guard let storing else { return false }
        if flights.isServedTransformed(head, in: self) { return true }
        // What is missing becomes the whole, and of a whole that is fetched for a range the range is cut.
        return storing.part != nil
            ? completing != nil : head.status == 200 && relays.contains { $0.demand.isForWhole }
    }

    /// Whether somebody is shown the answer as the models have it, which takes the whole of it.
    func isMapped(_ head: UpstreamHead) -> Bool {
        relays.contains { $0.demand.view == .mapped } && demand.upstream.isJSON(head.fields)
    }

    func begin(_ relay: Relay, _ head: UpstreamHead) {
        let terms = storing.map { Terms($0, demand, now: flights.now) }
        relay.begin(head, storedOn: terms, withholdsEnd: terms != nil && tells, now: flights.now)
        flights.count(demand.isShareable || demand.isForParts ? .miss : .bypass, for: relay)
    }
}

extension Flight.Settlement {
    var isGathering: Bool {
        if case .gathering = self { true } else { false }
    }
}
