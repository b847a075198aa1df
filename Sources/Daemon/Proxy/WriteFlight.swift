/// An unsafe request on its way: its answer is relayed but for the last piece, which waits for the store (law 10).
///
/// The upstream loop only.
final class WriteFlight: TransferDelegate {
    private let demand: Demand
    private let reply: Reply
    private unowned let flights: Flights
    private let completion: CheckedContinuation<WriteOutcome, Never>
    private var transfer: Transfer?
    private var head: UpstreamHead?
    private var held: [UInt8] = []
    private var isBegun = false
    private var isClientGone = false
    private var isOver = false
    private var body: BodyBuffer

    init(
        _ demand: Demand,
        _ reply: Reply,
        flights: Flights,
        completion: CheckedContinuation<WriteOutcome, Never>
    ) {
        self.demand = demand
        self.reply = reply
        self.flights = flights
        self.completion = completion
        body = BodyBuffer(limit: flights.settings.limits.maximumDocument)
    }

    func depart(_ request: UpstreamRequest, through client: UpstreamClient) {
        transfer = client.start(request, self)
        reply.onDisconnect { [loop = flights.loop, weak self] in
            loop.enqueue { self?.clientLeft() }
        }
    }

    func informational(status: Int, fields: Fields) {
        reply.informational(status: status, fields: fields)
    }

    func received(head: UpstreamHead) {
        self.head = head
    }

    func received(body bytes: UnsafeRawBufferPointer) -> Flow {
        if !isClientGone, reply.backlog > flights.settings.limits.relayWindow {
            reply.onDrain(below: flights.settings.limits.relayWindow / 2) { [loop = flights.loop, weak self] in
                loop.enqueue { self?.transfer?.resume() }
            }
            return .pause
        }
        passOnHeld()
        held = [UInt8](bytes)
        body.append(held)
        return .proceed
    }

    func completed(_ result: Result<TransferSummary, UpstreamError>) {
        isOver = true
        transfer = nil
        flights.ended(self)
        let error: UpstreamError? = if case .failure(let error) = result { error } else { nil }
        completion.resume(
            returning: WriteOutcome(
                head: head,
                held: held,
                isBegun: isBegun,
                body: body.isWhole && error == nil ? body.joined() : nil,
                error: error
            )
        )
    }

    private func passOnHeld() {
        guard !held.isEmpty, let head else { return }
        if !isBegun {
            isBegun = true
            WriteOutcome.begin(head, demand, reply, flights)
        }
        reply.write(held)
    }

    /// The request goes on: it may have been received, and its outcome is worth knowing. Where its body was still
    /// being sent, that has failed already.
    private func clientLeft() {
        guard !isOver else { return }
        isClientGone = true
        transfer?.resume()
    }
}

/// How a write ended, with the last piece of the answer that its client does not have yet.
struct WriteOutcome: Sendable {
    var head: UpstreamHead?
    var held: [UInt8]
    var isBegun: Bool
    /// The whole body, where it is of a size to be kept.
    var body: [UInt8]?
    var error: UpstreamError?
}
