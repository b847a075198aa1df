import TestSupport

/// What Larder was told with an answer.
extension ReferenceRun {
    /// Notes what a write has told, and what it has made worthless (law 10).
    func wrote(_ ask: Ask, _ ending: Plan.Ending, _ told: Received? = nil, location: String? = nil) {
        let end = now
        lastWrite = end
        var paths = [ask.page.path]
        let isDeleted = ask.method == "DELETE" && ending == .empty
        // How a deletion shows in lists is the model's to say.
        if isDeleted ? setting.onDelete == .stale : told == nil || ask.method == "POST", let parent = ask.page.parent {
            paths.append(parent)
        }
        if let location { paths.append(location) }
        let start = reference.state.withLock { state in
            let own = state.exchanges.lastIndex { $0.step == ask.number }
            state.invalidate(upTo: own ?? state.exchanges.count) { paths.contains($0.page.path) }
            return own.map { state.exchanges[$0].arrival } ?? end
        }
        // What may have been forgotten before all this was taken in.
        if worlds.contains(where: \.isFrail) { worlds = World.possible(worlds) }
        for index in worlds.indices {
            worlds[index].settle()
            if let told {
                worlds[index].untold = [.answer(told, Moment(start: start, end: end, kind: .write), isDocument: false)]
                worlds[index].settle()
            }
            for principal in Scope.principals {
                for language in Scope.languages {
                    let scope = Scope(principal: principal, language: language)
                    let isOwn = scope == ask.scope
                    if isOwn, told != nil { continue }
                    let mark: Mark = isOwn && isDeleted ? .tombstone(end) : .unobserved(end)
                    if let ref = ask.edit?.ref { worlds[index].mark(ref, of: scope, mark) }
                }
            }
            worlds[index].documents = worlds[index].documents.filter { !paths.contains($0.key.page.path) }
            worlds[index].onDisk = worlds[index].onDisk.filter { !paths.contains($0.key.page.path) }
        }
        worlds = World.possible(worlds)
        // If it counts, it was asked for after the write.
        tick()
        reference.state.withLock { state in
            for index in state.exchanges.indices where state.exchanges[index].invalidation == .perhaps {
                if !state.exchanges[index].isOver { state.exchanges[index].arrival = state.now }
            }
        }
    }

    /// Notes an answer that came whole.
    func told(_ exchange: ReferenceExchange, _ received: Received) {
        guard mayCount(exchange) else { return }
        let key = exchange.key
        let moment = moment(of: exchange, age: received.age)
        let overlaps = reference.state.withLock { state in
            state.exchanges.contains {
                $0.key == key && $0.step != exchange.step && $0.endedAt ?? 0 > exchange.arrival
            }
        }
        for index in worlds.indices where worlds[index].counts(exchange) {
            worlds[index].documents[key] = Document(received, at: moment)
                .replacing(worlds[index].documents[key], overlaps: overlaps)
            worlds[index].untold.append(.answer(received, moment, isDocument: true, overlaps: overlaps))
        }
    }

    /// Notes that a stored answer was found to hold.
    func renewed(_ exchange: ReferenceExchange, _ received: Received) {
        guard mayCount(exchange) else { return }
        let moment = moment(of: exchange, age: received.age)
        for index in worlds.indices where worlds[index].counts(exchange) {
            worlds[index].renew(exchange.key, at: moment, by: received)
        }
    }

    /// Notes that the upstream found the client's own condition to hold: so does the stored answer, if that was the one.
    func mayBeRenewed(_ exchange: ReferenceExchange, _ received: Received) {
        guard mayCount(exchange) else { return }
        let moment = moment(of: exchange, age: received.age)
        worlds = worlds.flatMap { world in
            guard world.counts(exchange), let document = world.documents[exchange.key],
                document.received.etag == received.etag
            else {
                return [world]
            }
            var renewed = world
            renewed.renew(exchange.key, at: moment, by: received)
            // What has not been taken in yet may have shown it to be of another time.
            guard world.untold.isEmpty else {
                return [world, renewed]
            }
            return [world.isClean(document) ? renewed : world]
        }
    }

    /// Notes that the answer to a HEAD contradicts nothing of the stored answer, which may hold for longer then (RFC 9111
    /// §4.3.5); one without any validator says nothing of objects.
    func mayBeRefreshed(_ exchange: ReferenceExchange, _ received: Received) {
        guard mayCount(exchange) else { return }
        let moment = moment(of: exchange, age: received.age)
        worlds = worlds.flatMap { world in
            guard world.counts(exchange), let document = world.documents[exchange.key],
                received.etag.map({ $0 == document.received.etag }) ?? document.received.shown.isEmpty,
                received.body.utf8.count == document.received.body.utf8.count
            else { return [world] }
            var renewed = world
            renewed.renew(exchange.key, at: moment, by: received)
            return [world, renewed]
        }
    }

    /// Notes that the upstream did not find an object: it is gone, whatever is stored when.
    func absent(_ exchange: ReferenceExchange) {
        guard let ref = exchange.key.page.subject else { return }
        worlds = World.possible(worlds)
        for index in worlds.indices { worlds[index].mark(ref, of: exchange.key.scope, .tombstone(exchange.arrival)) }
    }

    /// Whether what an exchange told may count.
    ///
    /// Where nobody knows, there is from now on a world in which it does, and one in which it does not.
    private func mayCount(_ exchange: ReferenceExchange) -> Bool {
        if case .perhaps = exchange.invalidation {
            worlds = worlds.flatMap { world in
                var other = world
                other.ignored.insert(exchange.step)
                return [world, other]
            }
        }
        return exchange.invalidation != .certain
    }

    func moment(of exchange: ReferenceExchange, age: Int) -> Moment {
        // Where the upstream was asked twice for one request, the first time was over when the second began.
        let next = reference.state.withLock { state in
            state.exchanges.filter { $0.step == exchange.step && $0.arrival > exchange.arrival }.map(\.arrival).min()
        }
        return Moment(
            start: exchange.arrival - age,
            end: (next ?? now) - age,
            kind: exchange.key.page.subject == nil ? .list : .detail
        )
    }
}
