import CachePolicy
import Settings

/// What is done with a retrieval that no stored whole answers, once it is known what is stored in parts.
///
/// A pure function, as `Decision` is.
package enum PartDecision {
    case answer(ReadyResponse, CacheUse)
    /// The upstream is asked: `stored` is what a 304 would renew and what may stand in for an error, and `completing` the
    /// parts of which only the gap is asked for.
    case ask(Demand, stored: ReadyResponse?, completing: ReadyResponse?)

    /// - Parameters:
    ///   - stored: the whole that is stored, but may not be served without asking.
    ///   - parts: what is stored in parts and is of the variant asked for.
    ///   - limit: the length of the largest document that is stored.
    package init(_ demand: Demand, stored: ReadyResponse?, parts: ReadyResponse?, mode: Mode, limit: Int, now: Int64) {
        if demand.range != nil {
            self = Self.ranges(demand, stored: stored, parts: parts, mode: mode, now: now)
        } else if let parts, stored == nil {
            let demand = demand.asking(because: .partial)
            let isCompletable = demand.isShareable && parts.isCompletable(limit: limit)
            self = .ask(demand, stored: nil, completing: isCompletable ? parts : nil)
        } else {
            self = .ask(demand, stored: stored, completing: nil)
        }
    }

    private static func ranges(
        _ demand: Demand,
        stored: ReadyResponse?,
        parts: ReadyResponse?,
        mode: Mode,
        now: Int64
    ) -> PartDecision {
        // The newest counts, be it the whole or not.
        let parts = parts.flatMap { parts in
            stored.map { $0.policy.responseTime > parts.policy.responseTime } ?? false ? nil : parts
        }
        if let parts, demand.mayBeServed(parts: parts), SelectedPart(of: parts, for: demand.request, now: now) != nil {
            return held(parts, demand, mode: mode, now: now)
        }
        // A part beside an older whole would be two truths about one document: the whole is renewed, and the range cut from it.
        if let stored, demand.isStorable {
            return .ask(demand.forWhole, stored: stored, completing: nil)
        }
        return .ask(parts == nil ? demand : demand.asking(because: .partial), stored: stored, completing: nil)
    }

    /// What is done where all that is asked for is stored in parts, as their freshness has it.
    private static func held(_ parts: ReadyResponse, _ demand: Demand, mode: Mode, now: Int64) -> PartDecision {
        switch (mode, parts.policy.reuse(at: now, for: mode == .offline ? .none : demand.directives)) {
        case (_, .fresh):
            return .answer(parts, .hit(isStale: false))
        case (.offline, _):
            return .answer(parts, .offline(isStale: true))
        case (.online, .stale(_, _, let allowed)) where allowed.contains(.byRequest):
            return .answer(parts, .hit(isStale: true))
        case (.online, .mustValidate(_, let reason, _)) where reason.isOfRequest:
            return .ask(demand.asking(because: .request), stored: parts, completing: nil)
        case (.online, _):
            return .ask(demand.asking(because: .stale), stored: parts, completing: nil)
        }
    }
}
