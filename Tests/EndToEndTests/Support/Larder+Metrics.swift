import TestSupport

/// What is going on inside, as the metrics tell it: what a test waits for in the place of a while.
extension Larder {
    /// The sum of a metric's samples.
    func total(_ metric: String) throws -> Double {
        try admin("GET", "/metrics").text.split(separator: "\n")
            .filter { $0.hasPrefix(metric) && ["{", " "].contains($0.dropFirst(metric.count).first) }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0, +)
    }

    /// In front of an upstream that a test has keep its response back until others have asked for it, too.
    static func patient(_ origin: Origin) throws -> Larder {
        try Larder(
            origin,
            config: Configs.plain(
                origin,
                upstream: ["patience: forever"],
                top: ["timeouts: { first_byte: 10m, stall: 10m }"]
            )
        )
    }

    /// How many requests have joined another one's fetch, since the start.
    func followers() throws -> Int { Int(try total("larder_coalesced_requests_total")) }

    /// Waits until so many requests have joined another one's fetch.
    func waitForFollowers(_ count: Int) throws -> Bool { try eventually { try followers() >= count } }

    /// Waits until so many clients are connected: the leaving of the others has been noticed.
    func waitForConnections(_ count: Int) throws -> Bool {
        try eventually { try total("larder_open_connections") == Double(count) }
    }

    /// Waits until nothing is on its way into the store: a reader of the file sees a commit before memory is told of it.
    func waitForQuiet() throws -> Bool { try eventually { try total("larder_ingest_queue") == 0 } }
}
