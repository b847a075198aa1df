/// What a client of a stream takes: asked at each heartbeat, so that one that takes nothing any more is found.
struct EventStreamClient {
    /// Bytes that may wait for it before it counts as behind.
    static let window = 256 << 10

    /// What waited at the last look; nil if it was not behind then.
    private var lastBacklog: Int?

    /// Whether it keeps up, or has taken something since the last look.
    mutating func makesProgress(isBehind: Bool, backlog: Int) -> Bool {
        defer { lastBacklog = isBehind ? backlog : nil }
        guard isBehind, let lastBacklog else { return true }
        return backlog < lastBacklog
    }
}
