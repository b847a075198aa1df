import HTTPSemantics
package import HTTPServer
package import Proxy
package import Store

/// Puts a recording between the clients and the cache: replays, records, or does both.
package final class RecordingInterceptor: ExchangeInterceptor {
    private let replayer: Replayer?
    private let recorder: Recorder?
    private let missed: @Sendable (Replayer.Miss) -> Void

    /// - Parameters:
    ///   - replayer: Serves recorded responses; nil if every request is forwarded.
    ///   - recorder: Records the forwarded requests; nil for a replay, which forwards none.
    package init(
        replayer: Replayer?,
        recorder: Recorder?,
        missed: @escaping @Sendable (Replayer.Miss) -> Void = { _ in }
    ) { (self.replayer, self.recorder, self.missed) = (replayer, recorder, missed) }

    package var isActive: Bool { true }

    package func ready(at digest: Digest128) -> ReadyResponse? { replayer?.ready(at: digest) }

    package func received(_ incoming: IncomingRequest, _ reply: Reply, _ proxy: ProxyCore) {
        guard let replayer else {
            recorder?.watch(incoming, reply)
            return proxy.accept(incoming, reply)
        }
        guard let body = incoming.message.body else { return respond(incoming, reply, [], replayer, proxy) }
        Task {
            // A body that does not arrive as a whole was refused by the connection.
            guard let bytes = try? await body.collect(limit: RecordingFolder.bodyLimit)
            else { return reply.abort() }
            var incoming = incoming
            incoming.message.body = RequestBody(bytes)
            respond(incoming, reply, bytes, replayer, proxy)
        }
    }

    private func respond(
        _ incoming: IncomingRequest,
        _ reply: Reply,
        _ body: [UInt8],
        _ replayer: Replayer,
        _ proxy: ProxyCore
    ) {
        switch replayer.find(incoming, body: body) {
        case .exchange(let recorded, let series):
            do throws(RecordingError) {
                let (fields, body, moment) = try replayer.response(recorded)
                let status = recorded.response.status
                let response = RecordedResponse(status: status, fields: fields, body: body, for: incoming, at: moment)
                if let delay = replayer.delay(before: recorded) {
                    Task {
                        try? await Task.sleep(for: delay)
                        response.serve(incoming, reply)
                    }
                    return
                }
                if let ready = response.ready(for: incoming) {
                    replayer.admit(ready, at: proxy.cache.store.hasher.digest(ready.key), of: series, for: incoming)
                }
                response.serve(incoming, reply)
            } catch { reply.refuse(.recordingUnreadable(error.description)) }
        case .missing(let miss):
            if let recorder, miss.recorded == 0 {
                recorder.watch(incoming, reply, body: body)
                return proxy.accept(incoming, reply)
            }
            missed(miss)
            reply.refuse(
                miss.recorded > 0
                    ? .recordingExhausted(miss.request, count: miss.recorded)
                    : .notRecorded(miss.request, nearest: miss.nearest.map { ($0.request, $0.differences) })
            )
        }
    }
}
