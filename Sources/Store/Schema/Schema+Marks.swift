extension Schema {
    /// By what objects came to be marked, apart from them: few ever are.
    static let marks = """
        -- source: the request of a mark in `deleted` or `unobserved`, such as "PATCH /users/1"; without a method: a write
        -- that was under way when the daemon ended. No row: not known.
        CREATE TABLE _marks (object INTEGER PRIMARY KEY, source TEXT NOT NULL);
        """
}
