import Dispatch
import EventLoops
import Glibc
import HTTPSemantics
import Proxy
import Recording
import Settings
import Synchronization
import Upstream

/// Sends requests to upstreams for a command, which waits for each response.
final class UpstreamQuestions {
    /// A request without a response.
    struct Failure: Error {
        let message: String
    }

    private let loop: EventLoop
    private let clients: LoopReference<Clients>
    /// Kept alive; used on the loop only.
    private let kept: Clients

    /// The clients of the upstreams, each created when it is needed.
    private final class Clients {
        let loop: EventLoop
        let settings: Configuration
        var known: [String: UpstreamClient] = [:]

        init(_ loop: EventLoop, _ settings: Configuration) {
            (self.loop, self.settings) = (loop, settings)
        }

        func client(for upstream: Configuration.Upstream) -> UpstreamClient {
            if let client = known[upstream.name] { return client }
            let client = UpstreamClient(loop: loop, options: settings.options(for: upstream))
            known[upstream.name] = client
            return client
        }
    }

    init(_ settings: Configuration) throws {
        signal(SIGPIPE, SIG_IGN)
        loop = try EventLoop(name: "upstream")
        kept = Clients(loop, settings)
        clients = LoopReference(kept, on: loop)
        loop.start()
        // Never released: objects on the loop may only be destroyed on its thread, which ends with the process.
        _ = Unmanaged.passRetained(kept)
    }

    /// Sends a request and waits for its response.
    func ask(
        _ upstream: Configuration.Upstream,
        _ method: String,
        _ url: String,
        _ fields: Fields
    ) throws -> RecordingComparison.Update {
        let response = CollectedResponse()
        let request = UpstreamRequest(method: method, url: url, fields: fields)
        clients.enqueue { $0.client(for: upstream).start(request, response) }
        return try response.wait()
    }

    /// Collects one response.
    private final class CollectedResponse: TransferDelegate, Sendable {
        private struct State {
            var update = RecordingComparison.Update(status: 0, fields: Fields(), body: [])
            var failure: String?
        }

        private let state = Mutex(State())
        private let isDone = DispatchSemaphore(value: 0)

        func informational(status: Int, fields: Fields) {}

        func received(head: UpstreamHead) {
            state.withLock { ($0.update.status, $0.update.fields) = (head.status, head.fields) }
        }

        func received(body: UnsafeRawBufferPointer) -> Flow {
            let bytes = Array(body)
            return state.withLock { state in
                guard state.update.body.count + bytes.count <= RecordingFolder.bodyLimit else {
                    state.failure = "the response is larger than 256 MiB"
                    return .proceed
                }
                state.update.body += bytes
                return .proceed
            }
        }

        func completed(_ result: Result<TransferSummary, UpstreamError>) {
            state.withLock { state in
                switch result {
                case .failure(let error): state.failure = error.message
                case .success(let summary): if !summary.isCodingWhole { state.failure = "the response broke off" }
                }
            }
            isDone.signal()
        }

        func wait() throws -> RecordingComparison.Update {
            isDone.wait()
            let state = state.withLock { $0 }
            if let failure = state.failure { throw Failure(message: failure) }
            var update = state.update
            update.fields = update.fields.withoutHopByHop()
            for name in ["age", "content-length", "alt-svc"] { update.fields.remove(name) }
            return update
        }
    }
}
