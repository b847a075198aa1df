package import Glibc

/// The clocks of the system.
package enum SystemClock {
    /// What a clock shows, in nanoseconds; every Linux has those that are asked for.
    package static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
