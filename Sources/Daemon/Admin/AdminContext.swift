package import Mapping
package import Proxy
package import Store

/// What the admin side needs of the daemon around it.
package protocol AdminContext: Sendable {
    var store: ObjectStore { get }
    var modes: ModeSwitch { get }
    var metrics: Metrics { get }
    /// Larder's version, such as `0.1.0`.
    var version: String { get }
    var readiness: Readiness { get }
    /// The models that the config declares, by upstream.
    var models: [String: Models] { get }
    /// Where streams of changes are told; nil where there is no loop for them.
    var changeStreams: ChangeStreams? { get }

    /// What the store and the memory tier tell about themselves; asked at each scrape.
    func figures() async throws(StoreError) -> StoreFigures

    /// The routes that the config spells so, under every upstream that has one.
    func routes(spelled path: String) -> [RouteFilter]

    /// Removes what a filter means from the store and from memory, and keeps fetches that have begun from bringing it back.
    ///
    /// A dry run only counts.
    func clean(
        _ filter: CleanFilter,
        dryRun: Bool,
        progress: @escaping CleanProgress
    ) async throws(StoreError) -> CleanResult

    /// What is known of a URL, and what a request for it would get; changes nothing.
    func explain(_ question: ExplainQuestion) async throws(Problem) -> Explanation
}

/// Whether the daemon can answer requests.
package enum Readiness: Sendable, Equatable {
    case ready
    /// Not yet, or no longer; the reason is a sentence for people.
    case notReady(String)
}

/// One route as a condition on documents.
package struct RouteFilter: Sendable {
    /// The upstream that the route belongs to.
    package let upstream: String
    /// Whether the route covers this path and query, in the form in which the store has them.
    let covers: @Sendable (String) -> Bool

    package init(upstream: String, covers: @escaping @Sendable (String) -> Bool) {
        self.upstream = upstream
        self.covers = covers
    }
}
