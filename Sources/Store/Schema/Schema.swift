import GRDB

/// The tables, created by numbered migrations that every store goes through once; a store from before the first is set
/// aside.
enum Schema {
    /// Marks the file as Larder's, for `file(1)` and for Larder itself: "Lrdr".
    static let applicationID: Int64 = 0x4c72_6472

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1001") { database in
            try database.execute(sql: "PRAGMA application_id = \(applicationID)")
            try database.execute(sql: tables)
        }
        // Adding a column does not touch the rows. Words and writes from before are unknown.
        migrator.registerMigration("1002") { database in
            try database.execute(
                sql: """
                    -- document: digest of the cache key under which the response was received; NULL: a write, or unknown.
                    ALTER TABLE _observations ADD COLUMN document INTEGER;
                    -- divided: digest of the request's fields, if the response only serves requests that agree in them.
                    ALTER TABLE _observations ADD COLUMN divided INTEGER;
                    CREATE INDEX _observations_divided ON _observations (id) WHERE divided IS NOT NULL;
                    -- wrote: when the latest write to the object was complete, in µs of the store's clock; NULL: unknown.
                    ALTER TABLE _objects ADD COLUMN wrote INTEGER;
                    """
            )
        }
        migrator.registerMigration("1003") { database in
            try database.execute(
                sql: """
                    -- The marks of objects that were written or deleted recently (RecentMarks). value: an identity, or a key
                    -- (is_key). scope: 0 for every scope but `exception`. kind: 0 a write, 1 a deletion; or the sum of 2 for a
                    -- write of the principal's own, and 4 after a deletion. time: in µs of the store's clock. source: as in _marks.
                    CREATE TABLE _recent_marks (
                        upstream TEXT NOT NULL,
                        model TEXT NOT NULL,
                        value TEXT NOT NULL,
                        is_key INTEGER NOT NULL,
                        scope INTEGER NOT NULL,
                        time INTEGER NOT NULL,
                        kind INTEGER NOT NULL,
                        writer INTEGER NOT NULL,
                        source TEXT NOT NULL,
                        exception INTEGER,
                        PRIMARY KEY (upstream, model, value, is_key, scope)
                    ) WITHOUT ROWID;
                    """
            )
        }
        migrator.registerMigration("1004") { database in
            try database.execute(
                sql: """
                    -- reused: 1 if the object was deleted before the time in `unobserved`, so that older responses may show
                    -- another object of the same name.
                    ALTER TABLE _objects ADD COLUMN reused INTEGER;
                    """
            )
        }
        migrator.registerMigration("1005") { database in
            try database.execute(
                sql: """
                    -- covered: in which form the response's entity tag was shown to cover its body (TagCoverage); NULL: in none.
                    ALTER TABLE _documents ADD COLUMN covered INTEGER;
                    """
            )
        }
        migrator.registerMigration("1006") { database in
            try database.execute(
                sql: """
                    -- The deliveries of webhooks that were taken, each as a digest of its webhook and its id. expires: until when
                    -- it may be repeated, in µs of the store's clock.
                    CREATE TABLE _deliveries (id BLOB PRIMARY KEY, expires INTEGER NOT NULL) WITHOUT ROWID;
                    CREATE INDEX _deliveries_expires ON _deliveries (expires);
                    """
            )
        }
        migrator.registerMigration("1007") { database in
            try database.execute(
                sql: """
                    -- Equal bytes of several principals, stored once (WriterSession+Sharing). owners: how many objects' states
                    -- name the version, and one more if it is in _spilled. No row: one.
                    CREATE TABLE _shared_versions (version INTEGER PRIMARY KEY, owners INTEGER NOT NULL);
                    -- documents: in how many rows of _bodies `shared` names it. Such a row has nothing but its pins beside.
                    CREATE TABLE _shared_bodies (
                        id INTEGER PRIMARY KEY,
                        documents INTEGER NOT NULL,
                        skeleton BLOB,
                        body BLOB,
                        keyed BLOB
                    );
                    ALTER TABLE _bodies ADD COLUMN shared INTEGER;
                    """
            )
        }
        migrator.registerMigration("1008") { database in
            try database.execute(
                sql: """
                    -- compressed: the exact bytes in a frame of Zstandard, in place of `body`.
                    ALTER TABLE _bodies ADD COLUMN compressed BLOB;
                    ALTER TABLE _shared_bodies ADD COLUMN compressed BLOB;
                    """
            )
        }
        return migrator
    }

    /// Whether a store that is not empty has a format without a migration to the current one.
    static func isEarlier(_ database: Database) throws -> Bool {
        let applied = try migrator.appliedIdentifiers(database)
        return !applied.contains(migrator.migrations[0]) && applied.allSatisfy { $0 < migrator.migrations[0] }
    }

    // Small rows matter most: integers instead of names, no column that can be computed from others, and only the indexes that
    // look-ups need. A column that is nearly always NULL costs a byte per row.
    private static let tables = """
        -- Single values: the secret, the commit sequence, the clock's high-water mark, and others.
        CREATE TABLE _meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

        -- Upstreams, contexts and models by name.
        CREATE TABLE _names (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);

        CREATE TABLE _principals (
            id INTEGER PRIMARY KEY,
            digest BLOB NOT NULL UNIQUE,
            label TEXT NOT NULL
        );
        INSERT INTO _principals VALUES (1, x'', 'anonymous');

        -- The upstream, principal and representation of data.
        CREATE TABLE _scopes (
            id INTEGER PRIMARY KEY,
            upstream INTEGER NOT NULL,
            principal INTEGER NOT NULL,
            context INTEGER NOT NULL,
            UNIQUE (upstream, principal, context)
        );

        -- The objects of one model in one scope.
        CREATE TABLE _collections (
            id INTEGER PRIMARY KEY,
            scope INTEGER NOT NULL,
            model INTEGER NOT NULL,
            UNIQUE (scope, model)
        );

        -- One row per response: when it was observed. uses: how many documents and objects refer to it. source: method and URL,
        -- such as "PATCH /users/1", of a response that is not a document, or whose document is gone. For all others the
        -- document has the URL: documents are in the order of their observations.
        CREATE TABLE _observations (
            id INTEGER PRIMARY KEY,
            start INTEGER NOT NULL,
            finish INTEGER NOT NULL,
            kind INTEGER NOT NULL,
            uses INTEGER NOT NULL,
            source TEXT
        );

        -- identity: an integer if the canonical text is one. changed: commit sequence of the last change. version: the version
        -- that gives the settled values their shape. merged: the settled values, if they differ from that version. known: when
        -- they were observed (KnowledgeBytes). state: the pinned versions (ObjectRecord). accumulated: the values of members
        -- with a merge policy (GatheredValues). deleted: NULL; or since when its members show it to be deleted, times -1; or
        -- the time of its tombstone. unobserved: when a write ended whose effect on the object no response has shown, times -1
        -- if it was the principal's own. Both are in µs of the store's clock.
        CREATE TABLE _objects (
            id INTEGER PRIMARY KEY,
            collection INTEGER NOT NULL,
            identity NOT NULL,
            changed INTEGER NOT NULL,
            version INTEGER,
            state BLOB NOT NULL,
            merged TEXT,
            known BLOB,
            accumulated TEXT,
            deleted INTEGER,
            unobserved INTEGER
        );
        CREATE UNIQUE INDEX _objects_identity ON _objects (collection, identity);
        CREATE INDEX _objects_deleted ON _objects (collection) WHERE deleted IS NOT NULL;

        -- source: the request of a mark in `deleted` or `unobserved`, such as "PATCH /users/1". Without a method: a write that
        -- was in progress when the daemon ended. No row: not known.
        CREATE TABLE _marks (object INTEGER PRIMARY KEY, source TEXT NOT NULL);

        -- Immutable. Each belongs to the one object whose state names it, unless it is in _shared_versions. declared: the version of
        -- the model under which it was stored; NULL: 0.
        CREATE TABLE _versions (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, declared INTEGER);

        -- Versions of objects with very many of them, stored apart from the objects' states, which are read and written whole.
        -- uses: how many places in documents show the version; the object's state has the sum.
        CREATE TABLE _spilled (version INTEGER PRIMARY KEY, uses INTEGER NOT NULL);

        -- value: digest of a key by which the object can be found. bound: 1 if a route's path gave it, and the object's own
        -- members do not.
        CREATE TABLE _keys (
            object INTEGER NOT NULL,
            value INTEGER NOT NULL,
            bound INTEGER,
            PRIMARY KEY (object, value)
        ) WITHOUT ROWID;
        CREATE INDEX _keys_value ON _keys (value);

        -- The newest version of each model under which objects were stored.
        CREATE TABLE _models (
            upstream TEXT NOT NULL,
            model TEXT NOT NULL,
            version INTEGER NOT NULL,
            PRIMARY KEY (upstream, model)
        ) WITHOUT ROWID;

        -- Objects that no document shows any more, and when each was last observed: seconds of the store's clock.
        CREATE TABLE _orphans (object INTEGER PRIMARY KEY, since INTEGER NOT NULL);

        -- low: lower half of the key's digest. place: digest of upstream and URL, for every principal. verified: commit
        -- sequence at which the document was last known to show the newest values; 0: it did not when it was stored.
        CREATE TABLE _documents (
            id INTEGER PRIMARY KEY,
            low INTEGER NOT NULL,
            place INTEGER NOT NULL,
            scope INTEGER NOT NULL,
            url TEXT NOT NULL,
            variant BLOB NOT NULL,
            status INTEGER NOT NULL,
            observation INTEGER NOT NULL,
            verified INTEGER NOT NULL,
            length INTEGER NOT NULL,
            head BLOB NOT NULL,
            policy BLOB NOT NULL
        );
        CREATE INDEX _documents_low ON _documents (low);
        CREATE INDEX _documents_place ON _documents (place);

        -- Stored apart from the documents, so that a 304 rewrites little. pins: the versions shown, in pre-order (Pins). body:
        -- the exact bytes, if there is no skeleton or it does not recompose to them. keyed: the offsets in the skeleton of
        -- objects whose members are the document's objects (StoredBody).
        CREATE TABLE _bodies (
            document INTEGER PRIMARY KEY,
            pins BLOB NOT NULL,
            skeleton BLOB,
            body BLOB,
            keyed BLOB
        );

        -- Documents that were not decomposed, because they have too many objects. Their objects are unknown, so every write to
        -- their upstream removes them.
        CREATE TABLE _undivided (document INTEGER PRIMARY KEY, upstream TEXT NOT NULL);

        -- When a document was last used: seconds of the store's clock.
        CREATE TABLE _used (document INTEGER PRIMARY KEY, at INTEGER NOT NULL);
        CREATE INDEX _used_at ON _used (at);

        CREATE TABLE _suspects (
            suspect INTEGER NOT NULL,
            upstream TEXT NOT NULL,
            url TEXT NOT NULL,
            PRIMARY KEY (suspect, upstream, url)
        ) WITHOUT ROWID;

        -- What a write in progress may change besides the paths in _suspects: objects by identity (key: NULL) or by a key, and
        -- paths by a pattern below a base path.
        CREATE TABLE _suspect_objects (
            suspect INTEGER NOT NULL,
            upstream TEXT NOT NULL,
            model TEXT NOT NULL,
            identity TEXT,
            key TEXT
        );
        CREATE TABLE _suspect_patterns (
            suspect INTEGER NOT NULL,
            upstream TEXT NOT NULL,
            base TEXT NOT NULL,
            pattern TEXT NOT NULL
        );

        CREATE TABLE _warnings (
            kind TEXT NOT NULL,
            subject TEXT NOT NULL,
            message TEXT NOT NULL,
            url TEXT NOT NULL,
            pointer TEXT NOT NULL,
            count INTEGER NOT NULL,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL,
            PRIMARY KEY (kind, subject)
        ) WITHOUT ROWID;

        -- Changes of objects, one row per commit. sequence: that of its last change. at: microseconds of the store's clock.
        -- total: how many changes there ever were, including these. entries: Journal.
        CREATE TABLE _changes (
            sequence INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            total INTEGER NOT NULL,
            entries BLOB NOT NULL
        );

        -- The names of objects that were evicted, but are still in the journal. changed: commit sequence of the last change.
        CREATE TABLE _gone (
            object INTEGER PRIMARY KEY,
            collection INTEGER NOT NULL,
            identity NOT NULL,
            changed INTEGER NOT NULL
        );

        -- What readers of live responses were last sent, so that they can resume after a break, even of the daemon. There are
        -- rows only for documents that were followed, and their number is bounded. subject: digest of a document in one view.
        -- sequence: commit sequence at which it was sent, the number given to its readers. content: digest of what was sent;
        -- NULL: it cannot be recognised again.
        CREATE TABLE _told (
            subject INTEGER PRIMARY KEY,
            sequence INTEGER NOT NULL,
            content INTEGER
        );
        """
}

/// The single values of a store.
enum Meta: String {
    case secretLow, secretHigh
    /// The secret of the digests in `_keys`, if it differs from the store's because they came with a copy of another store.
    case keyLow, keyHigh
    /// The digest of the principal key under which the principals were made; only in copies.
    case principalKey
    case sequence
    /// The commit sequence of the last change to any object.
    case changed
    /// The commit sequence up to which changes are no longer in the journal; missing if there is no journal.
    case journal
    /// The highest object id ever assigned, as of the last removal of an object.
    case object
    /// The highest time ever committed, and the rest of `StoredTime`.
    case clock, wallLead, clockOffset, boot, agesKnownSince, restarted
    /// 1 after an orderly shutdown.
    case closed
    /// The responses that other machines had requested until then are not stored: what they show may be older than what was known
    /// and has been cleaned or evicted since.
    case sharedSince
    case views
    /// 0 while objects remain to be migrated to a newer version of their model.
    case modernised

    /// The commit sequence; 0 in a new file.
    static func commitNumber(in database: Database) throws -> CommitNumber {
        CommitNumber(rawValue: try sequence.integer(in: database) ?? 0)
    }

    func integer(in database: Database) throws -> Int64? {
        try database.query("SELECT value FROM _meta WHERE key = ?").integer(rawValue)
    }

    func set(_ value: Int64, in database: Database) throws {
        let sql = "INSERT INTO _meta VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2 WHERE value IS NOT ?2"
        try database.query(sql).run(rawValue, value)
    }

    /// The secret of the digests of documents' keys; nil in a new file.
    static func secret(in database: Database) throws -> HashSecret? { try secret(secretLow, secretHigh, in: database) }

    /// The secret of the digests of objects' keys; nil in a new file.
    static func keySecret(in database: Database) throws -> HashSecret? {
        try secret(keyLow, keyHigh, in: database) ?? secret(in: database)
    }

    static func set(_ secret: HashSecret, as low: Meta = secretLow, _ high: Meta = secretHigh, in database: Database)
        throws
    {
        try low.set(Int64(bitPattern: secret.0), in: database)
        try high.set(Int64(bitPattern: secret.1), in: database)
    }

    private static func secret(_ low: Meta, _ high: Meta, in database: Database) throws -> HashSecret? {
        guard let low = try low.integer(in: database), let high = try high.integer(in: database) else { return nil }
        return (UInt64(bitPattern: low), UInt64(bitPattern: high))
    }

    func remove(in database: Database) throws { try database.query("DELETE FROM _meta WHERE key = ?").run(rawValue) }
}

extension StoredTime {
    init(in database: Database) throws {
        // The year 10000, which no valid clock reaches.
        let end = RowBounds.times.upperBound
        clock = try Meta.clock.integer(in: database) ?? 0
        wallLead = try Meta.wallLead.integer(in: database)
        offset = try Meta.clockOffset.integer(in: database)
        boot = try Meta.boot.integer(in: database)
        agesKnownSince = try Meta.agesKnownSince.integer(in: database) ?? 0
        restarted = try Meta.restarted.integer(in: database) ?? 0
        let isPossible = [wallLead, offset, agesKnownSince, restarted].allSatisfy { time in
            time.map { (-end..<end).contains($0) } ?? true
        }
        guard (0..<end).contains(clock), isPossible else {
            throw StoreError.corrupt("its clock is at no possible time")
        }
    }

    /// Writes everything but the time itself, which each commit writes.
    func write(in database: Database) throws {
        try Meta.wallLead.set(wallLead ?? 0, in: database)
        try Meta.clockOffset.set(offset ?? 0, in: database)
        try Meta.boot.set(boot ?? 0, in: database)
        try Meta.agesKnownSince.set(agesKnownSince, in: database)
        try Meta.restarted.set(restarted, in: database)
    }
}
