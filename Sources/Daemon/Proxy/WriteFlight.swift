import EventLoops
import HTTPSemantics
import HTTPServer
import Settings
import Upstream

/// An unsafe request on its way: its answer is relayed but for the last piece, which waits for the store (law 10).
///
/// The upstream loop only.
final class WriteFlight: TransferDelegate {
    let demand: Demand
    /// When it was sent, on the store's clock.
    let start: Int64
    private let reply: Reply
    private unowned let flights: Flights
    private var completion: CheckedContinuation<WriteOutcome, Never>?
    private var outcome: WriteOutcome?
    private var transfer: Transfer?
    private var head: UpstreamHead?
    /// What the client does not have yet; the same pieces as those of `body`, where they are there.
    private var held: [[UInt8]] = []
    private var isBegun = false
    private var isClientGone = false
    private var isOver = false
    private var body: BodyBuffer
    /// The bytes of the body that count as held.
    private var charge = 0

    init(_ demand: Demand, _ reply: Reply, flights: Flights) {
        self.demand = demand
        self.reply = reply
        self.flights = flights
        start = flights.cache.now
        body = BodyBuffer(limit: flights.settings.limits.document)
    }

    /// Calls back when the answer has come or never will, with the piece of it that was withheld.
    func complete(_ continuation: CheckedContinuation<WriteOutcome, Never>) {
        if let outcome { continuation.resume(returning: outcome) } else { completion = continuation }
    }

    func depart(_ request: UpstreamRequest, through client: UpstreamClient) {
        transfer = client.start(request, self)
        let flight = LoopReference(self, on: flights.loop)
        reply.onDisconnect { flight.enqueue { $0.clientLeft() } }
    }

    func informational(status: Int, fields: Fields) {
        reply.informational(status: status, fields: demand.interim(fields))
    }

    func received(head: UpstreamHead) {
        self.head = head
        flights.heedRetryAfter(of: head, to: demand)
    }

    func received(body bytes: UnsafeRawBufferPointer) -> Flow {
        if !isClientGone, reply.backlog > flights.settings.limits.relayWindow {
            let flight = LoopReference(self, on: flights.loop)
            reply.onDrain(below: flights.settings.limits.relayWindow / 2) {
                flight.enqueue { $0.transfer?.resume() }
            }
            return .pause
        }
        if !isMappedWhole {
            passOnHeld()
            held = []
        }
        let piece = [UInt8](bytes)
        held.append(piece)
        body.append(piece)
        if body.isWhole {
            charge += piece.count
            // Past it what the answer tells of objects is forgone: it counts as a write that did not tell.
            if !flights.hold(piece.count) { body.letGo() }
        }
        if !body.isWhole { releaseCharge() }
        return .proceed
    }

    /// Whether the client waits for the mapped view, which is made of the whole answer.
    private var isMappedWhole: Bool {
        demand.view == .mapped && body.isWhole && head.map { demand.upstream.isJSON($0.fields) } ?? false
    }

    func completed(_ result: Result<TransferSummary, UpstreamError>) {
        isOver = true
        transfer = nil
        let error: UpstreamError? = if case .failure(let error) = result { error } else { nil }
        flights.ended(self, result: error.map { .failed($0) } ?? .answered(status: head?.status ?? 0))
        let isWhole = if case .success(let summary) = result { summary.isCodingWhole } else { false }
        let whole = body.isWhole && isWhole ? body.joined() : nil
        let outcome = WriteOutcome(
            head: head,
            // What is withheld as a whole is kept once.
            held: whole.flatMap { isBegun ? nil : $0 } ?? Array(held.joined()),
            isBegun: isBegun,
            body: whole,
            error: error,
            isCut: error == nil && !isWhole
        )
        held = []
        body.letGo()
        self.outcome = outcome
        completion?.resume(returning: outcome)
    }

    /// What the answer holds of memory is free once the store has taken it in, and the client the rest of it.
    func releaseCharge() {
        guard charge > 0 else { return }
        flights.release(charge, after: [reply])
        charge = 0
    }

    private func passOnHeld() {
        guard !held.isEmpty, let head else { return }
        if !isBegun {
            isBegun = true
            WriteOutcome.begin(head, demand, reply)
        }
        for piece in held { reply.write(piece) }
    }

    /// The request goes on: it may have been received, and its outcome is worth knowing.
    ///
    /// Where its body was still being sent, that has failed already.
    private func clientLeft() {
        guard !isOver else { return }
        isClientGone = true
        transfer?.resume()
    }
}
