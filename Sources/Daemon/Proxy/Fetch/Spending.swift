import Basics
import CachePolicy
import EventLoops
import HTTPSemantics
import Store

/// Who spent what of the upstreams' rate limits: the counted requests of the last hour by minute, and of all time.
///
/// A value for one thread. Bounded: beyond `maximumSpenders` spenders, further ones are counted together.
struct Spending {
    struct Minute: Sendable {
        /// Counts up from 1970.
        let number: Int64
        fileprivate(set) var counts: [BudgetSpender: Int] = [:]
    }

    /// Those of the last hour that have any, the oldest first.
    private(set) var minutes: [Minute] = []
    private(set) var totals: [BudgetSpender: Int] = [:]
    private static let maximumSpenders = 256

    /// Counts a request.
    ///
    /// - Parameter now: in seconds since 1970.
    mutating func count(_ spender: BudgetSpender, now: Int64) {
        forget(before: now)
        if minutes.last?.number != now / 60 { minutes.append(Minute(number: now / 60)) }
        Self.add(spender, to: &minutes[minutes.endIndex - 1].counts)
        Self.add(spender, to: &totals)
    }

    private static func add(_ spender: BudgetSpender, to counts: inout [BudgetSpender: Int]) {
        var spender = spender
        if counts.count >= maximumSpenders, counts[spender] == nil {
            (spender.principal, spender.program) = (TopLists.othersName, TopLists.othersName)
            if counts.count >= 2 * maximumSpenders, counts[spender] == nil { spender.resource = nil }
        }
        counts[spender, default: 0] += 1
    }

    /// Forgets minutes that are more than an hour old, or in the future of a clock that was set back.
    mutating func forget(before now: Int64) {
        minutes.removeAll { !(now / 60 - 59...now / 60).contains($0.number) }
    }

    /// The requests of each limit in the last ten minutes, whatever the program.
    func pace(now: Int64) -> [BudgetSpender: Int] {
        var sums: [BudgetSpender: Int] = [:]
        for minute in minutes where minute.number > now / 60 - 10 {
            for (spender, count) in minute.counts { sums[spender.ofAnyProgram, default: 0] += count }
        }
        return sums
    }
}

/// Who sends requests that count against a limit.
package struct BudgetSpender: Hashable, Sendable {
    package var upstream: String
    package var resource: String?
    /// The label of its credentials.
    package var principal: String?
    /// The client's program: the first product in its `User-Agent`.
    package var program: String?

    fileprivate var ofAnyProgram: BudgetSpender {
        BudgetSpender(upstream: upstream, resource: resource, principal: principal, program: nil)
    }

    fileprivate var order: String { [upstream, resource, principal, program].map { $0 ?? "" }.joined(separator: "\n") }
}

/// What is left of the upstreams' rate limits, and who spent it.
package struct BudgetReport: Sendable {
    /// One limit of one credential.
    package struct Limit: Sendable {
        package var upstream: String
        package var resource: String?
        /// The label of the credential.
        package var principal: String?
        package var limit: Int64?
        package var remaining: Int64
        /// When it is renewed, in seconds since 1970.
        package var reset: Int64
        /// When nothing is left at the pace of the last ten minutes, if that is before; in seconds since 1970.
        package var usedUp: Int64?
    }

    /// The requests of a spender in a minute.
    package struct Expense: Sendable {
        /// When it began, in seconds since 1970.
        package var minute: Int64
        package var spender: BudgetSpender
        package var requests: Int
    }

    /// Those with the smallest share left first.
    package var limits: [Limit] = []
    /// Those of the last hour; the latest, and of a minute the largest, first.
    package var expenses: [Expense] = []
    /// Since the daemon started.
    package var totals: [(spender: BudgetSpender, requests: Int)] = []

    package init() {}
}

extension Fetches {
    /// Counts a request that counts against a limit.
    func spent(_ request: ProxyRequest, scope: BackOff.Scope) {
        let spender = BudgetSpender(
            upstream: request.upstream.name,
            resource: scope.name,
            principal: principals.label(of: request.key.principal),
            program: request.message.fields[first: "user-agent"].flatMap(ClientProgram.name)
        )
        spending.count(spender, now: wall)
    }

    /// What is left of the limits of the upstreams with these names and keys, and who spent it.
    func budgets(of upstreams: [(name: String, key: UpstreamKey)]) -> BudgetReport {
        let now = wall
        spending.forget(before: now)
        let (pace, names) = (spending.pace(now: now), Dictionary(upstreams.map { ($0.key, $0.name) }) { $1 })
        var report = BudgetReport()
        for (place, budget) in backOffs.budgets.entries {
            guard budget.isCurrent(at: loop.now), let end = budget.end, let name = names[place.credential.upstream]
            else { continue }
            var limit = BudgetReport.Limit(upstream: name, remaining: max(0, budget.remaining), reset: 0)
            (limit.resource, limit.limit) = (place.scope.name, budget.limit)
            limit.principal = principals.label(of: place.credential.principal)
            let seconds = Int64((end - loop.now) / 1_000_000_000)
            limit.reset = now + seconds
            let spender = BudgetSpender(
                upstream: name,
                resource: limit.resource,
                principal: limit.principal,
                program: nil
            )
            if let spent = pace[spender] {
                let left = Double(limit.remaining) * 600 / Double(spent)
                if left < Double(seconds) { limit.usedUp = now + Int64(left) }
            }
            report.limits.append(limit)
        }
        report.limits.sort { ($0.share, $0.upstream) < ($1.share, $1.upstream) }
        for minute in spending.minutes.reversed() {
            for (spender, count) in minute.counts.sorted(by: { $0.value > $1.value }) {
                report.expenses.append(.init(minute: minute.number * 60, spender: spender, requests: count))
            }
        }
        report.totals = spending.totals.sorted { $0.key.order < $1.key.order }.map { ($0.key, $0.value) }
        return report
    }
}

extension ProxyCore {
    /// What is left of the upstreams' rate limits, and who spent it.
    package func budgets() -> BudgetReport {
        fetches.budgets(of: configuration.value.upstreams.map { ($0.name, $0.storeKey) })
    }
}

extension BudgetReport.Limit {
    fileprivate var share: Double { limit.map { Double(remaining) / Double(max($0, 1)) } ?? (remaining == 0 ? 0 : 1) }
}
