/// How the server's clock relates to this machine's, as far as round trips show it; a value.
///
/// Both clocks are in µs. The server is asked for its time: what it says lies somewhere between the sending and the reply, so the
/// difference of the clocks is known within the round trip. Later the clocks may have drifted apart.
struct FleetClock: Sendable, Equatable, Codable {
    /// One round trip.
    struct Reading: Sendable, Equatable {
        /// By this machine's clock.
        var sent: Int64
        var received: Int64
        /// What the server said, which it had rounded down.
        var server: Int64
    }

    /// How fast two clocks may drift apart, in parts of a million: the most by which Linux slews one.
    static let drift: Int64 = 500

    /// The server's clock is ahead of this one by at least `least` and at most `most`, at the local time `moment`.
    private var least: Int64
    private var most: Int64
    private var moment: Int64

    init(_ reading: Reading) {
        (least, most) = (reading.server - reading.received, reading.server + 1 - reading.sent)
        moment = reading.received
    }

    /// Adds a round trip; false if it contradicts the former ones, because a clock has been set.
    ///
    /// Then nothing changes.
    mutating func add(_ reading: Reading) -> Bool {
        let added = FleetClock(reading)
        let since = Self.drift(abs(added.moment - moment))
        let (low, high) = (max(least - since, added.least), min(most + since, added.most))
        guard low <= high else { return false }
        (least, most, moment) = (low, high, added.moment)
        return true
    }

    /// When a local time was, by the server's clock.
    func server(_ local: Int64) -> ClosedRange<Int64> {
        let since = Self.drift(abs(local - moment))
        return (local + least - since)...(local + most + since)
    }

    /// When a time of the server's clock was, by this machine's.
    func local(_ server: Int64) -> ClosedRange<Int64> {
        let (earliest, latest) = (server - most, server - least)
        let since = Self.drift(max(abs(earliest - moment), abs(latest - moment)))
        return (earliest - since)...(latest + since)
    }

    /// By how much a current time may be wrong.
    var error: Int64 { (most - least + 1) / 2 }

    private static func drift(_ passed: Int64) -> Int64 { passed == 0 ? 0 : passed / (1_000_000 / drift) + 1 }
}
