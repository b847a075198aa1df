import TestSupport

/// What Larder received with a response.
extension ReferenceRun {
    /// Notes what a write has changed, and what it has made worthless (law 10).
    func wrote(_ ask: Ask, _ ending: ResponsePlan.Ending, _ response: Received? = nil, location: String? = nil) {
        lastWrite = now
        var paths = ask.isByName ? [] : [ask.page.path]
        let isDeleted = ask.method == "DELETE" && ending == .empty
        // How a deletion shows in lists is the model's to say.
        if isDeleted ? setting.onDelete == .stale : response == nil || ask.method == "POST",
            let parent = ask.isByName ? nil : ask.page.parent
        {
            paths.append(parent)
        }
        if let location { paths.append(location) }
        let exchange = reference.state.withLock { state in
            let own = state.exchanges.lastIndex { $0.step == ask.number }
            state.invalidate(upTo: own ?? state.exchanges.count) { paths.contains($0.page.path) }
            return own.map { state.exchanges[$0] }
        }
        documents.remove { paths.contains($0.page.path) }
        if let exchange, let ref = ask.edit?.ref { noteChanges(by: exchange, of: ref, isByName: ask.isByName) }
        if let response { seen.note(received: names(in: response)) }
        tick()
        // If it counts, it was asked for after the write.
        reference.state.withLock { state in
            for index in state.exchanges.indices where state.exchanges[index].invalidation == .perhaps {
                if !state.exchanges[index].isOver { state.exchanges[index].arrival = state.now }
            }
        }
    }

    /// Notes a response that came whole.
    func noteReceived(_ exchange: ReferenceExchange, _ received: Received) {
        guard exchange.invalidation != .certain else { return }
        let overlaps = reference.state.withLock { state in
            state.exchanges.contains {
                $0.key == exchange.key && $0.step != exchange.step && $0.endedAt ?? 0 > exchange.arrival
            }
        }
        documents.store(
            received,
            exchange.key,
            client: exchange.client,
            isCertain: !overlaps && exchange.invalidation == .none
        )
        observed(exchange, received)
    }

    /// Notes that the upstream said that a response holds.
    ///
    /// - Parameter isServed: whether the stored one was served for it; if not, the client's own may have been meant.
    func renewed(_ exchange: ReferenceExchange, _ received: Received, isServed: Bool) {
        guard exchange.invalidation != .certain else { return }
        documents.renew(
            exchange.key,
            by: received,
            for: exchange.client,
            isCertain: isServed && exchange.invalidation == .none
        ) {
            $0.received.etag == received.etag
        }
    }

    /// Notes that the response to a HEAD contradicts nothing of the stored one, which may hold for longer then (RFC 9111
    /// §4.3.5); one without any validator says nothing of objects.
    func mayBeRefreshed(_ exchange: ReferenceExchange, _ received: Received) {
        guard exchange.invalidation != .certain else { return }
        documents.renew(exchange.key, by: received, for: exchange.client, isCertain: false) { document in
            received.etag.map { $0 == document.received.etag } ?? document.received.shown.isEmpty
                && received.body.utf8.count == document.received.body.utf8.count
        }
    }

    /// Notes that the upstream did not find an object: what it was before is not served any more.
    func absent(_ exchange: ReferenceExchange) {
        guard let ref = exchange.key.page.subject, setting.onDelete != .keep else { return }
        let scope = exchange.key.scope
        var facts = [ReadLog.Fact.existence(scope, ref): exchange.revision]
        for member in ref.kind.changeable { facts[ReadLog.Fact(scope, ref, member)] = exchange.revision }
        seen.note(written: facts)
    }
}
