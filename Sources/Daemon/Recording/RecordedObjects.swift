import Dispatch
import HTTPSemantics
package import Proxy
import Synchronization

/// Puts the responses of a recording into the store, in their order, so that objects and SQL work on a replay.
///
/// Responses to GET alone: what writes have shown is in the responses that were asked for after them.
package struct RecordedObjects: Sendable {
    private let cache: ResponseCache
    private let principals: PrincipalResolver
    private let upstreams: [String: ProxiedUpstream]

    package init(cache: ResponseCache, principals: PrincipalResolver, upstreams: [ProxiedUpstream]) {
        self.cache = cache
        self.principals = principals
        self.upstreams = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
    }

    /// How many responses are handed over before the store has the first of them.
    private static let window = 64

    /// Stores what can be stored; what cannot is left out, since the replay itself needs none of it.
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
