import TestSupport

/// What Larder asks for behind a stale response, which no client waits for.
extension ReferenceRun {
    /// Waits for the refresh behind a response that was served stale.
    func awaitRefresh(behind ask: Ask) throws {
        reference.letGo(ask.number)
        // None begins where another one is on its way, or soon after one that has failed.
        let isCertain =
            ask.method == "GET" && ask.range == nil && !failedRefreshes.contains(ask.key)
            && !open.contains { $0.ask.key == ask.key }
        reference.state.wait(isCertain ? .seconds(2) : .milliseconds(50)) { state in
            state.exchanges.contains { $0.step == ask.number }
        }
        try takeRefreshes()
    }

    /// Waits until Larder has what was asked for by nobody who waits, and notes what it was told with it.
    ///
    /// - Returns: whether there was anything.
    @discardableResult
    func takeRefreshes() throws -> Bool {
        func isStray(_ exchange: ReferenceExchange) -> Bool {
            !exchange.isOver && !open.contains { $0.ask.number == exchange.step }
        }
        let strays = reference.state.withLock { $0.exchanges.filter(isStray) }
        guard !strays.isEmpty else { return false }
        for exchange in strays { reference.letGo(exchange.step) }
        let isQuiet = try eventually {
            let held = reference.state.withLock { state in
                state.exchanges.count { !$0.isOver && state.gates[$0.step] != nil }
            }
            return try inFlight() == held
        }
        guard isQuiet else {
            throw Violation(
                "a refresh never ended: \(try inFlight()) are on their way, of \(strays.map(\.step)) nobody waits for the answer"
            )
        }
        let over = reference.state.withLock { state in
            let strays = state.exchanges.indices.filter { isStray(state.exchanges[$0]) }
            for index in strays { state.exchanges[index].endedAt = state.now }
            return strays.map { state.exchanges[$0] }
        }
        tick()
        for exchange in over {
            if exchange.ending != .whole || exchange.status >= 400 { failedRefreshes.insert(exchange.key) }
            guard exchange.method == "GET" else { continue }
            if exchange.status == 404 { absent(exchange) }
            guard let received = exchange.received, exchange.ending == .whole else { continue }
            if exchange.status == 200 || exchange.status == 404 { noteReceived(exchange, received) }
            if exchange.status == 304 { renewed(exchange, received, isServed: false) }
        }
        // It has come, but who comes next may be quicker than what is done with it.
        try settle()
        return true
    }

    /// How many requests are on their way to the upstream.
    private func inFlight() throws -> Int {
        let text = try larder.admin("GET", "/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("larder_upstream_in_flight{upstream=\"tracker\"}") }
        return line.flatMap { Int($0.split(separator: " ").last ?? "") } ?? 0
    }
}
