import TestSupport

/// What the documents say, one response after the other.
extension ReferenceRun {
    /// One response to a target, and when its client had it.
    struct Word {
        let exchange: ReferenceExchange
        let received: Received
        let instant = ContinuousClock.now
    }

    /// Notes a response that came whole.
    ///
    /// Where a document goes back itself, what it settled goes back with it: its word is taken over one of its own that was
    /// over before it was asked for (row D1 of the table).
    func observed(_ exchange: ReferenceExchange, _ received: Received) {
        guard received.hasObjects else { return }
        seen.note(received: names(in: received))
        let states = reference.state.withLock { $0.states(of: received.scope.principal) }
        for word in words[exchange.key] ?? []
        where received.age == 0 && word.exchange.endedAt ?? .max < exchange.arrival {
            for (fact, value) in observations(in: received) {
                guard let before = word.received.shown[fact.ref]?[fact.member]?.datum, before != value,
                    let state = states[...exchange.made].lastIndex(where: { $0.shows(value, as: fact) }),
                    let earlier = states.firstIndex(where: { $0.shows(before, as: fact) }), state < earlier
                else { continue }
                let back = ReadLog.Return(event: now, fact: fact, state: state)
                returns.append(back)
                seen.note(back)
                durablySeen.note(back)
            }
        }
        words[exchange.key, default: []].append(Word(exchange: exchange, received: received))
    }

    /// Notes what a client was passed on: the next hit is no older, or says that it is in doubt.
    func passedOn(_ exchange: ReferenceExchange, _ received: Received) {
        guard exchange.invalidation == .none, received.hasObjects else { return }
        let states = reference.state.withLock { $0.states(of: received.scope.principal) }
        var facts: [ReadLog.Fact: Int] = [:]
        let kept = deletedAndKept
        for (fact, value) in observations(in: received) where !kept.contains(fact.ref) {
            // Of a value that comes back nobody knows which of the times was meant.
            facts[fact] = states.firstIndex { $0.shows(value, as: fact) }
        }
        seen.note(passedOn: facts)
        if setting.withhold == .long { seen.settle() }
    }

    /// What was found to be deleted but is kept in documents as it was last known, whatever a list that may lag shows of it.
    private var deletedAndKept: Set<Ref> {
        guard setting.onDelete == .keep, setting.lag != .none else { return [] }
        return reference.state.withLock { state in
            Set(
                state.exchanges.filter { $0.method == "DELETE" || $0.status == 404 }
                    .compactMap { state.plans[$0.step]?.edit?.ref ?? $0.key.page.subject }
            )
        }
    }

    /// What had been seen when a request was sent, less what documents have taken back since.
    func log(of request: Open) -> ReadLog {
        var log = request.seen
        for back in returns where back.event >= request.sent { log.note(back) }
        return log
    }

    /// The last values of the members by which users are found.
    func names(in received: Received) -> [ReadLog.Fact: Datum] {
        observations(in: received).filter { $0.key.member == "login" }
    }

    /// The declared members that a response shows, but for those on which it disagrees with itself.
    private func observations(in received: Received) -> [ReadLog.Fact: Datum] {
        var facts: [ReadLog.Fact: Datum] = [:]
        for (ref, members) in received.shown {
            for (member, shown) in members
            where !setting.undeclared.contains(member) && !received.isContradictory(member, of: ref) {
                facts[ReadLog.Fact(received.scope, ref, member)] = shown.datum
            }
        }
        return facts
    }

    /// Whether a response that other programs than this one are not given has shown a fact.
    func isShownApart(_ fact: ReadLog.Fact, from client: String) -> Bool {
        words.values.joined().contains {
            $0.received.isDivided && $0.exchange.client != client && $0.received.scope == fact.scope
                && $0.received.shown[fact.ref]?[fact.member] != nil
        }
    }

    /// Whether only one document has ever shown a fact, in one response after the other, and nobody has written to its object:
    /// its last word is what its next hit shows (row D1 of the table).
    func hasOneSource(_ fact: ReadLog.Fact) -> Bool {
        guard setting.bulk == 0, setting.disk == "1GiB", undisturbedSince == 0 else { return false }
        let sources = words.values.filter { words in
            words.contains { $0.received.scope == fact.scope && $0.received.shown[fact.ref]?[fact.member] != nil }
        }
        guard let words = sources.first, sources.count == 1,
            words.allSatisfy({ $0.received.age == 0 && $0.received.slips.isEmpty && !$0.received.isDivided }),
            zip(words, words.dropFirst()).allSatisfy({ $0.exchange.endedAt ?? .max < $1.exchange.arrival })
        else { return false }
        return reference.state.withLock { state in
            state.exchanges.allSatisfy { other in
                let isWrite = other.method != "GET" && other.method != "HEAD" || other.status == 404
                let written = isWrite ? state.plans[other.step]?.edit?.ref ?? other.key.page.subject : nil
                // What a write's response shows is another source.
                return written != fact.ref && (!isWrite || other.received?.shown[fact.ref]?[fact.member] == nil)
                    && (other.invalidation == .none || other.key.scope.principal != fact.scope.principal)
            }
        }
    }

    // MARK: Asking without need

    /// Why the upstream need not have been asked; nil if it may have been.
    ///
    /// The last that a principal has got from the upstream are two responses to the same request, one after the other: the
    /// second has settled the doubts that the first has opened, or is the one question that they allow for a while.
    func needless(_ request: Open, _ exchange: ReferenceExchange) -> String? {
        let ask = request.ask
        guard ask.method == "GET", !ask.isForced, !ask.isConditional, !ask.isRaw, ask.range == nil, ask.page.isFlat,
            setting.bulk == 0, setting.disk == "1GiB", let last = words[ask.key]?.suffix(2), last.count == 2,
            let first = last.first, let word = last.last, first.exchange.endedAt ?? .max < word.exchange.arrival,
            last.allSatisfy({ $0.received.age == 0 && $0.received.slips.isEmpty && $0.exchange.invalidation == .none }),
            first.exchange.arrival > undisturbedSince
        else { return nil }
        let received = word.received
        guard documents.certain(ask.key) == received, received.isFresh, received.control.lifetime == nil,
            received.control != .private || word.exchange.client == ask.client,
            // What stays in doubt is asked about again after a while.
            ContinuousClock.now - first.instant < .seconds(10)
        else { return nil }
        // A value that the second shows for the first time may contradict other documents.
        guard observations(in: first.received) == observations(in: received) else { return nil }
        guard !isUnordered(received), !isSettledForOthers(word) else { return nil }
        let isLast = reference.state.withLock { state in
            state.exchanges.allSatisfy { other in
                let isWrite = other.method != "GET" && other.method != "HEAD"
                let written = isWrite ? state.plans[other.step]?.edit?.ref ?? other.key.page.subject : nil
                // What another principal has written may be what the list shows.
                let isOthers =
                    other.key.scope.principal != ask.scope.principal
                    && written.map { received.shown[$0] == nil } ?? true
                return isOthers || other.endedAt ?? .max < first.exchange.arrival
                    || [first.exchange.step, word.exchange.step, exchange.step].contains(other.step)
            }
        }
        return isLast
            ? "it was asked for although the response to #\(word.exchange.step) is fresh and nothing has happened since"
            : nil
    }
}

extension ReferenceRun {
    /// Whether a list shows a value of which nobody can say whether it is from before a write: lists may lag, and the write was
    /// the principal's own and its response did not show it here, or another response shows another value.
    private func isUnordered(_ received: Received) -> Bool {
        guard setting.lag != .none, received.page.subject == nil else { return false }
        let writes = reference.state.withLock { state in
            state.exchanges.filter { $0.method != "GET" && $0.method != "HEAD" || $0.status == 404 }
                .compactMap { write in
                    (state.plans[write.step]?.edit?.ref ?? write.key.page.subject).map { (write: write, ref: $0) }
                }
        }
        // Within the lag of a write, by anybody, row D1 does not apply either.
        let others = words.filter { $0.key.scope == received.scope }.flatMap(\.value)
        return writes.contains { write, ref in
            guard let shown = received.shown[ref] else { return false }
            let isOwn = write.key.scope.principal == received.scope.principal
            let isShown = write.received != nil && write.ending != .partial
            if isOwn, !isShown || write.key.scope != received.scope { return true }
            // The responses to writes that overlap are in no order, whatever else the other one writes.
            let beside = writes.filter { other in
                other.write.step != write.step
                    && other.write.arrival < write.endedAt ?? .max && write.arrival < other.write.endedAt ?? .max
            }
            return (others.map(\.received) + beside.compactMap(\.write.received)).contains { other in
                shown.contains { member, shown in
                    other.shown[ref]?[member].map { $0.datum != shown.datum } ?? false
                }
            }
        }
    }
}

extension ReferenceRun {
    /// Whether a response that is not for other clients of the principal shows another value: what it has settled is not shown
    /// to them, and what they are shown must not be older.
    private func isSettledForOthers(_ word: Word) -> Bool {
        words.filter { $0.key.scope == word.received.scope }.flatMap(\.value).contains { other in
            guard other.received.isDivided, other.exchange.client != word.exchange.client else { return false }
            return word.received.shown.contains { ref, members in
                members.contains { member, shown in
                    other.received.shown[ref]?[member].map { $0.datum != shown.datum } ?? false
                }
            }
        }
    }
}

extension Holdings {
    /// Whether a fact has a value in this state.
    func shows(_ value: Datum, as fact: ReadLog.Fact) -> Bool {
        self[fact.ref].map { fact.scope.translated($0[fact.member] ?? .null, fact.member) } == value
    }
}
