import Basics
import Glibc
import Testing

@Test func `the system's clocks advance, and are read in nanoseconds`() {
    let begun = SystemClock.nanoseconds(CLOCK_MONOTONIC)
    usleep(1_000)
    let elapsed = SystemClock.nanoseconds(CLOCK_MONOTONIC) - begun
    #expect((1_000_000..<60_000_000_000).contains(elapsed))
    #expect(SystemClock.nanoseconds(CLOCK_REALTIME) / 1_000_000_000 - Int64(time(nil)) <= 1)
}
