import Settings
import Store
import Upstream

/// How an answer ends: kept or not, whole or broken off.
extension Flight {
    /// The body is larger than what is kept, or all together are: it goes on as a mere relay.
    func outgrew(_ held: [[UInt8]]) {
        if storing != nil {
            flights.supersede(self, by: nil)
            if let head { flights.note(.tooLarge(limit: flights.settings.limits.document), of: head, in: self) }
        }
        storing = nil
        flights.retire(self)
        releaseCharge()
        guard case .gathering = settlement, let head else { return relays.forEach { $0.keptNoLonger() } }
        passOn(held, head)
        giveUpIfUseless()
    }

    func finished() {
        guard let head else { return }
        switch settlement {
        case .pending, .answered:
            break
        case .relaying:
            // Kept, and what it tells committed, before the last byte is out, so that who has the answer finds it, and all else
            // as it says.
            if storing != nil { _ = keep(head) }
            flights.onceTold(by: self) { [self] in
                for relay in relays { relay.finish() }
            }
        case .gathering:
            guard let ready = keep(head) else { return finishUnkept(head) }
            let isCompleted = storing?.part != nil
            flights.onceTold(by: self) { [self] in
                flights.serve(
                    ready,
                    to: takeRelays(),
                    as: { [self] in
                        storesNothing ? .unkept($0.reason) : isCompleted ? .completed($0.reason) : .fetched($0.reason)
                    },
                    cookies: head.cookies
                )
            }
        }
    }

    /// The answer was kept back, and is not stored after all: who wants it mapped gets it so, all others as it came.
    func finishUnkept(_ head: UpstreamHead) {
        if storing == nil, buffer.isWhole {
            let mapped = takeRelays { $0.demand.view == .mapped }
            let ready = flights.unkept(head, body: buffer.joined(), from: self)
            flights.serve(ready, to: mapped, as: { .unkept($0.reason) }, cookies: head.cookies)
        }
        passOn(buffer.pieces, head)
        for relay in relays { relay.finish() }
    }

    /// Sends as it came what had been kept back.
    func passOn(_ pieces: [[UInt8]], _ head: UpstreamHead) {
        settlement = .relaying
        if completing != nil, head.status == 206 { return flights.askForWhole(takeRelays(), insteadOf: self) }
        for relay in relays {
            begin(relay, head)
            for piece in pieces { relay.write(piece) }
        }
    }

    func keep(_ head: UpstreamHead) -> ReadyResponse? {
        guard let storing, buffer.isWhole else {
            self.storing = nil
            flights.note(.malformed, of: head, in: self)
            return nil
        }
        let body = buffer.joined()
        if let part = storing.part { return flights.keep(part, storing, body: body, from: self) }
        let answer = CachedResponse(
            key: demand.key,
            document: nil,
            status: head.status,
            fields: storing.fields,
            body: body,
            policy: storing.policy,
            selection: storing.selection,
            form: .received,
            objects: []
        )
        hasRefreshed = true
        return flights.keep(answer, from: self, isAwaited: !relays.isEmpty)
    }

    /// The message came to its end, the content coding in it did not: what there is reaches the clients, looks truncated,
    /// and is not stored (law 8).
    func brokeOff() {
        guard let head else { return }
        if storing != nil { flights.note(.truncated, of: head, in: self) }
        storing = nil
        if settlement.isGathering { passOn(buffer.pieces, head) }
        for relay in relays { relay.abort() }
    }

    func failed(_ error: UpstreamError) {
        if head == nil || settlement.isGathering {
            flights.failed(error, self, relays: takeRelays())
        } else {
            if storing != nil, let head { flights.note(.truncated, of: head, in: self) }
            // A truncated body must look truncated.
            for relay in relays { relay.abort() }
        }
    }
}
