/// A histogram of durations, for events such as fetches and commits; the hit path is not timed.
public struct Histogram: Sendable, Equatable {
    /// The upper bounds of the buckets, in seconds; one more bucket takes the rest.
    public static let bounds: [Double] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

    /// A histogram of no events.
    public init() {}

    /// By bucket, not cumulative.
    public private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// In seconds.
    public private(set) var sum = 0.0

    /// Counts an event that took this long.
    public mutating func record(seconds: Double) {
        counts[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count] += 1
        sum += seconds
    }

    public var count: UInt64 { counts.reduce(0, +) }

    /// The duration that this share of the events, from 0 to 1, did not exceed; nil without events.
    ///
    /// Within a bucket the events count as spread evenly. Beyond the last bound it is that bound.
    public func quantile(_ share: Double) -> Double? {
        let total = count
        guard total > 0 else { return nil }
        let wanted = share * Double(total)
        var below: UInt64 = 0
        for (index, count) in counts.enumerated() where count > 0 {
            guard Double(below + count) >= wanted, index < Self.bounds.count else {
                below += count
                continue
            }
            let lower = index == 0 ? 0 : Self.bounds[index - 1]
            return lower + (Self.bounds[index] - lower) * max(0, wanted - Double(below)) / Double(count)
        }
        return Self.bounds.last
    }

    /// Adds the events of another histogram.
    public static func += (left: inout Histogram, right: Histogram) {
        for index in left.counts.indices { left.counts[index] += right.counts[index] }
        left.sum += right.sum
    }

    /// The events since an earlier state of the same histogram.
    public static func - (left: Histogram, right: Histogram) -> Histogram {
        var rest = left
        for index in rest.counts.indices { rest.counts[index] -= min(rest.counts[index], right.counts[index]) }
        rest.sum -= right.sum
        return rest
    }
}
