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
}
