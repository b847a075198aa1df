import GRDB

/// URLs that a write under way may change.
extension WriteSession {
    func markSuspect(upstream: String, urls: [String]) throws -> SuspectID {
        numbers.suspect += 1
        for url in urls {
            try query("INSERT OR IGNORE INTO _suspects VALUES (?, ?, ?)")
                .run(.integer(numbers.suspect), .string(upstream), .string(url))
        }
        return numbers.suspect
    }

    func settle(_ suspect: SuspectID) throws {
        try query("DELETE FROM _suspects WHERE suspect = ?").run(.integer(suspect))
    }

    /// Removes the documents of every suspect: of a write whose answer never came, it counts that it happened.
    func settleAllSuspects() throws -> Int {
        var targets: [InvalidationTarget] = []
        try query("SELECT DISTINCT upstream, url FROM _suspects").each { row in
            targets.append(InvalidationTarget(upstream: row.string(0), path: row.string(1)))
        }
        for target in targets { try invalidate(target) }
        try query("DELETE FROM _suspects").run()
        return outcome.removed.count
    }
}
