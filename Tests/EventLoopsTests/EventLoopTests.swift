import Glibc
import Synchronization
import DaemonTestSupport
import TestSupport
import Testing

@testable import EventLoops

/// An actor that lives on a loop, as the daemon's workers do.
private actor Resident {
    let loop: EventLoop
    var count = 0

    init(_ loop: EventLoop) { self.loop = loop }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    func increment() -> Bool {
        count += 1
        return loop.isCurrent
    }

    /// Whether the actor is still on its loop after it has waited for a timer.
    func waitForTimer() async -> Bool {
        var timer: EventTimer?
        await withCheckedContinuation { continuation in
            timer = loop.after(.milliseconds(1)) { continuation.resume() }
        }
        _ = timer
        return loop.isCurrent
    }
}

@Suite struct EventLoopTests {
    private func withLoop<Result>(_ body: (EventLoop) async throws -> Result) async throws -> Result {
        let loop = try EventLoop(name: "test")
        loop.start()
        defer {
            loop.stop()
            loop.join()
        }
        return try await body(loop)
    }

    @Test func `work from many threads is done once, in each thread's order`() async throws {
        try await withLoop { loop in
            let seen = Monitor<[Int: [Int]]>([:])
            await withTaskGroup { group in
                for source in 0..<8 {
                    group.addTask {
                        for number in 0..<1000 {
                            loop.enqueue { seen.withLock { $0[source, default: []].append(number) } }
                        }
                    }
                }
            }
            await withCheckedContinuation { done in loop.enqueue { done.resume() } }
            for source in 0..<8 { #expect(seen.withLock { $0[source] } == Array(0..<1000)) }
        }
    }

    @Test func `work enqueued by the loop itself is done without a wake-up`() async throws {
        try await withLoop { loop in
            let seen = Monitor<[Int]>([])
            await withCheckedContinuation { done in
                loop.enqueue {
                    loop.enqueue {
                        loop.enqueue {
                            seen.withLock { $0.append(3) }
                            done.resume()
                        }
                        seen.withLock { $0.append(2) }
                    }
                    seen.withLock { $0.append(1) }
                }
            }
            #expect(seen.withLock { $0 } == [1, 2, 3])
        }
    }

    @Test func `wake-ups of other loops that are held back are sent at the end of the work, or on request`()
        async throws
    {
        try await withLoop { loop in
            try await withLoop { other in
                for isSent in [true, false] {
                    let isDone = Monitor(false)
                    let isDoneInside = await withCheckedContinuation { done in
                        loop.enqueue {
                            loop.deferringWakes {
                                other.enqueue { isDone.withLock { $0 = true } }
                                guard isSent else { return done.resume(returning: true) }
                                loop.sendDeferredWakes()
                                done.resume(returning: eventually { isDone.withLock { $0 } })
                            }
                        }
                    }
                    #expect(isDoneInside)
                    #expect(await eventually { isDone.withLock { $0 } })
                }
            }
        }
    }

    @Test func `a callback for the end of a loop's turn runs once after the turn's work, unless it is cancelled`()
        async throws
    {
        try await withLoop { loop in
            let seen = Monitor<[String]>([])
            await withCheckedContinuation { done in
                loop.enqueue {
                    let cancelled = TurnEnding(loop: loop) { seen.withLock { $0.append("cancelled") } }
                    let ending = TurnEnding(loop: loop) {
                        seen.withLock { $0.append("ending") }
                        loop.enqueue { done.resume() }
                    }
                    for ending in [cancelled, ending, ending] { ending.want() }
                    cancelled.cancel()
                    seen.withLock { $0.append("work") }
                }
            }
            #expect(seen.withLock { $0 } == ["work", "ending"])
        }
    }

    @Test func `a callback at the end of each turn that always asks to run again does not keep timers from firing`()
        async throws
    {
        try await withLoop { loop in
            let endings: Int = await withCheckedContinuation { done in
                loop.enqueue {
                    var (ending, timer): (TurnEnding?, EventTimer?) = (nil, nil)
                    var count = 0
                    ending = TurnEnding(loop: loop) {
                        count += 1
                        if timer != nil { ending?.want() }
                    }
                    timer = EventTimer(loop: loop) {
                        ending = nil
                        done.resume(returning: count)
                    }
                    ending?.want()
                    timer?.schedule(after: .milliseconds(1))
                }
            }
            #expect(endings > 0)
        }
    }

    @Test func `an actor on the loop runs on its thread and comes back to it`() async throws {
        try await withLoop { loop in
            let resident = Resident(loop)
            #expect(!loop.isCurrent)
            #expect(await resident.increment())
            #expect(await resident.waitForTimer())
        }
    }

    @Test func `a task that prefers the loop stays on it`() async throws {
        try await withLoop { loop in
            let stayed = await Task(executorPreference: loop.taskExecutor) {
                let before = loop.isCurrent
                await Task.yield()
                return before && loop.isCurrent
            }.value
            #expect(stayed)
        }
    }

    @Test func `timers fire in the order of their times`() async throws {
        try await withLoop { loop in
            let order: [Int] = await withCheckedContinuation { done in
                loop.enqueue {
                    let fired = Fired()
                    fired.timers = [
                        loop.after(.milliseconds(30)) {
                            fired.order.append(3)
                            done.resume(returning: fired.order)
                            fired.timers = []
                        },
                        loop.after(.milliseconds(2)) { fired.order.append(1) },
                        loop.after(.milliseconds(12)) { fired.order.append(2) },
                    ]
                    _ = loop.after(.milliseconds(5)) { fired.order.append(99) }  // Dropped at once.
                }
            }
            #expect(order == [1, 2, 3])
        }
    }

    @Test func `a repeating timer may drop itself`() async throws {
        try await withLoop { loop in
            let count: Int = await withCheckedContinuation { done in
                loop.enqueue {
                    let fired = Fired()
                    fired.timers = [
                        loop.every(.milliseconds(1)) {
                            fired.order.append(0)
                            guard fired.order.count == 3 else { return }
                            // This takes its place. It would have fired again by then.
                            fired.timers = [
                                loop.after(.milliseconds(20)) {
                                    done.resume(returning: fired.order.count)
                                    fired.timers = []
                                }
                            ]
                        }
                    ]
                }
            }
            #expect(count == 3)
        }
    }

    @Test func `a watched descriptor calls back when it can be read`() async throws {
        try await withLoop { loop in
            var ends: [Int32] = [0, 0]
            #expect(pipe(&ends) == 0)
            let (reader, writer) = (ends[0], ends[1])
            defer { for end in [reader, writer] { close(end) } }
            await withCheckedContinuation { done in
                loop.enqueue {
                    let fired = Fired()
                    fired.watch = loop.watch(descriptor: reader, events: .read) { events in
                        fired.watch = nil
                        #expect(events == .read)
                        done.resume()
                    }
                    write(writer, "x", 1)
                }
            }
        }
    }

    @Test func `a signal is handled on the loop's thread`() async throws {
        try await withLoop { loop in
            await withCheckedContinuation { done in
                loop.enqueue {
                    let fired = Fired()
                    fired.signal = loop.onSignal(SIGUSR1) {
                        fired.signal = nil
                        #expect(loop.isCurrent)
                        done.resume()
                    }
                    kill(getpid(), SIGUSR1)
                }
            }
        }
    }

    @Test func `the loop's clock advances between turns`() async throws {
        try await withLoop { loop in
            let times: [UInt64] = await withCheckedContinuation { done in
                loop.enqueue {
                    let first = loop.now
                    let fired = Fired()
                    fired.timers = [
                        loop.after(.milliseconds(25)) {
                            done.resume(returning: [first, loop.now])
                            fired.timers = []
                        }
                    ]
                }
            }
            #expect(times[1] - times[0] > 10_000_000)
        }
    }

    @Test func `work queued when the loop is stopped is still done`() async throws {
        let loop = try EventLoop(name: "test")
        let count = Monitor(0)
        await withCheckedContinuation { done in
            for _ in 0..<10 { loop.enqueue { count.withLock { $0 += 1 } } }
            loop.enqueue { done.resume() }
            loop.start()
            loop.stop()
        }
        loop.join()
        #expect(count.withLock { $0 } == 10)
    }
}

/// What callbacks note down, on the loop's thread.
private final class Fired {
    var order: [Int] = []
    var timers: [EventTimer] = []
    var watch: EventWatch?
    var signal: EventSignal?
}
