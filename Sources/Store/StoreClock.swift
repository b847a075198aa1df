import Basics
import Glibc
import Synchronization

/// The clocks behind a store's clock; tests replace them.
struct TimeSource: Sendable {
    /// In microseconds since 1970.
    let wall: @Sendable () -> Int64
    /// Microseconds since some fixed moment, including time in suspend.
    let elapsed: @Sendable () -> Int64
    /// Identifies the start of `elapsed`; readings with the same number can be compared.
    var boot: Int64 = 0

    static let system = TimeSource(
        wall: { SystemClock.nanoseconds(CLOCK_REALTIME) / 1_000 },
        // Unlike CLOCK_MONOTONIC, CLOCK_BOOTTIME also counts while the machine is suspended.
        elapsed: { SystemClock.nanoseconds(CLOCK_BOOTTIME) / 1_000 },
        boot: bootNumber()
    )

    /// The first digits of the kernel's random id of this boot; 0 if it cannot be read.
    private static func bootNumber() -> Int64 {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 8)
        guard Glibc.read(descriptor, &text, text.count) == text.count else { return 0 }
        return Int64(String(decoding: text, as: UTF8.self), radix: 16) ?? 0
    }
}

/// The state of a store's clock as stored in its file.
struct StoredTime: Sendable {
    var clock: Int64 = 0
    /// How far the wall clock was ahead of the store's when last read; nil if unknown.
    var wallLead: Int64?
    /// How far the store's clock was ahead of elapsed time, and in which boot; nil if unknown.
    var offset: Int64?
    var boot: Int64?
    /// Ages of anything before this time are unknown.
    var agesKnownSince: Int64 = 0
    /// When the store was last opened after a crash; 0 for never.
    var restarted: Int64 = 0
    /// Whether the store was not closed since.
    var isLeft = false
}

/// The store's own clock; it is persisted, never goes back, and never returns the same time twice.
///
/// It counts only elapsed time; setting the machine's clock does not move it. When a store is opened, the time since it
/// was closed is added: by elapsed time within one boot of the machine, otherwise by the wall clock. If the wall clock
/// was set back meanwhile, that time is unknown, and so are the ages of everything before. The clock never starts
/// before the wall clock. If elapsed time itself goes back, the clock advances minimally until elapsed time has caught
/// up: a later observation always has a later time.
public final class StoreClock: Sendable {
    private let source: TimeSource
    private let offset: Int64
    private let last: Atomic<Int64>
    /// Ages of anything before this time are unknown, because the store was closed for an unknown time.
    public var agesKnownSince: Int64 { ageless.load(ordering: .relaxed) }
    private let ageless: Atomic<Int64>
    /// When the store was last opened after a crash; 0 for never: whatever was observed before counts as observed until
    /// then (law 3).
    let restarted: Int64

    init(source: TimeSource, stored: StoredTime) {
        self.source = source
        let (wall, elapsed) = (source.wall(), source.elapsed())
        var passed: Int64?
        if let offset = stored.offset, stored.boot == source.boot, source.boot != 0, offset &+ elapsed >= stored.clock {
            passed = offset &+ elapsed
        } else if let lead = stored.wallLead {
            // When last read, the wall clock showed `clock + lead`.
            passed = wall &- lead >= stored.clock ? wall &- lead : nil
        } else if wall >= stored.clock {
            passed = wall
        }
        let start = max(wall, passed ?? 0, stored.clock + 1)
        ageless = Atomic(passed == nil ? start : stored.agesKnownSince)
        restarted = stored.isLeft ? start : stored.restarted
        offset = start - elapsed
        last = Atomic(start - 1)
    }

    /// The time in microseconds since 1970, later than every time returned before; any thread.
    public func now() -> Int64 {
        let time = offset &+ source.elapsed()
        var known = last.load(ordering: .relaxed)
        while true {
            let next = max(time, known + 1)
            let (isExchanged, original) = last.weakCompareExchange(expected: known, desired: next, ordering: .relaxed)
            if isExchanged { return next }
            known = original
        }
    }

    /// The time in seconds since 1970; any thread; it consumes no time of `now`, and never goes back on one thread.
    public var seconds: Int64 { max(offset &+ source.elapsed(), last.load(ordering: .relaxed)) / 1_000_000 }

    /// Continues after the times of a store whose contents are loaded; their ages are unknown.
    func takeOver(after time: Int64) {
        last.max(time, ordering: .relaxed)
        // Ages are counted in seconds: the second that has begun counts as before.
        ageless.store(now() + 1_000_000, ordering: .relaxed)
    }

    /// The state written to the file when it is opened.
    var stored: StoredTime {
        StoredTime(
            clock: last.load(ordering: .relaxed),
            wallLead: wallLead,
            offset: offset,
            boot: source.boot,
            agesKnownSince: agesKnownSince,
            restarted: restarted
        )
    }

    var wallLead: Int64 { source.wall() &- (offset &+ source.elapsed()) }
}
