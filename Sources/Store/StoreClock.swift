import Glibc
import Synchronization

/// Where a store's clock takes its time from; replaced in tests.
public struct TimeSource: Sendable {
    /// Wall-clock time in microseconds since 1970.
    public let wall: @Sendable () -> Int64

    /// Microseconds that passed since some fixed moment, also during suspend.
    public let elapsed: @Sendable () -> Int64

    /// Makes a source out of its two readings.
    public init(wall: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> Int64) {
        self.wall = wall
        self.elapsed = elapsed
    }

    /// The machine's clocks.
    public static let system = TimeSource(
        wall: { read(CLOCK_REALTIME) },
        // Unlike CLOCK_MONOTONIC, it goes on while the machine is suspended.
        elapsed: { read(CLOCK_BOOTTIME) }
    )

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        // Cannot fail: both clocks exist on every Linux that runs us.
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}

/// The store's own clock: it is persisted, never goes back, and never gives one time twice.
///
/// It starts at the wall clock or at the highest time the store has ever committed, whichever is later, and from there
/// counts elapsed time alone; setting the machine's clock does not move it. Should elapsed time itself go back, it creeps on
/// until that has caught up: what is observed later has a later time whatever happens.
public final class StoreClock: Sendable {
    private let source: TimeSource
    private let offset: Int64
    private let last: Atomic<Int64>

    init(source: TimeSource, persisted: Int64) {
        self.source = source
        let start = max(source.wall(), persisted + 1)
        offset = start - source.elapsed()
        last = Atomic(start - 1)
    }

    /// The time in microseconds since 1970; any thread; more than ever before.
    public func now() -> Int64 {
        let time = offset &+ source.elapsed()
        var known = last.load(ordering: .relaxed)
        while true {
            let next = max(time, known + 1)
            let (isExchanged, original) = last.weakCompareExchange(
                expected: known,
                desired: next,
                ordering: .relaxed
            )
            if isExchanged { return next }
            known = original
        }
    }
}
