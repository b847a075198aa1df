import Synchronization

/// A number that only grows: one relaxed atomic add, from any thread.
package struct Counter: ~Copyable, Sendable {
    private let count = Atomic<UInt64>(0)

    @inline(__always)
    package func add(_ amount: UInt64 = 1) {
        count.wrappingAdd(amount, ordering: .relaxed)
    }

    package var value: UInt64 { count.load(ordering: .relaxed) }
}

/// A number that goes up and down, from any thread.
package struct Gauge: ~Copyable, Sendable {
    private let level = Atomic<Int>(0)

    @inline(__always)
    func add(_ amount: Int = 1) {
        level.wrappingAdd(amount, ordering: .relaxed)
    }

    @inline(__always)
    func subtract(_ amount: Int = 1) {
        level.wrappingSubtract(amount, ordering: .relaxed)
    }

    package func set(_ value: Int) {
        level.store(value, ordering: .relaxed)
    }

    package var value: Int { level.load(ordering: .relaxed) }
}

/// Counts of durations by their size.
///
/// A value behind a lock, for what happens once per fetch; nothing on the way of a hit is timed.
package struct Histogram: Sendable {
    /// The upper bounds of the buckets, in seconds; one more bucket takes the rest.
    package static let bounds: [Double] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

    package private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    package private(set) var sum = 0.0

    mutating func record(seconds: Double) {
        counts[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count] += 1
        sum += seconds
    }
}
