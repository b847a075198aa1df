import Glibc

/// The time of one turn of a loop, read from the coarse clocks when first asked for.
struct LoopClock {
    private var monotonicTime: UInt64 = 0
    private var wallTime = 0

    /// Forgets the time; the next question reads the clock.
    mutating func turnEnded() {
        monotonicTime = 0
        wallTime = 0
    }

    /// Nanoseconds of the monotonic clock.
    mutating func monotonic() -> UInt64 {
        if monotonicTime == 0 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
            monotonicTime = UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
        }
        return monotonicTime
    }

    /// Seconds since 1970.
    mutating func wallSeconds() -> Int {
        if wallTime == 0 {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME_COARSE, &time)
            wallTime = time.tv_sec
        }
        return wallTime
    }
}
