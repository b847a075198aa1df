/// One request with `Larder-Live`: what was shown, and what the upstream's answer makes of it.
///
/// To the flight that fetches the answer it is a recipient like any other, so it joins, coalesces and is stored as a plain
/// request is. It takes the whole answer before it tells of it: whether it differs is known at the end.
///
/// The upstream loop only; `LiveExchanges` keeps it until its stream is over.
final class LiveExchange: Recipient {
    private let demand: Demand
    private let flights: Flights
    private let stream: LiveStream
    /// The event that showed what is stored, with what tells its age later.
    private var shown: (event: LiveEvent, ready: ReadyAnswer)?
    /// The answer as far as it has come.
    private var arriving: LiveEvent?
    /// Whether the upstream's word has been given: what still comes is of no interest.
    private var isSettled = false
    /// Bytes gathered that nobody else keeps, and that count as held.
    private var charge = 0
    private var isKept = true
    private var departures: [@Sendable () -> Void] = []
    private var drains: [@Sendable () -> Void] = []

    init(_ demand: Demand, _ reply: Reply, flights: Flights, exchanges: LiveExchanges) {
        self.demand = demand
        self.flights = flights
        stream = LiveStream(reply, loop: flights.loop, window: flights.settings.limits.relayWindow)
        exchanges.insert(self)
        stream.whenOver { [unowned self, unowned exchanges] in
            release()
            exchanges.remove(self)
        }
    }

    // MARK: For the proxy

    /// Begins the stream; its head tells what is done, each event how its answer came about.
    func open(_ cacheStatus: String) {
        var fields = Fields()
        fields.append("Cache-Status", cacheStatus)
        demand.upstream.addCORS(to: &fields, for: demand.request.fields)
        stream.open(fields)
    }

    /// Tells what is stored.
    func show(_ ready: ReadyAnswer, as manner: Manner) {
        let event = event(.cached, ready, as: manner, isCollapsed: false, cookies: [], now: flights.now)
        shown = (event, ready)
        stream.send(event)
    }

    /// Ends the stream without the upstream's word.
    func end() {
        isSettled = true
        stream.end()
    }

    // MARK: The upstream's answer

    func informational(status: Int, fields: Fields) {}

    func begin(status: Int, reason: String?, fields: Fields, framing: ReplyFraming, isKept: Bool) {
        guard !isSettled else { return }
        if fields.isEventStream { return give(up: .liveEventStream(upstream: demand.upstream.name)) }
        self.isKept = isKept
        arriving = LiveEvent(
            kind: .fresh,
            status: status,
            age: AgeField.parse(fields) ?? 0,
            fields: Self.told(fields),
            body: LiveBody()
        )
    }

    func write(_ piece: [UInt8]) {
        guard !isSettled, let count = arriving?.body?.count else { return }
        guard count + piece.count <= flights.settings.limits.document else {
            return give(up: .liveTooLarge(limit: flights.settings.limits.document))
        }
        arriving?.body?.append(piece)
        guard !isKept else { return }
        charge += piece.count
        if !flights.hold(piece.count) { give(up: .liveTooMuch) }
    }

    func keptNoLonger() {
        guard !isSettled, isKept, let count = arriving?.body?.count else { return }
        isKept = false
        charge += count
        if !flights.hold(count) { give(up: .liveTooMuch) }
    }

    func finish() {
        guard !isSettled, let answer = arriving, let fields = answer.fields, let status = answer.status else { return }
        if demand.upstream.isFailure(status: status, fields: fields) {
            fail(.upstreamAnswered(status, upstream: demand.upstream.name), with: answer)
        } else {
            settle(answer)
        }
    }

    func abort() {
        fail(.answerBrokeOff(upstream: demand.upstream.name))
    }

    func respond(status: Int, fields: Fields, body: [UInt8]) {
        settle(
            LiveEvent(
                kind: .fresh,
                status: status,
                age: AgeField.parse(fields) ?? 0,
                fields: Self.told(fields),
                body: LiveBody(body)
            )
        )
    }

    func serve(
        _ ready: ReadyAnswer,
        for demand: Demand,
        as manner: Manner,
        isCollapsed: Bool,
        cookies: [Field],
        now: Int64
    ) {
        if case .substituted(_, let status, let error) = manner {
            let upstream = demand.upstream.name
            let problem: ProblemDocument =
                if let status {
                    .upstreamAnswered(status, upstream: upstream)
                } else {
                    .upstreamFailed(error ?? .cancelled, upstream: upstream)
                }
            return fail(problem)
        }
        settle(event(.fresh, ready, as: manner, isCollapsed: isCollapsed, cookies: cookies, now: now))
    }

    func refuse(_ problem: ProblemDocument, _ status: CacheStatus? = nil) {
        fail(problem)
    }

    // MARK: The flow

    /// Nothing while the answer is gathered, lest the flight wait for this reader; then what keeps the pieces in use.
    var backlog: Int { isSettled && !stream.isOver ? arriving?.body?.count ?? 0 : 0 }

    func onDrain(below limit: Int, _ callback: @escaping @Sendable () -> Void) {
        if stream.isOver { callback() } else { drains.append(callback) }
    }

    func onDisconnect(_ callback: @escaping @Sendable () -> Void) {
        if isSettled || stream.isOver { callback() } else { departures.append(callback) }
    }

    // MARK: -

    /// Gives the upstream's answer, if it is another than was shown.
    private func settle(_ answer: LiveEvent) {
        guard !isSettled else { return }
        var answer = answer
        if let shown, answer.tells(sameAs: shown.event) {
            answer.kind = .unchanged
            answer.body = nil
            arriving = nil
        }
        conclude(answer)
    }

    /// Tells why there is no answer, and how old what was shown has become.
    private func fail(_ problem: ProblemDocument, with answer: LiveEvent? = nil) {
        guard !isSettled else { return }
        if answer == nil { arriving = nil }
        conclude(
            LiveEvent(
                kind: .error,
                problem: problem,
                status: answer?.status,
                age: shown.map { max(0, $0.ready.policy.age(at: flights.now)) },
                fields: answer?.fields,
                body: answer?.body
            )
        )
    }

    /// Leaves the flight with this problem.
    private func give(up problem: ProblemDocument) {
        fail(problem)
        leave()
    }

    private func conclude(_ event: LiveEvent) {
        isSettled = true
        stream.send(event)
        stream.end()
    }

    /// Tells the flight that nobody waits here any more.
    private func leave() {
        for callback in departures { callback() }
        departures = []
    }

    /// The stream is over: nothing is held any more.
    private func release() {
        isSettled = true
        arriving = nil
        leave()
        flights.release(charge)
        charge = 0
        for callback in drains { callback() }
        drains = []
    }

    private func event(
        _ kind: LiveEvent.Kind,
        _ ready: ReadyAnswer,
        as manner: Manner,
        isCollapsed: Bool,
        cookies: [Field],
        now: Int64
    ) -> LiveEvent {
        var fields = ready.fields
        ready.addHistory(to: &fields, as: manner, sent: ready.answer.status, isCollapsed: isCollapsed, now: now)
        if demand.upstream.settings.cookies != .replay { fields.lines += cookies }
        return LiveEvent(
            kind: kind,
            status: ready.answer.status,
            age: max(0, ready.policy.age(at: now)),
            fields: Self.told(fields),
            body: LiveBody(ready.body)
        )
    }

    /// The fields that an event tells: not those that speak to a browser of the exchange as such.
    private static func told(_ fields: Fields) -> Fields {
        var told = fields
        CORS.removeFields(from: &told)
        return told
    }
}
