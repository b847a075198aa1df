import Synchronization

/// Tells the service manager that the daemon lives, for as long as every event loop does.
///
/// A beat asks each loop to answer from its own thread; the next beat passes the word on only if all have. A loop that hangs
/// thus silences the watchdog, and the manager restarts the daemon (systemd.service(5), `WatchdogSec=`).
final class Watchdog: Sendable {
    /// One loop that must be alive: its name, and how to run something on its thread.
    struct Member: Sendable {
        let name: String
        let enqueue: @Sendable (@escaping @Sendable () -> Void) -> Void
    }

    /// Half of what the manager allows, as sd_watchdog_enabled(3) recommends.
    let period: Duration
    private let notifier: SystemdNotifier
    private let members: [Member]
    private let answers: Mutex<Answers>

    private struct Answers {
        var round = 0
        /// The round that each member answered last.
        var last: [Int]
    }

    /// Nil when the service manager does not watch this process.
    init?(notifier: SystemdNotifier, members: [Member]) {
        guard let interval = notifier.watchdogInterval else { return nil }
        period = interval / 2
        self.notifier = notifier
        self.members = members
        answers = Mutex(Answers(last: Array(repeating: 0, count: members.count)))
    }

    /// One beat, every `period`, from any thread; answers the names of the loops that have not answered the beat before.
    @discardableResult
    func beat() -> [String] {
        let (round, late) = answers.withLock { answers in
            let late = members.indices.filter { answers.last[$0] < answers.round }
            // Whoever is late still owes its answer to the old question: it is not asked again, so that
            // nothing piles up on a loop that hangs.
            if late.isEmpty { answers.round += 1 }
            return (answers.round, late)
        }
        guard late.isEmpty else { return late.map { members[$0].name } }
        for (index, member) in members.enumerated() {
            member.enqueue { [self] in answers.withLock { $0.last[index] = round } }
        }
        notifier.send(.watchdog)
        return []
    }
}
