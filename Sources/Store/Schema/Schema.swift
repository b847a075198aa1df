import GRDB

/// The tables, as numbered steps that every store goes through once.
enum Schema {
    /// Marks the file as Larder's, for `file(1)` and for ourselves: "Lrdr".
    static let applicationID: Int64 = 0x4c72_6472

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("0001") { database in
            try database.execute(sql: "PRAGMA application_id = \(applicationID)")
            try database.execute(sql: first)
        }
        migrator.registerMigration("0002") { try $0.execute(sql: second) }
        migrator.registerMigration("0003") { try $0.execute(sql: tombstones) }
        migrator.registerMigration("0004") { try $0.execute(sql: changes) }
        migrator.registerMigration("0005") { try $0.execute(sql: provenance) }
        migrator.registerMigration("0006") { try $0.execute(sql: flipFlop) }
        migrator.registerMigration("0007", migrate: addTold)
        migrator.registerMigration("0008", migrate: addKeyed)
        migrator.registerMigration("0009", migrate: addSpilled)
        migrator.registerMigration("0010") { try $0.execute(sql: marks) }
        migrator.registerMigration("0011 undivided", migrate: addUndivided)
        return migrator
    }

    // Sizes decide much of this: integers for every name, no column that can
    // be reckoned from others, no index but those a look-up needs.
    private static let first = """
        -- Single values: the secret, the commit sequence, the clock's high-water mark …
        CREATE TABLE _meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

        -- Upstreams, contexts and models by name.
        CREATE TABLE _names (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);

        CREATE TABLE _principals (
            id INTEGER PRIMARY KEY,
            digest BLOB NOT NULL UNIQUE,
            label TEXT NOT NULL
        );
        INSERT INTO _principals VALUES (1, x'', 'anonymous');

        -- Whose data, from where, in which representation.
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

        -- One answer each: when it was observed. uses: the document, and every
        -- entry of an object's state that names it.
        CREATE TABLE _observations (
            id INTEGER PRIMARY KEY,
            start INTEGER NOT NULL,
            finish INTEGER NOT NULL,
            kind INTEGER NOT NULL,
            uses INTEGER NOT NULL
        );

        -- identity: an integer where the canonical text is one. changed: commit
        -- sequence of the last change. version: the newest contribution's.
        -- merged: the newest members where no single version has them all.
        -- state: which versions are pinned and which contribute (ObjectRecord).
        CREATE TABLE _objects (
            id INTEGER PRIMARY KEY,
            collection INTEGER NOT NULL,
            identity NOT NULL,
            changed INTEGER NOT NULL,
            version INTEGER,
            state BLOB NOT NULL,
            merged TEXT
        );
        CREATE UNIQUE INDEX _objects_identity ON _objects (collection, identity);

        -- Immutable; each belongs to the one object whose state names it.
        CREATE TABLE _versions (id INTEGER PRIMARY KEY, payload TEXT NOT NULL);

        -- Objects that no document shows any more, and when each was last
        -- observed: seconds of the store's clock.
        CREATE TABLE _orphans (object INTEGER PRIMARY KEY, since INTEGER NOT NULL);

        -- low: lower half of the key's digest. place: digest of upstream and
        -- URL, whoever asked. verified: commit sequence at which the document
        -- was last known to show the newest; 0: not when it came.
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

        -- Apart from the documents, so that a 304 rewrites little. pins: the
        -- versions shown, in pre-order (Pins). body: the very bytes, where
        -- there is no skeleton or it does not give them back.
        CREATE TABLE _bodies (
            document INTEGER PRIMARY KEY,
            pins BLOB NOT NULL,
            skeleton BLOB,
            body BLOB
        );

        -- When a document was last used: seconds of the store's clock.
        CREATE TABLE _used (document INTEGER PRIMARY KEY, at INTEGER NOT NULL);
        CREATE INDEX _used_at ON _used (at);

        CREATE TABLE _suspects (
            suspect INTEGER NOT NULL,
            upstream TEXT NOT NULL,
            url TEXT NOT NULL,
            PRIMARY KEY (suspect, upstream, url)
        ) WITHOUT ROWID;

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
        """

    // Columns that are NULL nearly always, which costs a byte a row.
    private static let second = """
        -- accumulated: what members with a merge policy come to (Accumulation).
        -- deleted: 1 for what says of itself that it is deleted.
        ALTER TABLE _objects ADD COLUMN accumulated TEXT;
        ALTER TABLE _objects ADD COLUMN deleted INTEGER;
        CREATE INDEX _objects_deleted ON _objects (collection) WHERE deleted IS NOT NULL;

        -- declared: the version of the model that it was stored under; NULL: 0.
        ALTER TABLE _versions ADD COLUMN declared INTEGER;

        -- value: digest of a key by which the object can be found. bound: 1 where
        -- a route's path gave it, and the object's own members do not.
        CREATE TABLE _keys (
            object INTEGER NOT NULL,
            value INTEGER NOT NULL,
            bound INTEGER,
            PRIMARY KEY (object, value)
        ) WITHOUT ROWID;
        CREATE INDEX _keys_value ON _keys (value);

        -- The newest version of each model that objects were stored under.
        CREATE TABLE _models (
            upstream TEXT NOT NULL,
            model TEXT NOT NULL,
            version INTEGER NOT NULL,
            PRIMARY KEY (upstream, model)
        ) WITHOUT ROWID;
        """
}
