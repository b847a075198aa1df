extension Schema {
    /// The journal of changes.
    static let changes = """
        -- What became of objects, one row for each commit. sequence: that of the
        -- last change in it. at: microseconds of the store's clock. total: how
        -- many changes there ever were, these included. entries: Journal.
        CREATE TABLE _changes (
            sequence INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            total INTEGER NOT NULL,
            entries BLOB NOT NULL
        );

        -- Who the objects were that were evicted, but that the journal still
        -- speaks of. changed: commit sequence of the last change.
        CREATE TABLE _gone (
            object INTEGER PRIMARY KEY,
            collection INTEGER NOT NULL,
            identity NOT NULL,
            changed INTEGER NOT NULL
        );
        """
}
