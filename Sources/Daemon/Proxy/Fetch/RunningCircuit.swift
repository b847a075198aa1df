import CachePolicy
import EventLoops
import HTTPSemantics
import Logging
import Settings
import Upstream

/// The circuit of one upstream: performs its `Circuit`'s actions and sends it the events; the upstream loop only.
final class RunningCircuit {
    private(set) var state = Circuit()
    /// By whose rules it is probed: that of the latest request.
    var upstream: ProxiedUpstream
    /// Why there was no response last.
    var error = UpstreamError.cancelled
    private unowned let fetches: Fetches
    private var timer: EventTimer?
    /// Probes under way, by number.
    private var probes: [Int: ConnectionProbe] = [:]
    private var probeCount = 0

    init(of upstream: ProxiedUpstream, fetches: Fetches) { (self.upstream, self.fetches) = (upstream, fetches) }

    private var now: Int64 { fetches.cache.now }

    func handle(_ event: Circuit.Event) {
        let former = state.state
        for action in state.handle(event, at: now, jitter: .random(in: 0..<1)) { perform(action) }
        guard state.state != former else { return }
        let (state, time) = (state.state, RequestClock.wall)
        fetches.metrics.upstream(upstream.name).record { $0.recordCircuit(state, at: time) }
        let subject: Logger.Metadata = ["upstream": "\(upstream.name)"]
        switch (former, state) {
        case (_, .slow):
            let message: Logger.Message =
                "the upstream does not respond in time (patience): clients that may get a stale response get it at once"
            fetches.repeated.log(.warning, message, about: subject)
        case (.slow, .closed): fetches.repeated.log(.notice, "the upstream responds again", about: subject)
        default: break
        }
    }

    private func perform(_ action: Circuit.Action) {
        switch action {
        case .closeConnections: fetches.retireConnections(to: upstream)
        case .wait(let pause): timer = fetches.loop.after(.microseconds(pause)) { [unowned self] in probeIsDue() }
        case .probe: probe()
        }
    }

    private func probeIsDue() {
        // In another mode nothing is probed, and the circuit decides nothing.
        guard fetches.modes.current == .auto else { return fetches.forgetCircuit(of: upstream) }
        handle(.probeIsDue)
    }

    private func probe() {
        let number = probeCount
        probeCount += 1
        let options = upstream.daemon.options(for: upstream.settings)
        let circuit = LoopReference(self, on: fetches.loop)
        probes[number] = ConnectionProbe(to: upstream.url(of: "/"), options: options, loop: fetches.loop) {
            isConnected in
            circuit.enqueue { $0.ended(number, isConnected) }
        }
    }

    private func ended(_ number: Int, _ isConnected: Bool) {
        probes[number] = nil
        handle(.probed(isConnected: isConnected))
    }

    /// Whether a request may be sent now, perhaps as a trial.
    func countTrial() -> Bool { state.countTrial(at: now, jitter: .random(in: 0..<1)) }

    /// Why a request would be held back now; nil if it would be sent.
    var outage: Outage? {
        guard state.holds(at: now) else { return nil }
        return Outage(error: error, secondsLeft: max(1, (state.nextAttempt - now + 999_999) / 1_000_000))
    }
}
