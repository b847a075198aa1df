import TestSupport

/// Reads while a commit is on its way.
extension ReferenceRun {
    /// Lets a held response go, and others read what is stored while its commit is held: who has got a new value gets no older
    /// one from elsewhere.
    ///
    /// - Parameter isCommitted: whether it is held after readers of the disk see it and before memory has it; if not, before both.
    func finish(_ number: Int, whileReading readers: [Ask], isCommitted: Bool) throws {
        guard let gate, open.contains(where: { $0.ask.number == number && hasArrived($0.ask) }) else {
            return try finish(number)
        }
        let lock = isCommitted ? nil : try CommitLock(larder)
        let count = gate.count
        if isCommitted { gate.close() }
        defer { gate.open() }
        reference.letGo(number)
        // What a write has invalidated is not committed.
        _ = eventually(within: isCommitted ? .seconds(1) : .milliseconds(50)) { gate.count > count }
        var waiting: [Open] = []
        for reader in readers {
            tick()
            let request = try begin(reader, on: larder.client())
            // A response waits for the commit of what it shows.
            if request.client.socket.isReadable(within: 100) { try conclude(request) } else { waiting.append(request) }
        }
        lock?.release()
        gate.open()
        try finish(number)
        for request in waiting { try conclude(request) }
    }
}
