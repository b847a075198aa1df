import Dispatch
import HTTPSemantics
package import Proxy
import Synchronization

/// Stores the responses of a recording in their order, so that objects and SQL work on a replay.
///
/// Only responses to GET are stored: the effects of writes show in later responses.
package struct RecordedObjects: Sendable {
    private let cache: ResponseCache
    private let principals: PrincipalResolver
    private let upstreams: [String: ProxiedUpstream]

    package init(cache: ResponseCache, principals: PrincipalResolver, upstreams: [ProxiedUpstream]) {
        self.cache = cache
        self.principals = principals
        self.upstreams = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
    }

    /// The maximum number of responses handed over but not yet stored.
    private static let window = 64

    /// Stores all storable responses; the others are skipped, because the replay itself does not need them.
    package func store(_ recording: Recording) async {
        var waiting = 0
        let (stored, continuation) = AsyncStream.makeStream(of: Void.self)
        var iterator = stored.makeAsyncIterator()
        for exchange in recording.exchanges where exchange.request.method == "GET" {
            guard let upstream = upstreams[exchange.upstream], exchange.response.status != 206,
                exchange.response.status != 304, let body = try? recording.folder.body(exchange.response.body),
                let incoming = IncomingRequest(
                    recorded: exchange.request.target,
                    fields: Fields(recorded: exchange.request.fields ?? []),
                    credentials: exchange.credential.map { Array("recorded \($0)".utf8) },
                    upstream
                )
            else { continue }
            let isHandedOver = await cache.receive(
                recorded: (exchange.response.status, Fields(recorded: exchange.response.fields), body),
                for: incoming,
                principals
            ) { continuation.yield() }
            guard isHandedOver else { continue }
            waiting += 1
            if waiting >= Self.window {
                _ = await iterator.next()
                waiting -= 1
            }
        }
    }
}
