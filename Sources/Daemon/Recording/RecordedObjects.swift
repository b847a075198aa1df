import HTTPSemantics
import HTTPServer
package import Proxy
import Settings
import Store

/// Stores the responses of a recording in their order, so that objects and SQL work on a replay.
///
/// Only responses to GET are stored, and to a POST that reads: the effects of writes show in later responses.
package struct RecordedObjects: Sendable {
    private let cache: ResponseCache
    private let principals: PrincipalResolver
    private let upstreams: [String: ProxiedUpstream]

    package init(cache: ResponseCache, principals: PrincipalResolver, upstreams: [ProxiedUpstream]) {
        (self.cache, self.principals) = (cache, principals)
        self.upstreams = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
    }

    /// The maximum number of responses handed over but not yet stored.
    private static let window = 64

    /// Stores all storable responses; the others are skipped, because the replay itself does not need them.
    package func store(_ recording: RecordingContents) async {
        var waiting = 0
        let (stored, continuation) = AsyncStream.makeStream(of: Void.self)
        var iterator = stored.makeAsyncIterator()
        for exchange in recording.exchanges where ["GET", "POST"].contains(exchange.request.method) {
            guard let upstream = upstreams[exchange.upstream], exchange.response.status != 206,
                exchange.response.status != 304, let body = try? recording.folder.body(exchange.response.body),
                let incoming = Self.read(exchange, of: upstream, recording.folder)
            else { continue }
            let isHandedOver = await cache.receive(
                recorded: (exchange.response.status, Fields(recorded: exchange.response.fields), body),
                for: incoming,
                credentials: exchange.credential.map { Array("recorded \($0)".utf8) },
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

    /// The request of an exchange; nil if it is a write, or not the upstream's.
    private static func read(_ exchange: RecordedExchange, of upstream: ProxiedUpstream, _ folder: RecordingFolder)
        -> IncomingRequest?
    {
        let (method, target) = (exchange.request.method, exchange.request.target)
        let fields = Fields(recorded: exchange.request.fields ?? [])
        let incoming = IncomingRequest(recorded: method, target, fields: fields, upstream)
        guard method == "POST", let incoming else { return incoming }
        guard upstream.reading(incoming) != nil, let body = try? folder.body(exchange.request.body) else { return nil }
        return try? incoming.reading(body)
    }
}
