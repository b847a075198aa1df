import GRDB

/// Documents whose objects were not taken out of them: a write may have changed any of these (law 10).
extension WriteSession {
    /// Whether such a document may show a state before a write: it was asked for before one was answered.
    func isOvertakenUndivided(_ document: ReceivedDocument, _ preparation: Preparation) -> Bool {
        guard preparation.isUndivided else { return false }
        return document.overtakenAt != nil || document.start <= lastWrites[document.key.upstream] ?? .min
    }

    /// Notes that nobody knows which objects a document contains.
    func noteUndivided(_ id: DocumentID, of upstream: String) throws {
        try query("INSERT INTO _undivided VALUES (?, ?)").run(.id(id), .string(upstream))
    }

    /// Removes what may contain an object that a write has changed, of all principals, and keeps out what was asked for before.
    func invalidateUndivided(by write: SettledWrite) throws {
        lastWrites[write.upstream] = max(lastWrites[write.upstream] ?? .min, write.time)
        var found: [DocumentID] = []
        try query("SELECT document FROM _undivided WHERE upstream = ?").each(.string(write.upstream)) {
            found.append($0.id(0))
        }
        for id in found { try remove(id) }
    }
}
