import Logging
import Settings
import Synchronization

/// Lines of the log about events that may come by the hundred, such as refusals by a rate limit; any thread.
///
/// The first event of a spell is logged with its details. The next ones are counted, and their number is logged at the spell's end.
final class RepeatedLines: Sendable {
    private let log: Logger
    private let spells = Mutex<[String: Spell]>([:])

    struct Spell: Equatable {
        let began: ContinuousClock.Instant
        var last: ContinuousClock.Instant
        var end: ContinuousClock.Instant
        var events = 1
        /// Requests that were not sent because of it.
        var held = 0
    }

    /// The spell of an event ends when none has come for so long, unless the event says for how long it holds.
    static let quiet: Duration = .seconds(10)
    /// Spells at a time; beyond, each event is logged.
    static let maximumSpells = 1_024

    init(_ log: Logger) { self.log = log }

    /// Logs an event, or counts it.
    ///
    /// - Parameters:
    ///   - subject: what distinguishes its spell from others with the same message.
    ///   - details: of the first event only.
    ///   - duration: how long what it reports holds.
    ///   - end: what is logged at the end; nil for the same message, and that only if there was more than one event.
    func log(
        _ level: Logger.Level,
        _ message: Logger.Message,
        about subject: Logger.Metadata,
        _ details: Logger.Metadata = [:],
        for duration: Duration = RepeatedLines.quiet,
        end: Logger.Message? = nil
    ) {
        let (key, now) = (Self.key(message, subject), ContinuousClock.now)
        let isFirst = spells.withLock { spells in
            if var spell = spells[key] {
                spell.events += 1
                (spell.last, spell.end) = (now, max(spell.end, now + duration))
                spells[key] = spell
                return false
            }
            if spells.count < Self.maximumSpells { spells[key] = Spell(began: now, last: now, end: now + duration) }
            return true
        }
        guard isFirst else { return }
        log.log(level: level, message, metadata: subject.merging(details) { $1 })
        Task {
            guard let spell = await ended(key), end != nil || spell.events > 1 else { return }
            var metadata = subject
            let duration = (end == nil ? spell.last : spell.end) - spell.began
            metadata["after"] = "\(Units.roundedText(duration))"
            metadata["times"] = "\(spell.events)"
            if spell.held > 0 { metadata["held_back"] = "\(spell.held)" }
            log.log(level: level, end ?? "\(message): counted", metadata: metadata)
        }
    }

    /// Counts a request that was not sent because of an event.
    func heldBack(_ message: Logger.Message, about subject: Logger.Metadata) {
        spells.withLock { $0[Self.key(message, subject)]?.held += 1 }
    }

    private static func key(_ message: Logger.Message, _ subject: Logger.Metadata) -> String {
        "\(message) " + subject.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    }

    /// Waits for the end of a spell, which each event may put off, and removes it; nil if there is none.
    private func ended(_ key: String) async -> Spell? {
        while let spell = spells.withLock({ $0[key] }) {
            // Nothing cancels this task; it ends with the process.
            try? await Task.sleep(until: spell.end)
            let ended = spells.withLock { spells in
                spells[key].flatMap { $0.end <= .now ? spells.removeValue(forKey: key) : nil }
            }
            if let ended { return ended }
        }
        return nil
    }
}
