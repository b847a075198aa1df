package import HTTPSemantics

/// What is left of one of an upstream's rate limits, for one credential and one resource.
///
/// A request reserves one when it is sent. The upstream's own words replace what was computed. Times are in ns of one clock that
/// is never set, so that a wall clock which jumps changes nothing; whatever an upstream says, its words hold for an hour at most.
package struct Budget: Sendable, Equatable {
    /// How much the client of a request needs the upstream.
    package enum Urgency: Sendable {
        /// No client waits for the response: a refresh, a question about a doubt, a stream that has something to show.
        case background
        /// A stored response may be served in its place.
        case replaceable
        /// Nothing else will do.
        case needed
    }

    /// A request that was sent and counts until its response comes.
    package struct Reservation: Sendable {
        /// The `statements` when it was sent.
        fileprivate let statements: Int
    }

    /// The requests of a period; nil if unknown.
    package private(set) var limit: Int64?
    /// What is left, by the upstream's words and the requests sent since; negative if more were sent.
    package private(set) var remaining: Int64
    /// The end of the period; nil if unknown, and then nothing is ever held back.
    package private(set) var end: UInt64?
    /// How often words of the upstream have replaced what was known.
    private var statements = 0
    private var underWay: Int64 = 0

    /// The longest time for which an upstream's words hold, in seconds: a long ban must not last for days.
    package static let longest: Int64 = 3_600

    /// Reads a response's fields; nil if they say nothing of a limit.
    ///
    /// - Parameters:
    ///   - now: in ns.
    ///   - wall: in seconds since 1970; only compared with the fields.
    package init?(_ fields: Fields, now: UInt64, wall: Int64) {
        guard RateLimitFields.areIn(fields) else { return nil }
        let clock = RateLimitFields.clock(fields, now: wall)
        guard let state = RateLimitFields.limit(fields, now: clock), state.limit != 0 else { return nil }
        (limit, remaining) = (state.limit, max(0, state.remaining))
        end = state.reset.map { now + UInt64(max(0, min($0 - clock, Self.longest))) * 1_000_000_000 }
    }

    /// Whether the period is known, and is not over.
    package func isCurrent(at now: UInt64) -> Bool { end.map { $0 > now } ?? false }

    package func isUsedUp(at now: UInt64) -> Bool { isCurrent(at: now) && remaining <= 0 }

    /// Whether a request may be sent.
    ///
    /// - Parameter reserve: the share of the limit, in percent, below which background requests stop; below half of it, those stop
    ///   whose clients can have a stored response. Others go on to the end.
    package func admits(_ urgency: Urgency, reserve: Int, at now: UInt64) -> Bool {
        guard isCurrent(at: now) else { return true }
        let share = (limit ?? 0) / 200 * Int64(reserve) + (limit ?? 0) % 200 * Int64(reserve) / 200
        return switch urgency {
        case .background: remaining > 2 * share
        case .replaceable: remaining > share
        case .needed: remaining > 0
        }
    }

    /// Counts a request that is sent now.
    package mutating func reserve() -> Reservation {
        underWay += 1
        remaining -= 1
        return Reservation(statements: statements)
    }

    /// Ends a reservation, before the words of its response are heard.
    ///
    /// - Parameter isCounted: whether the upstream counts the request.
    package mutating func end(_ reservation: Reservation, isCounted: Bool) {
        underWay = max(0, underWay - 1)
        if !isCounted { remaining += 1 }
    }

    /// Takes over what a response says.
    ///
    /// The number in it may or may not include each of the requests under way, so what was computed counts within these bounds.
    /// Responses to requests that overlap arrive in any order: of their numbers for one period the smallest counts.
    ///
    /// - Parameter reservation: that of its request; nil if it was sent before anything was known.
    package mutating func hear(_ new: Budget, after reservation: Reservation?) {
        let isOverlapped = (reservation?.statements ?? 0) < statements
        let least = max(0, new.remaining - underWay)
        if let end, let newEnd = new.end, newEnd < end + Self.tolerance {
            if isOverlapped {
                // It may be of a former period.
                if newEnd + Self.tolerance > end { remaining = min(remaining, new.remaining) }
                return
            }
            remaining = newEnd + Self.tolerance > end ? max(least, min(remaining, new.remaining)) : least
        } else {
            remaining = least
        }
        (limit, end) = (new.limit ?? limit, new.end)
        statements += 1
    }

    /// How far the ends of one period may lie apart as two responses show them: they are in whole seconds, by two clocks.
    private static let tolerance: UInt64 = 2_000_000_000

    // MARK: A fleet

    /// What is left for all machines of a fleet.
    package struct Common: Sendable, Equatable {
        package var limit: Int64?
        package var remaining: Int64
        /// The time until the end of the period, in ns.
        package var left: UInt64
        /// How many machines spend it.
        package var machines: Int64

        package init(limit: Int64?, remaining: Int64, left: UInt64, machines: Int64) {
            (self.limit, self.remaining, self.left, self.machines) = (limit, remaining, left, machines)
        }
    }

    /// What the upstream has said, for the other machines; nil if they can do nothing with it, because the period is not known.
    package func common(at now: UInt64) -> Common? {
        guard let end, end > now else { return nil }
        return Common(limit: limit, remaining: remaining, left: end - now, machines: 0)
    }

    /// Takes over what is left for all machines.
    ///
    /// - Parameter takenSince: what this machine has taken and the server did not know.
    package mutating func adopt(_ common: Common, takenSince: Int64, now: UInt64) {
        (limit, end) = (common.limit ?? limit, now + min(common.left, UInt64(Self.longest) * 1_000_000_000))
        remaining = common.remaining - takenSince
    }

    /// Leaves this machine its share, while it does not know what the others spend.
    package mutating func divide(among machines: Int64) {
        (limit, remaining) = (limit.map { $0 / machines }, remaining / machines)
    }
}
