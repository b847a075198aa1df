import Glibc
import Synchronization

/// Where a store's clock takes its time from; replaced in tests.
public struct TimeSource: Sendable {
    /// Wall-clock time in microseconds since 1970.
    public let wall: @Sendable () -> Int64

    /// Microseconds that passed since some fixed moment, also during suspend.
    public let elapsed: @Sendable () -> Int64

    /// Names the moment that `elapsed` counts from: within one of these, its readings can be compared.
    public let boot: Int64

    /// Makes a source out of its readings.
    public init(
        wall: @escaping @Sendable () -> Int64,
        elapsed: @escaping @Sendable () -> Int64,
        boot: Int64 = 0
    ) {
        self.wall = wall
        self.elapsed = elapsed
        self.boot = boot
    }

    /// The machine's clocks.
    public static let system = TimeSource(
        wall: { read(CLOCK_REALTIME) },
        // Unlike CLOCK_MONOTONIC, it goes on while the machine is suspended.
        elapsed: { read(CLOCK_BOOTTIME) },
        boot: bootNumber()
    )

    /// The first digits of the kernel's random name for this boot; 0 where it cannot be read.
    private static func bootNumber() -> Int64 {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 8)
        guard Glibc.read(descriptor, &text, text.count) == text.count else { return 0 }
        return Int64(String(decoding: text, as: UTF8.self), radix: 16) ?? 0
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        // Cannot fail: both clocks exist on every Linux that runs us.
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}

/// What a store's file says of its clock.
struct StoredTime: Sendable {
    /// The highest time that was ever committed; 0: none.
    var clock: Int64 = 0
    /// What the wall clock was ahead of the store's, when it was last looked at; nil: not known.
    var wallLead: Int64?
    /// What the store's clock was ahead of elapsed time, and within which boot that counts; nil: not known.
    var offset: Int64?
    var boot: Int64?
    /// What came before this time is of unknown age.
    var agesKnownSince: Int64 = 0
}

/// The store's own clock: it is persisted, never goes back, and never gives one time twice.
///
/// It counts elapsed time alone; setting the machine's clock does not move it. When a store is opened, the time that has
/// passed since it was closed is added: as elapsed time tells it within one boot of the machine, else as the wall clock does.
/// If the wall clock was set back meanwhile, nobody knows: what came before is of unknown age from then on. The clock never
/// starts before the wall clock. Should elapsed time itself go back, it creeps on until that has caught up: what is observed
/// later has a later time whatever happens.
public final class StoreClock: Sendable {
    private let source: TimeSource
    private let offset: Int64
    private let last: Atomic<Int64>
    /// What came before this time is of unknown age: nobody knows how long the store was closed after it.
    public let agesKnownSince: Int64

    init(source: TimeSource, stored: StoredTime) {
        self.source = source
        let (wall, elapsed) = (source.wall(), source.elapsed())
        var passed: Int64?
        if let offset = stored.offset, stored.boot == source.boot, source.boot != 0, offset &+ elapsed >= stored.clock {
            passed = offset &+ elapsed
        } else if let lead = stored.wallLead {
            // The wall clock then was `clock + lead`.
            passed = wall &- lead >= stored.clock ? wall &- lead : nil
        } else if wall >= stored.clock {
            passed = wall
        }
        let start = max(wall, passed ?? 0, stored.clock + 1)
        agesKnownSince = passed == nil ? start : stored.agesKnownSince
        offset = start - elapsed
        last = Atomic(start - 1)
    }

    /// A clock that goes on after `persisted`.
    convenience init(source: TimeSource, persisted: Int64) {
        self.init(source: source, stored: StoredTime(clock: persisted))
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

    /// The time in seconds since 1970; any thread; it takes no time from others, and never goes back on one thread.
    public var seconds: Int64 {
        max(offset &+ source.elapsed(), last.load(ordering: .relaxed)) / 1_000_000
    }

    /// What the file is to say when it is opened, besides the time itself.
    var stored: StoredTime {
        StoredTime(
            clock: last.load(ordering: .relaxed),
            wallLead: wallLead,
            offset: offset,
            boot: source.boot,
            agesKnownSince: agesKnownSince
        )
    }

    /// What the wall clock is ahead of this one now.
    var wallLead: Int64 { source.wall() &- (offset &+ source.elapsed()) }
}
