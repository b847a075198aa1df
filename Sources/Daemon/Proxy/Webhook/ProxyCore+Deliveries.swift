import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Logging
import Settings
import Store

/// Takes deliveries: verifies them, drops what shows their objects, and responds when that is on disk.
extension ProxyCore {
    /// Takes over a delivery from a worker; any thread.
    nonisolated func accept(_ delivery: IncomingDelivery, _ reply: Reply) {
        Task(executorPreference: loop.taskExecutor) { await self.respond(to: delivery, reply) }
    }

    private func respond(to delivery: IncomingDelivery, _ reply: Reply) async {
        var problem: ProblemDocument?
        do throws(ProblemDocument) {
            try await process(delivery)
            reply.respond(status: 204, fields: ["Cache-Control": "no-store"])
        } catch {
            problem = error
            var fields = error.fields
            fields.append("Cache-Control", "no-store")
            if let retryAfter = error.retryAfter { fields.append("Retry-After", String(retryAfter)) }
            error.cacheStatus.append(to: &fields)
            report(error, of: delivery)
            reply.respond(error, fields: fields)
        }
        record(delivery, problem)
    }

    private func process(_ delivery: IncomingDelivery) async throws(ProblemDocument) {
        let proof = try delivery.proof(now: wall)
        var charge = 0
        defer { bufferedDeliveries -= charge }
        let body = try await collect(delivery.message.body, &charge)
        switch try await delivery.examine(body, proof, cache.store) {
        case .nothing(let event):
            var metadata = delivery.metadata
            if let event { metadata["event"] = "\(event.prefix(100))" }
            log.debug("a delivery concerns no object of its webhook", metadata: metadata)
        case .objects(let prepared): try await commit(prepared, of: delivery)
        }
    }

    /// Reads the body of a delivery, and counts its bytes.
    private func collect(_ body: RequestBody?, _ charge: inout Int) async throws(ProblemDocument) -> [UInt8] {
        guard let body else { return [] }
        var whole: [UInt8] = []
        while let bytes = try await body.next(or: .webhookMalformed("The body has not arrived whole.")) {
            guard whole.count + bytes.count <= IncomingDelivery.byteLimit else {
                throw .webhookTooLarge(limit: IncomingDelivery.byteLimit)
            }
            guard bufferedDeliveries + bytes.count <= Self.deliveryRoom else { throw .webhookBusy }
            charge += bytes.count
            bufferedDeliveries += bytes.count
            whole += bytes
        }
        return whole
    }

    /// The bytes of all deliveries that may be in memory at a time.
    private static let deliveryRoom = 64 << 20

    private func commit(_ prepared: PreparedDelivery, of delivery: IncomingDelivery) async throws(ProblemDocument) {
        let receipt: DeliveryReceipt
        let time = cache.now
        let announcement = announcement(in: delivery.upstream.storeKey)
        do throws(StoreError) {
            receipt = try await cache.store.commit(prepared, at: time)
        } catch {
            announcement?.withdraw()
            throw .storeFailed(error)
        }
        if receipt.isRepeated {
            announcement?.withdraw()
        } else {
            // Requests from now on do not join a fetch that was sent before, and what comes of those is hidden until its commit.
            invalidate(Invalidation(of: delivery.upstream.storeKey, objects: prepared.objects, at: cache.now))
            await announcement?.announce(prepared.objects, at: time)
        }
        var metadata = delivery.metadata
        metadata["objects"] = "\(prepared.objects.count)"
        metadata["observed"] = "\(receipt.observed)"
        metadata["repeated"] = "\(receipt.isRepeated)"
        log.debug("a delivery was committed", metadata: metadata)
    }

    // MARK: What is shown of it

    /// Logs a delivery that was not taken; of many, the first.
    private func report(_ problem: ProblemDocument, of delivery: IncomingDelivery) {
        let message: Logger.Message =
            switch problem.status {
            case 401: "a delivery was refused, because it is not signed as it should be"
            case 503: "a delivery could not be taken; its sender is asked to repeat it"
            default: "a delivery was refused"
            }
        repeated.log(
            problem.status == 503 ? .error : .warning,
            message,
            about: delivery.metadata,
            [
                "status": "\(problem.status)", "cause": "\(problem.detail ?? problem.title)",
                "client": "\(delivery.client.text)",
            ]
        )
    }

    private func record(_ delivery: IncomingDelivery, _ problem: ProblemDocument?) {
        let outcome: Outcome = problem == nil ? .bypass : .error
        outcomes.count(outcome)
        var served = ServedRequest(
            client: delivery.client,
            method: delivery.message.method,
            url: delivery.path,
            upstream: delivery.upstream.name
        )
        let seconds = Double(RequestClock.nanoseconds - delivery.started) / 1_000_000_000
        served.time = RequestClock.wall - Int64(seconds * 1_000_000)
        served.program = delivery.message.fields[first: "user-agent"].flatMap(ClientProgram.name)
        (served.status, served.outcome, served.seconds) = (problem?.status ?? 204, outcome, seconds)
        served.cacheStatus = problem?.cacheStatus
        served.bytes = problem?.bytes.count ?? 0
        requests.record(served)
        metrics.upstream(delivery.upstream.name).count(served, isTimed: true)
    }
}

extension IncomingDelivery {
    fileprivate var metadata: Logger.Metadata { ["upstream": "\(upstream.name)", "webhook": "\(webhook.name)"] }
}
