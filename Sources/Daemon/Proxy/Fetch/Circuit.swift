/// Whether requests are sent to one upstream in the mode `auto`.
///
/// ```
///           no responses           a probe connects
///  closed ───────────────► open ──────────────────► half open
///    ▲  │                   ▲  ▲                     │     │
///    │  └──► slow ──────────┘  └─── a trial fails ───┘     │
///    └────────────────────── a response ───────────────────┘
/// ```
///
/// A server that hangs is noticed by its first timeout, and that may take long. Until then clients that may get a stale response lose
/// patience (`patience`), one after the other. After some of them it is slow: requests are sent as before, but such clients get the
/// stale response at once.
///
/// While it is open, no request is sent, and a probe looks once or twice a second whether the upstream accepts connections. A server
/// that hangs accepts them, too. So half open, a request is sent from time to time as a trial; the others get at once what they would
/// get after a failure. Any response closes the circuit.
///
/// This is a value without I/O: events go in with their time, in µs of one clock, and actions come out.
struct Circuit: Hashable {
    enum State: Hashable {
        case closed, slow, open, halfOpen
    }

    enum Event {
        /// A request got no response.
        ///
        /// - Parameters:
        ///   - isTimeout: whether the upstream was waited for in vain, for as long as the config says.
        ///   - since: when the request was sent.
        case noResponse(isTimeout: Bool, since: Int64)
        /// A client got a stale response, because no byte of the upstream's came.
        ///
        /// - Parameter since: when the client began to wait.
        case lostPatience(since: Int64)
        case response
        /// The time of the next probe has come.
        case probeIsDue
        case probed(isConnected: Bool)
    }

    enum Action: Equatable {
        /// Close idle connections: they may lead nowhere, even if the upstream can be reached again.
        case closeConnections
        /// Send the event `probeIsDue` after so many µs.
        case wait(Int64)
        /// Connect, and send the event `probed`.
        case probe
    }

    private(set) var state = State.closed
    /// Requests without a response since the last response.
    private var failures = 0
    private var lastResponse = Int64.min
    /// Clients that lost patience since the last response, each of whom came after the one before had.
    private var losses = 0
    /// When the first of them began to wait.
    private var waitingSince: Int64 = 0
    private var lastLoss = Int64.min
    /// When the upstream is asked next, by a probe or a trial.
    private(set) var nextAttempt: Int64 = 0
    /// Trials since the last response, or since a probe failed.
    private var trials = 0

    /// Quick failures in a row that open the circuit, and clients that make it slow.
    ///
    /// One alone may be the request's fault. A timeout alone suffices.
    static let failuresToOpen = 3
    /// How long clients must have waited until it is slow: where `patience` is short, several lose it in a moment.
    static let leastWait: Int64 = 2_000_000
    /// The longest time between two probes; half of it at the least, so that several Larders do not probe in step.
    static let probeInterval: Int64 = 1_000_000
    /// The longest time between two trials: shorter than the default timeout of one, so that one is always under way.
    static let longestPause: Int64 = 16_000_000

    /// - Parameter jitter: a random number in 0 ..< 1.
    mutating func handle(_ event: Event, at now: Int64, jitter: Double) -> [Action] {
        switch event {
        case .response:
            (state, failures, losses, trials, lastResponse) = (.closed, 0, 0, 0, now)
            return []
        case .lostPatience(let since):
            // Those who have waited at the same time have seen the same.
            guard state == .closed, since > lastResponse, since >= lastLoss else { return [] }
            if losses == 0 { waitingSince = since }
            (losses, lastLoss) = (losses + 1, now)
            guard losses >= Self.failuresToOpen, now - waitingSince >= Self.leastWait else { return [] }
            state = .slow
            return [wait(from: now, jitter)]
        case .noResponse(let isTimeout, let since):
            // The upstream has responded to others meanwhile: it can be reached.
            guard since > lastResponse else { return [] }
            failures += isTimeout ? Self.failuresToOpen : 1
            guard state == .halfOpen || state != .open && failures >= Self.failuresToOpen else { return [] }
            state = .open
            return [.closeConnections, wait(from: now, jitter)]
        case .probeIsDue:
            // While it is slow, there is nothing to find out: it accepts connections, and has requests.
            guard state == .open || state == .slow else { return [] }
            return (state == .open ? [.probe] : []) + [wait(from: now, jitter)]
        case .probed(let isConnected):
            guard state == .open else { return [] }
            guard isConnected else {
                trials = 0
                return []
            }
            state = .halfOpen
            if trials == 0 { nextAttempt = now }
            return []
        }
    }

    private mutating func wait(from now: Int64, _ jitter: Double) -> Action {
        let pause = Self.probeInterval / 2 + Int64(Double(Self.probeInterval / 2) * jitter)
        nextAttempt = max(now + pause, trials == 0 ? 0 : nextAttempt)
        return .wait(pause)
    }

    /// Whether a request would be held back now.
    func holds(at now: Int64) -> Bool {
        switch state {
        case .closed, .slow: false
        case .open: true
        case .halfOpen: now < nextAttempt
        }
    }

    /// Whether a request may be sent now; half open, it is a trial, and the next one has to wait longer.
    mutating func countTrial(at now: Int64, jitter: Double) -> Bool {
        guard !holds(at: now) else { return false }
        guard state == .halfOpen else { return true }
        let pause = min(Self.longestPause, 1_000_000 << Int64(min(trials, 5)))
        trials += 1
        nextAttempt = now + pause / 2 + Int64(Double(pause / 2) * jitter)
        return true
    }
}
