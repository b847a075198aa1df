package import HTTPServer
package import Proxy
package import Store

/// Puts a recording between the clients and the cache: replays, records, or does both.
package final class RecordingInterceptor: ExchangeInterceptor {
    private let replayer: Replayer?
    private let recorder: Recorder?
    /// Called with each request that was not recorded.
    private let missed: @Sendable (Replayer.Miss) -> Void

    /// - Parameters:
    ///   - replayer: Serves recorded responses; nil if every request is forwarded.
    ///   - recorder: Records the forwarded requests; nil for a replay, which forwards none.
    package init(
        replayer: Replayer?,
        recorder: Recorder?,
        missed: @escaping @Sendable (Replayer.Miss) -> Void = { _ in }
    ) {
        self.replayer = replayer
        self.recorder = recorder
        self.missed = missed
    }

    package var isActive: Bool { true }

    package func sequence(at digest: Digest128) -> ReadySequence? { replayer?.sequence(at: digest) }

    package func received(_ exchange: Exchange, _ incoming: IncomingRequest, _ proxy: ProxyCore) {
        guard let replayer else {
            recorder?.watch(exchange, incoming)
            return proxy.accept(exchange, incoming)
        }
        guard let body = exchange.request.body else { return respond(exchange, incoming, [], replayer, proxy) }
        Task {
            // A body that does not arrive as a whole was refused by the connection.
            guard let bytes = try? await body.collect(limit: RecordingFolder.bodyLimit) else {
                return exchange.reply.abort()
            }
            var request = exchange.request
            request.body = RequestBody(bytes)
            respond(Exchange(request: request, reply: exchange.reply), incoming, bytes, replayer, proxy)
        }
    }

    private func respond(
        _ exchange: Exchange,
        _ incoming: IncomingRequest,
        _ body: [UInt8],
        _ replayer: Replayer,
        _ proxy: ProxyCore
    ) {
        let request = incoming.live == nil ? exchange.request : exchange.request.plain
        switch replayer.find(incoming, method: request.method, fields: request.fields, body: body) {
        case .exchange(let recorded, let place):
            do throws(RecordingError) {
                let (fields, body, moment) = try replayer.response(recorded)
                let response = RecordedResponse(
                    status: recorded.response.status,
                    fields: fields,
                    body: body,
                    for: incoming,
                    at: moment
                )
                if let ready = response.ready(for: exchange.request, incoming) {
                    replayer.keep(ready, at: proxy.cache.store.hasher.digest(ready.key), of: place, for: incoming)
                }
                response.serve(exchange, incoming)
            } catch {
                exchange.reply.refuse(.recordingUnreadable(error.description))
            }
        case .missing(let miss):
            if let recorder, miss.recorded == 0 {
                recorder.watch(exchange, incoming, body: body)
                return proxy.accept(exchange, incoming)
            }
            missed(miss)
            exchange.reply.refuse(
                miss.recorded > 0
                    ? .recordingExhausted(miss.request, count: miss.recorded)
                    : .notRecorded(miss.request, nearest: miss.nearest.map { ($0.request, $0.differences) })
            )
        }
    }
}
