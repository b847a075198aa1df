import Basics
import CachePolicy
import EventLoops
import HTTPSemantics
import Settings
import Store

/// How this machine and the others of its fleet spend one rate limit together.
///
/// A value for one thread. Each call to the server says what was taken since the one before; its reply says what is left for all,
/// to which what was taken meanwhile is added. Without replies this machine takes its share of what was known last.
struct SpendingTogether {
    /// A call to the server that has no reply yet.
    struct Call: Sendable {
        fileprivate let number: Int
        let requests: Int64
        /// What was taken when it was made, in all.
        fileprivate let taken: Int64
    }

    /// What a reply means for the budget.
    enum Outcome: Equatable {
        case nothing
        /// So much is left, less what this machine has taken and the server did not know.
        case adopt(Budget.Common, takenSince: Int64)
        /// This machine is alone from now on.
        case divide(among: Int64)
    }

    private var taken: Int64 = 0
    /// What a call has said in vain; the next one says it.
    private var unsaid: Int64 = 0
    private var calls = 0
    private var answered = 0
    /// Whether the server did not reply last.
    private(set) var isAlone = false
    /// How many machines there were last.
    private(set) var machines: Int64 = 1
    /// When the last call ended, in ns of the loop's clock.
    private var endedAt: UInt64?

    /// How long a reply is good: what others take meanwhile is not known.
    private static let freshness: UInt64 = 1_000_000_000

    /// Whether a request asks the server before it is sent: once a second, and always while a twentieth or less is left.
    func mustAsk(_ budget: Budget, at now: UInt64) -> Bool {
        guard let endedAt, now < endedAt + Self.freshness else { return true }
        return !isAlone && budget.remaining > 0 && budget.remaining <= (budget.limit ?? 0) / 20
    }

    mutating func begin(_ requests: Int64) -> Call {
        calls += 1
        taken += requests
        return Call(number: calls, requests: requests + exchange(&unsaid, with: 0), taken: taken)
    }

    mutating func end(_ call: Call, _ reply: SharedBudget, at now: UInt64) -> Outcome {
        endedAt = now
        guard reply != .alone else {
            unsaid += call.requests
            return exchange(&isAlone, with: true) ? .nothing : .divide(among: machines)
        }
        // An older reply knows less.
        guard call.number > answered else { return .nothing }
        (answered, isAlone) = (call.number, false)
        guard case .known(let common) = reply else { return .nothing }
        machines = max(1, common.machines)
        return .adopt(common, takenSince: taken - call.taken + unsaid)
    }
}

extension BackOffs {
    /// Begins a call to the server that says what was taken.
    mutating func begin(_ requests: Int64, at place: Place) -> SpendingTogether.Call {
        var one = together[place] ?? SpendingTogether()
        defer { together[place] = one }
        return one.begin(requests)
    }

    mutating func end(_ call: SpendingTogether.Call, _ reply: SharedBudget, at place: Place, now: UInt64) {
        switch together[place]?.end(call, reply, at: now) {
        case nil, .nothing: break
        case .adopt(let common, let takenSince): change(place) { $0.adopt(common, takenSince: takenSince, now: now) }
        case .divide(let machines): change(place) { $0.divide(among: machines) }
        }
    }
}

extension Fetches {
    /// Says to the other machines what a request has changed of its limits.
    func shareSpending(of request: ProxyRequest) {
        let changes = backOffs.takeChanges()
        guard !changes.isEmpty, let fleet, fleet.link.shares(request.upstream.storeKey) else { return }
        for (place, change) in changes where change.requests != 0 || change.stated != nil {
            guard let limit = sharedLimit(place, of: request) else { continue }
            let call = backOffs.begin(change.requests, at: place)
            Task(executorPreference: loop.taskExecutor) { [proxy] in
                await proxy.spend(call, change.stated, at: place, limit, fleet)
            }
        }
    }

    /// Nil without a credential: then an upstream counts by addresses, and each machine has one of its own.
    fileprivate func sharedLimit(_ place: BackOffs.Place, of request: ProxyRequest) -> SharedLimit? {
        let principal = request.key.principal
        var credential: [UInt8] = []
        if principal != .anonymous { credential = Array((principals.label(of: principal) ?? "").utf8) }
        if request.upstream.settings.shared {
            credential += request.message.fields.all("authorization").joined(separator: [0])
        }
        if credential.isEmpty { return nil }
        return SharedLimit(upstream: request.upstream.storeKey, credential: credential, scope: place.scope.description)
    }
}

extension ProxyCore {
    /// Asks the server what is left of a limit before a request that counts against it is sent, unless that is known; returns
    /// whether it has waited.
    func askWhatIsLeft(before plan: Plan) async -> Bool {
        guard let fleet, let request = plan.unheld.sent, fleet.link.shares(request.upstream.storeKey),
            let place = fetches.backOffs.limitedPlace(of: request), let budget = fetches.backOffs.budgets[place],
            (fetches.backOffs.together[place] ?? SpendingTogether()).mustAsk(budget, at: loop.now),
            let limit = fetches.sharedLimit(place, of: request)
        else { return false }
        await spend(fetches.backOffs.begin(0, at: place), nil, at: place, limit, fleet)
        return true
    }

    fileprivate func spend(
        _ call: SpendingTogether.Call,
        _ stated: Budget.Common?,
        at place: BackOffs.Place,
        _ limit: SharedLimit,
        _ fleet: FleetSharing
    ) async {
        let reply = await fleet.link.spend(SharedExpense(requests: call.requests, stated: stated), of: limit)
        fetches.backOffs.end(call, reply, at: place, now: loop.now)
    }
}
