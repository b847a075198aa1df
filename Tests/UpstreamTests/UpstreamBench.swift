@testable import EventLoops
@testable import HTTPSemantics
@testable import Upstream

/// An upstream client on a loop of its own, for tests on other threads.
// Unchecked: the client is touched on the loop only.
final class UpstreamBench: @unchecked Sendable {
    let loop: EventLoop
    private var client: UpstreamClient?

    init(_ options: UpstreamOptions = UpstreamBench.options) throws {
        loop = try EventLoop(name: "upstream-test")
        loop.start()
        loop.enqueue { [self] in client = UpstreamClient(loop: loop, options: options) }
    }

    deinit {
        precondition(client == nil, "stop() the bench")
    }

    /// Options that no proxy of the test's environment disturbs.
    static var options: UpstreamOptions {
        var options = UpstreamOptions()
        options.proxy = .none
        // However slowly the tests run.
        options.unsafeReuseAge = .seconds(3_600)
        let long = Duration.seconds(120)
        (options.timeouts.connect, options.timeouts.queue) = (long, long)
        (options.timeouts.firstByte, options.timeouts.stall) = (long, long)
        return options
    }

    func stop() {
        loop.enqueue { [self] in
            client?.cancelAll()
            loop.enqueue { [self] in client = nil }
        }
        loop.stop()
        loop.join()
    }

    /// Does something on the loop.
    func onLoop<Value: Sendable>(_ work: @escaping @Sendable (UpstreamClient) -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            loop.enqueue { [self] in continuation.resume(returning: work(client!)) }
        }
    }

    /// Sends a request and waits for its end.
    func send(
        _ request: UpstreamRequest,
        _ prepare: @escaping @Sendable (TransferRecorder) -> Void = { _ in }
    ) async -> ReceivedResponse {
        await withCheckedContinuation { continuation in
            loop.enqueue { [self] in
                let recorder = TransferRecorder()
                recorder.onCompleted = { continuation.resume(returning: $0.answer) }
                prepare(recorder)
                recorder.transfer = client!.start(request, recorder)
            }
        }
    }

    func get(_ url: String, _ fields: Fields = Fields()) async -> ReceivedResponse {
        await send(UpstreamRequest(method: "GET", url: url, fields: fields))
    }
}

extension UpstreamClient {
    /// How many transfers have not ended.
    var activeCount: Int { active.count }

    /// Gives up all transfers; their delegates are told.
    func cancelAll() {
        for transfer in active.values { transfer.cancel() }
    }
}
