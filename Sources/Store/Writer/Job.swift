/// One piece of work for the writer.
struct Job: Sendable {
    enum Urgency: Sendable {
        /// Waits for company.
        case batched
        /// Somebody waits: committed at once, with whatever waits already.
        case prompt
        /// As `prompt`, ahead of what waits, and on disk before anybody is told.
        case durable
    }

    let urgency: Urgency
    /// Runs by itself, opening its own transactions.
    var isAlone = false
    /// About how much it adds to the file.
    var bytes = 0
    /// Does the work and returns what is to be called after the commit.
    ///
    /// Run a second time if the batch it was in had to be rolled back for want of room.
    let work: @Sendable (WriteSession) throws -> @Sendable () -> Void
    let failed: @Sendable (StoreError) -> Void
}
