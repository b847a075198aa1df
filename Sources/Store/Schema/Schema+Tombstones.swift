extension Schema {
    // Columns that are NULL nearly always, which costs a byte a row; `deleted` is there already.
    static let tombstones = """
        -- deleted: NULL; 1 for what says of itself that it is deleted; else the time of its tombstone. unobserved: when a
        -- write was over of which nobody was told what it did to the object. Both in µs of the store's clock.
        ALTER TABLE _objects ADD COLUMN unobserved INTEGER;

        -- What a write under way may change besides the paths in _suspects: objects by identity (key: NULL) or by a key,
        -- and paths by a pattern below a base path.
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
        """
}
