package import EventLoops
import Synchronization

/// Tells the service manager that the daemon lives, for as long as every event loop does.
///
/// A beat asks each loop to answer from its own thread; the next beat passes the word on only if all have. A loop that hangs
/// thus silences the watchdog, and the manager restarts the daemon (systemd.service(5), `WatchdogSec=`).
package final class Watchdog: Sendable {
    /// One loop that must be alive: its name, and how to run something on its thread.
    package struct Member: Sendable {
        let name: String
        let enqueue: @Sendable (@escaping @Sendable () -> Void) -> Void
    }

    /// Half of what the manager allows, as sd_watchdog_enabled(3) recommends.
    let period: Duration
    private let notifier: SystemdNotifier
    private let members: [Member]
    private let round: Mutex<Round>

    /// One question to all members.
    private struct Round {
        var number = 0
        /// The members that have not answered it.
        var missing: Set<Int> = []
        /// Whether a beat came while somebody was missing: the manager is still waiting for it.
        var isOverdue = false
    }

    /// Nil when the service manager does not watch this process.
    package init?(notifier: SystemdNotifier, members: [Member]) {
        guard let interval = notifier.watchdogInterval else { return nil }
        period = interval / 2
        self.notifier = notifier
        self.members = members
        round = Mutex(Round())
    }

    /// One beat, every `period`, from any thread; answers the names of the loops that have not answered the beat before.
    @discardableResult
    func beat() -> [String] {
        let (number, late) = round.withLock { round -> (Int, [String]) in
            if round.missing.isEmpty {
                round = Round(number: round.number + 1, missing: Set(members.indices))
                return (round.number, [])
            }
            // Who is late still owes its answer to the old question and is not asked again, so that nothing piles up
            // on a loop that hangs.
            round.isOverdue = true
            return (round.number, round.missing.sorted().map { members[$0].name })
        }
        guard late.isEmpty else { return late }
        for (index, member) in members.enumerated() {
            member.enqueue { [self] in answered(index, round: number) }
        }
        notifier.send(.watchdog)
        return []
    }

    /// A member lives; on its thread.
    private func answered(_ member: Int, round number: Int) {
        let isOverdue = round.withLock { round -> Bool in
            guard round.number == number else { return false }
            round.missing.remove(member)
            guard round.missing.isEmpty else { return false }
            defer { round.isOverdue = false }
            return round.isOverdue
        }
        // Waiting for the next beat could take longer than the manager does.
        if isOverdue { notifier.send(.watchdog) }
    }
}

extension Watchdog.Member {
    package init(_ loop: EventLoop) {
        self.init(name: loop.name, enqueue: { loop.enqueue($0) })
    }
}

extension Watchdog {
    /// Beats on this loop until the timer is dropped; `late` is told the names of loops that miss a beat.
    ///
    /// The loop's thread only.
    package func start(on loop: EventLoop, late: @escaping ([String]) -> Void) -> EventTimer {
        beat()
        return loop.every(period) { [self] in
            let names = beat()
            if !names.isEmpty { late(names) }
        }
    }
}
