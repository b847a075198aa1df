/// One piece of work for the writer.
struct Job: Sendable {
    enum Urgency: Sendable, Equatable {
        /// Waits for company.
        case batched
        /// Somebody waits: committed at once, with whatever waits already.
        case prompt
        /// As `prompt`, ahead of what waits, and in a transaction without it.
        case express
        /// As `express`, and on disk before anybody is told.
        case durable

        /// Whether it need not wait its turn.
        var isExpress: Bool { self == .express || self == .durable }
    }

    let urgency: Urgency
    /// Runs by itself, opening its own transactions.
    var isAlone = false
    /// About how much it adds to the file.
    var bytes = 0
    /// Whether it may be left undone when the store is closed and its time is over.
    var isDispensable = false
    /// Does the work and returns what is to be called after the commit.
    ///
    /// Run a second time if the batch that it was in had to be rolled back.
    let work: @Sendable (WriteSession) throws -> @Sendable () -> Void
    let failed: @Sendable (StoreError) -> Void
}
