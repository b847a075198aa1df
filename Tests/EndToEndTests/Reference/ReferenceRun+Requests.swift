import Glibc
import TestSupport

/// Requests: sent, waited for, answered.
extension ReferenceRun {
    func send(_ ask: Ask) throws {
        // A write joins nobody.
        let isShared = !ask.isWrite && open.contains { $0.ask.key == ask.key }
        let mayWait = ask.plan.isHeld || isShared
        let client = try mayWait ? larder.client() : idle ?? larder.client()
        idle = nil
        let joined = isShared ? try larder.followers() : 0
        let request = try begin(ask, on: client)
        if mayWait, !isServed(request, waitsAtMost: ask.plan.isHeld ? nil : 25, joined: joined) {
            return open.append(request)
        }
        try conclude(request)
    }

    /// Sends a request, whose response is still to come.
    func begin(_ ask: Ask, on client: Client) throws -> Open {
        let known = tagged[ask.key]?.keys.sorted() ?? []
        let tags = ask.isConditional ? selected(known, ask.number) : []
        let rangeTag = ask.isIfRange ? selected(known.filter { !$0.hasPrefix("W/") }, ask.number).last : nil
        let gate = Gate()
        reference.state.withLock { state in
            state.plans[ask.number] = (ask.plan, ask.edit)
            if ask.plan.isHeld { state.gates[ask.number] = gate }
        }
        var request = Open(ask: ask, client: client, sent: now, lastWrite: lastWrite, tags: tags, rangeTag: rangeTag)
        (request.known, request.seen) = (documents[ask.key, ask.client], seen)
        do {
            try client.send(
                Client.message(
                    ask.method,
                    "/api\(target(of: ask))",
                    fields(request),
                    body: ask.isWrite ? Array("{}".utf8) : nil,
                    host: "127.0.0.1:\(larder.port)"
                )
            )
        } catch { throw Violation("Larder took no request: \(error)") }
        return request
    }

    /// All ETags that are known, or one of them, which says more: only if it names the body of now it is not modified.
    private func selected(_ tags: [String], _ number: Int) -> [String] {
        tags.isEmpty || number % 3 == 0 ? tags : [tags[number % tags.count]]
    }

    private func target(of ask: Ask) -> String {
        guard ask.isByName, let user = ask.page.subject else { return ask.page.target }
        let holdings = reference.state.withLock { $0.holdings[ask.scope.principal] }
        guard case .text(let name) = holdings?[user]?["login"] else { return ask.page.target }
        return Page.names + name
    }

    private func fields(_ request: Open) -> FieldLines {
        let ask = request.ask
        var fields = ask.fields + ["X-Request-Id": "\(ask.number)"]
        if ask.isForced { fields.append("Cache-Control", "no-cache") }
        if ask.isOnlyIfCached { fields.append("Cache-Control", "only-if-cached") }
        if ask.isRaw { fields.append("Larder-View", "raw") }
        if !request.tags.isEmpty { fields.append("If-None-Match", request.tags.joined(separator: ", ")) }
        if let range = ask.range { fields.append("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)") }
        if let tag = request.rangeTag { fields.append("If-Range", tag) }
        return fields
    }

    /// Waits until there is a response, or the upstream has the request and holds its response.
    ///
    /// - Parameters:
    ///   - limit: milliseconds, after which it is taken to wait for another one's answer.
    ///   - joined: how many requests had joined another one's before it. On a busy machine, one that has joined none has longer.
    private func isServed(_ request: Open, waitsAtMost limit: Int?, joined: Int) -> Bool {
        let isShared = !request.ask.isWrite && open.contains { $0.ask.key == request.ask.key }
        var rest = limit ?? (isShared ? 25 : 20_000)
        var patience = isShared ? 40 : 0
        while rest > 0 || patience > 0 {
            if rest == 0 {
                guard (try? larder.followers()) == joined else { return false }
                patience -= 1
                rest = 25
            }
            if request.client.socket.isReadable(within: 1) { return true }
            let hasArrived = hasArrived(request.ask)
            if hasArrived, request.ask.plan.isHeld {
                // What is asked for behind a stale response may arrive before that response does.
                let mayBeStale = !request.ask.isForced && documents.isServedStale(request.ask.key)
                return mayBeStale && request.client.socket.isReadable(within: 200)
            }
            // Asked for itself: nothing keeps its response back.
            if !hasArrived { rest -= 1 }
        }
        return false
    }

    func finish(_ number: Int) throws {
        guard let index = open.firstIndex(where: { $0.ask.number == number }) else { return }
        let leader = open.remove(at: index)
        reference.letGo(number)
        let waitsForOther =
            !hasArrived(leader.ask) && open.contains { $0.ask.key == leader.ask.key && hasArrived($0.ask) }
        if waitsForOther, !leader.client.socket.isReadable(within: 5) {
            // Waits for another one's answer, which is held itself.
            return open.append(leader)
        }
        try conclude(leader)
        try concludeFollowers(of: leader.ask.key)
    }

    /// Those who waited for the same response.
    private func concludeFollowers(of key: Key) throws {
        for follower in open where follower.ask.key == key {
            if hasArrived(follower.ask), isHeld(follower.ask) { continue }
            let isLast = !open.contains {
                $0.ask.key == key && $0.ask.number != follower.ask.number && hasArrived($0.ask)
            }
            if isLast {
                reference.letGo(follower.ask.number)
            } else if !follower.client.socket.isReadable(within: 20) {
                continue
            }
            open.removeAll { $0.ask.number == follower.ask.number }
            try conclude(follower)
        }
    }

    /// Lets all held responses go, in the order in which they were asked for.
    func finishAll() throws {
        while let next = open.first(where: { hasArrived($0.ask) }) ?? open.first {
            tick()
            if hasArrived(next.ask) {
                try finish(next.ask.number)
            } else {
                open.removeAll { $0.ask.number == next.ask.number }
                reference.letGo(next.ask.number)
                try conclude(next)
            }
        }
    }

    /// Whether the answer to a request is kept back, and has not been let go.
    func isHeld(_ ask: Ask) -> Bool {
        ask.plan.isHeld && reference.state.withLock { $0.gates[ask.number] != nil }
    }

    /// Whether a request has reached the upstream.
    func hasArrived(_ ask: Ask) -> Bool {
        reference.state.withLock { state in state.exchanges.contains { $0.step == ask.number } }
    }

    /// Takes a response, checks it, and notes what Larder was told with it.
    func conclude(_ request: Open) throws {
        let response = Result { try request.client.response(to: request.ask.method) }
        tick()
        if case .success = response { idle = request.client }
        figures.answers += 1
        trace.append((request.ask.page, "#\(request.ask.number) \(Self.describe(response))"))
        let isHit = (try? response.get().isHit) ?? false
        let exchanges = reference.state.withLock { state in
            let own = state.exchanges.indices.filter { state.exchanges[$0].step == request.ask.number }
            // What was asked for behind it has not come with it.
            if !isHit { for index in own { state.exchanges[index].endedAt = state.now } }
            return own.map { state.exchanges[$0] }
        }
        if request.ask.isWrite {
            try check(write: request.ask, exchanges, response)
        } else {
            try check(read: request, exchanges, response)
            if isHit, !request.ask.isForced, !request.ask.isOnlyIfCached, documents.isServedStale(request.ask.key) {
                try awaitRefresh(behind: request.ask)
            }
        }
    }
}

extension Scope {
    /// By what a request shows whose it is, and which representation it wants.
    var fields: FieldLines {
        var fields = FieldLines()
        if !principal.isEmpty { fields.append("Authorization", principal) }
        if !language.isEmpty { fields.append("Accept-Language", language) }
        return fields
    }
}

extension Socket {
    /// Whether there is something to read, or will be within so many milliseconds.
    func isReadable(within milliseconds: Int32) -> Bool {
        var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, milliseconds) > 0
    }
}
