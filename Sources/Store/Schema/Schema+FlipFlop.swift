extension Schema {
    /// By which route an answer was observed, and which members do not move between two routes.
    static let flipFlop = """
        -- Path patterns of routes, by the number that observations have. Never forgotten: the config's author chose them.
        CREATE TABLE _routes (id INTEGER PRIMARY KEY, pattern TEXT NOT NULL UNIQUE);

        -- route: that the answer fell under; NULL: a write's, or none.
        ALTER TABLE _observations ADD COLUMN route INTEGER;

        -- Members that do not move between two routes, whose answers disagreed about them again and again. declared: digest
        -- of what was declared of the model then; with another declaration it is to be found out anew. since: microseconds
        -- of the store's clock.
        CREATE TABLE _separations (
            upstream TEXT NOT NULL,
            model TEXT NOT NULL,
            member TEXT NOT NULL,
            lower INTEGER NOT NULL,
            higher INTEGER NOT NULL,
            declared INTEGER NOT NULL,
            since INTEGER NOT NULL,
            PRIMARY KEY (upstream, model, member, lower, higher)
        ) WITHOUT ROWID;
        """
}
