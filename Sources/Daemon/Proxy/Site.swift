/// The upstreams that are reached at one set of addresses, and who may ask for them there.
///
/// Immutable, shared by the workers.
struct Site: Sendable {
    /// Longest prefix first.
    private let upstreams: [Upstream]
    private let guards: [Guard]

    /// - Parameters:
    ///   - listeners: the addresses as bound.
    init(upstreams: [Upstream], listeners: [Guard.Listener]) {
        let sorted = upstreams.sorted { $0.settings.prefix.utf8.count > $1.settings.prefix.utf8.count }
        self.upstreams = sorted
        guards = sorted.map { Guard(listeners: listeners, hosts: $0.settings.hosts, cors: $0.cors) }
    }

    /// The upstream whose prefix a path has.
    func upstream(for path: UnsafeRawBufferPointer) -> Upstream? {
        position(for: path).map { upstreams[$0] }
    }

    /// Whether a request may be answered at all.
    func check(_ request: borrowing RequestHead) -> (verdict: Guard.Verdict, upstream: Upstream?) {
        let position = position(for: request.path)
        let facts = Guard.Facts(
            authority: request.authority,
            origin: request[.origin],
            secFetchSite: request[.secFetchSite],
            isOptions: request.method == .options,
            asksForMethod: request.has(.accessControlRequestMethod)
        )
        // Where no upstream is meant, any site's guard tells whether the host is ours.
        return (guards[position ?? 0].check(facts), position.map { upstreams[$0] })
    }

    private func position(for path: UnsafeRawBufferPointer) -> Int? {
        upstreams.firstIndex { upstream in
            let prefix = upstream.normaliser.prefix
            guard !prefix.isEmpty else { return true }
            guard path.count >= prefix.count, path.count == prefix.count || path[prefix.count] == 0x2F else { return false }
            return path.prefix(prefix.count).elementsEqual(prefix)
        }
    }
}
