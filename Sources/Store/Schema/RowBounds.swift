import Mapping

/// The numbers and times that rows of a store may have.
///
/// Whoever can write the file can write any number into it. These are far more than a store ever reaches, and so far
/// from the end of 64 bits that no sum of them overflows.
enum RowBounds {
    /// Ids, commit numbers and counts.
    static let numbers: ClosedRange<Int64> = 0...(1 << 52)
    /// The same in a copy: whoever made it must leave the store room to count on.
    static let copiedNumbers: ClosedRange<Int64> = 0...(1 << 48)
    static let copiedIDs: ClosedRange<Int64> = 1...(1 << 48)
    /// Microseconds or seconds of the store's clock; `Age` can move the start of an observation to before 1970.
    static let times: ClosedRange<Int64> = -(1 << 52)...253_402_300_800_000_000
    static let statuses: ClosedRange<Int64> = 100...999
    static let coverages: ClosedRange<Int64> = TagCoverage.rawValues
    static let any: ClosedRange<Int64> = .min ... .max
}

extension QueryRow {
    /// A count or a length; one that no store reaches is cut.
    func count(_ column: Int32) -> Int64 { integer(column).clamped(to: RowBounds.numbers) }

    /// A time in microseconds or seconds; an impossible one is cut.
    func time(_ column: Int32) -> Int64 { integer(column).clamped(to: RowBounds.times) }
}

extension Int64 {
    fileprivate func clamped(to range: ClosedRange<Int64>) -> Int64 {
        Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
    }
}

extension Knowledge {
    /// Whether all its times are possible, and none is later than `latest`.
    func hasPossibleTimes(until latest: Int64 = RowBounds.times.upperBound) -> Bool {
        guard case .groups(let groups) = self else { return true }
        return groups.allSatisfy { group in
            let (clock, doubt) = (group.clock, group.doubt)
            let rest = doubt.flatMap { $0.rest == .min ? nil : $0.rest }
            return [clock.lo, clock.hi, clock.lowerSince, group.contradictedUntil, doubt?.lo, doubt?.hi, rest]
                .allSatisfy { $0.map { RowBounds.times ~= $0 && $0 <= latest } ?? true }
        }
    }
}
