import GRDB
import Mapping

/// Stores equal bytes of several principals once: immutable bytes alone, after they were compared.
///
/// A response that a 304 has released has the bytes of another principal's document (`ReceivedDocument.resembled`). Its
/// fields, its objects and its observation are rows of its own.
extension WriterSession {
    /// The versions that a document shows, by their contents.
    struct KnownVersions {
        private struct Content: Hashable {
            let payload: [UInt8]
            let declared: Int
        }

        private var byContent: [Content: VersionID] = [:]

        static let none = KnownVersions()

        private init() {}

        /// The versions of a document; none if it is gone.
        init(of document: DocumentID, in database: Database) throws {
            guard try database.query("SELECT 1 FROM _documents WHERE id = ?").integer(document) != nil else { return }
            let stored = try StoredBody(document: document, in: database)
            let contents = zip(try stored.payloads(in: database), try stored.declaredVersions(in: database))
            for (pin, (payload, declared)) in zip(stored.pins, contents) {
                byContent[Content(payload: payload, declared: declared)] = pin.version
            }
        }

        func version(_ payload: [UInt8], _ declared: Int) -> VersionID? {
            byContent.isEmpty ? nil : byContent[Content(payload: payload, declared: declared)]
        }
    }

    /// Notes that one more object has a version.
    func share(_ version: VersionID) throws {
        try query("INSERT INTO _shared_versions VALUES (?, 2) ON CONFLICT DO UPDATE SET owners = owners + 1")
            .run(version)
    }

    /// Deletes a version that an object does not need any more, unless another one has it, too; a clean counts its
    /// bytes on request.
    func release(_ version: VersionID, isCounted: Bool = false) throws {
        if let owners = try query("SELECT owners FROM _shared_versions WHERE version = ?").integer(version) {
            let change: StaticString =
                owners > 2
                ? "UPDATE _shared_versions SET owners = owners - 1 WHERE version = ?"
                : "DELETE FROM _shared_versions WHERE version = ?"
            return try query(change).run(version)
        }
        if isCounted, let bytes = deletedBytes {
            deletedBytes = bytes + (try query(StoreCount.bytesOfVersion).integer(version) ?? 0)
        }
        try query("DELETE FROM _versions WHERE id = ?").run(version)
    }

    /// Stores an entry that an object's state has no room for.
    ///
    /// A version that another object has spilled already has one row for both, which counts as one owner.
    func spill(_ entry: ObjectRecord.Entry) throws {
        if try query("SELECT 1 FROM _spilled WHERE version = ?").integer(entry.version) != nil {
            try query("UPDATE _spilled SET uses = uses + ? WHERE version = ?").run(entry.uses, entry.version)
            try release(entry.version)
        } else {
            try query("INSERT INTO _spilled VALUES (?, ?)").run(entry.version, entry.uses)
        }
    }

    /// The row for the bytes that a document has in common with another one, beside its versions; nil if they differ.
    func share(_ document: NewDocument, with other: DocumentID) throws -> SharedBodyID? {
        let known = try query("SELECT shared FROM _bodies WHERE document = ?")
            .first(other) { $0.id(0, as: SharedBodyID.self) }
        guard let known else { return nil }
        let stored = try StoredBody(document: other, in: database)
        guard stored.skeleton == document.skeleton, stored.keyed == document.keyed,
            document.skeleton != nil || stored.literal == document.received.body
        else { return nil }
        if known != .zero {
            try query("UPDATE _shared_bodies SET documents = documents + 1 WHERE id = ?").run(known)
            return known
        }
        try query(
            """
            INSERT INTO _shared_bodies (documents, skeleton, body, keyed, compressed)
            SELECT 2, skeleton, body, keyed, compressed FROM _bodies WHERE document = ?
            """
        ).run(other)
        let new = SharedBodyID(rawValue: database.lastInsertedRowID)
        try query(
            """
            UPDATE _bodies SET skeleton = NULL, body = NULL, keyed = NULL, compressed = NULL, shared = ?
            WHERE document = ?
            """
        ).run(new, other)
        return new
    }

    /// Ends a document's use of bytes that it has in common with others.
    func releaseSharedBody(of document: DocumentID) throws {
        let found = try query("SELECT shared FROM _bodies WHERE document = ? AND shared IS NOT NULL").integer(document)
        guard let shared = found else { return }
        try query("UPDATE _shared_bodies SET documents = documents - 1 WHERE id = ?").run(shared)
        try query("DELETE FROM _shared_bodies WHERE id = ? AND documents < 1").run(shared)
    }
}
