import GRDB
import Mapping

/// The rows of objects, written at the end of a batch.
extension WriteSession {
    func flushObjects() throws {
        for record in recordOrder where record.isModified {
            for entry in record.entries where entry.uses == 0 && entry.observation == 0 {
                try query("DELETE FROM _versions WHERE id = ?").run(.integer(entry.version))
            }
            record.entries.removeAll { $0.uses == 0 && $0.observation == 0 }
            guard !record.isEmpty else {
                try deleteRow(of: record)
                continue
            }
            for entry in record.takeSurplus() {
                try query("INSERT INTO _spilled VALUES (?, ?)").run(.integer(entry.version), .integer(entry.uses))
            }
            if case .unobserved = record.mark, !record.isPinned, try isCounting(record) {
                // No document is left that was observed before it.
                record.setMark(nil)
            }
            try writeRow(of: record)
            let isPinned = record.isPinned
            if !isPinned, record.wasPinned || !record.isStored {
                try query("INSERT OR REPLACE INTO _orphans VALUES (?, ?)")
                    .run(.id(record.id), .integer(try lastSeen(record)))
            } else if isPinned, record.isStored, !record.wasPinned {
                try query("DELETE FROM _orphans WHERE object = ?").run(.id(record.id))
            }
        }
    }

    /// When an object was last observed, in seconds: what orphans are evicted by.
    private func lastSeen(_ record: ObjectRecord) throws -> Int64 {
        guard let base = record.base else { return 0 }
        let seen = try ([base.observation] + record.knowledge.sources).map { try observation($0).end }.max() ?? 0
        return seen / 1_000_000
    }

    private func deleteRow(of record: ObjectRecord) throws {
        guard record.isStored else {
            try query("DELETE FROM _keys WHERE object = ?").run(.id(record.id))
            return
        }
        hasRemovedObjects = true
        try remember(record)
        if record.mark != nil || record.isMarkModified { try deleteMarkSource(of: record) }
        try query("DELETE FROM _objects WHERE id = ?").run(.id(record.id))
        try query("DELETE FROM _orphans WHERE object = ?").run(.id(record.id))
        try query("DELETE FROM _keys WHERE object = ?").run(.id(record.id))
    }

    private func writeRow(of record: ObjectRecord) throws {
        let version = record.base.map { SQLValue.integer($0.version) } ?? .null
        let state = SQLValue.blob(record.state)
        let merged = (record.merged ?? nil).map(SQLValue.text) ?? .null
        let bytes = KnowledgeBytes.encode(record.knowledge)
        let known = bytes.isEmpty ? SQLValue.null : .blob(bytes)
        if !record.isStored {
            try query(
                "INSERT INTO _objects (id, collection, identity, changed, version, state, merged, known) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            ).run(
                .id(record.id),
                .id(record.collection),
                record.identity.sql,
                .integer(record.changed),
                version,
                state,
                merged,
                known
            )
        } else if record.merged != nil {
            try query(
                "UPDATE _objects SET changed = ?, version = ?, state = ?, merged = ? WHERE id = ?"
            ).run(.integer(record.changed), version, state, merged, .id(record.id))
        } else {
            try query("UPDATE _objects SET changed = ?, version = ?, state = ? WHERE id = ?")
                .run(.integer(record.changed), version, state, .id(record.id))
        }
        if record.isStored, record.isKnowledgeModified {
            try query("UPDATE _objects SET known = ? WHERE id = ?").run(known, .id(record.id))
        }
        try writeRules(of: record)
    }

    /// What only models with rules of their own have.
    private func writeRules(of record: ObjectRecord) throws {
        if let accumulated = record.accumulated, !(accumulated.isEmpty && !record.isStored) {
            try query("UPDATE _objects SET accumulated = ?1 WHERE id = ?2 AND accumulated IS NOT ?1")
                .run(accumulated.isEmpty ? .null : .text(accumulated), .id(record.id))
        }
        if let since = record.deletedSince, record.mark?.isTombstone != true, since != nil || record.isStored {
            try query("UPDATE _objects SET deleted = ?1 WHERE id = ?2 AND deleted IS NOT ?1")
                .run(since.map { .integer(-max($0, 1)) } ?? .null, .id(record.id))
        }
        if record.isMarkModified { try writeMark(of: record) }
    }
}
