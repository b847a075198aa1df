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
            for index in state.exchanges.indices where !state.exchanges[index].isOver {
                if paths.contains(state.exchanges[index].key.page.path) { state.exchanges[index].isInvalidated = true }
            }
            return state.exchanges.last { $0.step == ask.number }?.arrival ?? end
        }
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
    }

    /// Notes an answer that came whole.
    func told(_ exchange: ReferenceExchange, _ received: Received) {
        guard !exchange.isInvalidated else { return }
        let key = exchange.key
        let moment = moment(of: exchange, age: received.age)
        let overlaps = reference.state.withLock { state in
            state.exchanges.contains {
                $0.key == key && $0.step != exchange.step && $0.endedAt ?? 0 > exchange.arrival
            }
        }
        for index in worlds.indices {
            worlds[index].documents[key] = Document(received, at: moment)
                .replacing(worlds[index].documents[key], overlaps: overlaps)
            worlds[index].untold.append(.answer(received, moment, isDocument: true, overlaps: overlaps))
        }
    }

    /// Notes that a stored answer was found to hold.
    func renewed(_ exchange: ReferenceExchange, _ received: Received) {
        guard !exchange.isInvalidated else { return }
        let moment = moment(of: exchange, age: received.age)
        for index in worlds.indices { worlds[index].renew(exchange.key, at: moment, by: received) }
    }

    /// Notes that the upstream found the client's own condition to hold: so does the stored answer, if that was the one.
    func mayBeRenewed(_ exchange: ReferenceExchange, _ received: Received) {
        guard !exchange.isInvalidated else { return }
        let moment = moment(of: exchange, age: received.age)
        worlds = worlds.flatMap { world in
            guard let document = world.documents[exchange.key], document.received.etag == received.etag else {
                return [world]
            }
            var renewed = world
            renewed.renew(exchange.key, at: moment, by: received)
            // What has not been taken in yet may have shown it to be of another time.
            guard world.untold.isEmpty else {
                lines += 1
                renewed.line = lines
                return [world, renewed]
            }
            return [world.isClean(document) ? renewed : world]
        }
    }

    /// Notes that the upstream did not find an object: it is gone, whatever is stored when.
    func absent(_ exchange: ReferenceExchange) {
        guard let ref = exchange.key.page.subject else { return }
        worlds = World.possible(worlds)
        for index in worlds.indices { worlds[index].mark(ref, of: exchange.key.scope, .tombstone(exchange.arrival)) }
    }

    func moment(of exchange: ReferenceExchange, age: Int) -> Moment {
        Moment(
            start: exchange.arrival - age,
            end: now - age,
            kind: exchange.key.page.subject == nil ? .list : .detail
        )
    }
}
