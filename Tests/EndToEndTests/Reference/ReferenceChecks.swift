import TestSupport

/// What the laws say of a response.
extension ReferenceRun {
    // MARK: Writes

    func check(write ask: Ask, _ exchanges: [ReferenceExchange], _ response: Result<Response, any Error>) throws {
        guard let last = exchanges.last else {
            throw Violation("the write never reached the upstream; it was answered \(Self.describe(response))")
        }
        guard case .success(let response) = response else { throw Violation("a write got no answer") }
        switch last.ending {
        case .error:
            guard response.status == 500 else {
                throw Violation("the upstream failed with 500, the client got \(response.status)")
            }
        case .lost:
            guard response.status >= 500 else { throw Violation("no answer came, the client got \(response.status)") }
            wrote(ask, .lost)
        case .whole, .partial, .empty, .cut:
            guard response.status == last.status, response.text == last.received?.body ?? "" else {
                throw Violation(
                    "the upstream answered \(last.status) \(last.received?.body ?? ""), the client got \(Self.describe(.success(response)))"
                )
            }
            wrote(
                ask,
                last.ending,
                last.received,
                location: response["Location"].map { "/" + ($0.split(separator: "/").suffix(2).joined(separator: "/")) }
            )
        }
    }

    // MARK: Reads

    func check(read request: Open, _ exchanges: [ReferenceExchange], _ result: Result<Response, any Error>) throws {
        let others = flights(joinedBy: request)
        guard case .success(let response) = result else {
            // Law 8: a body cut short looks cut short.
            if (exchanges + others).contains(where: { $0.ending == .cut }) { return }
            throw Violation("no answer: \(Self.describe(result))")
        }
        // Nothing is stored that may be reused.
        if request.ask.isOnlyIfCached, response.status == 504 { return }
        defer { note(response, request.ask) }
        var answer = CheckedResponse(request: request, response: response, tagged: tagged[request.ask.key] ?? [:])
        try checkTag(response, request.ask)
        if let leaked = exchanges.first(where: \.hasOwnTag) {
            throw Violation("an ETag of Larder's own went upstream with #\(leaked.step)")
        }
        let isForwarded = !response.isHit && isForwarded(&answer, exchanges)
        if isForwarded || !response.isHit && others.contains(where: { answer.isOf($0) || isHeld(&answer, by: $0) }) {
            if exchanges.isEmpty { figures.collapsed += 1 }
            if let own = exchanges.first, let reason = needless(request, own) {
                throw Violation(explanation(of: answer, exchanges, reason))
            }
            tell(exchanges, answer)
            return
        }
        let hasFailed = (exchanges + others).contains { $0.status >= 500 || $0.ending == .lost || $0.ending == .cut }
        var judgement = try judge(answer, hasFailed: hasFailed && !response.isHit)
        // What was asked for behind an earlier answer may have come later than it was waited for.
        if judgement.facts == nil, try takeRefreshes() {
            judgement = try judge(answer, hasFailed: hasFailed && !response.isHit)
        }
        switch judgement {
        case .wrong(let reason): throw Violation(explanation(of: answer, exchanges, reason))
        case .sound(let facts):
            if response.isHit, !request.ask.isRaw { seen.note(shown: facts, by: request.ask.number) }
        }
        // The response to the refresh may have taken the place of the one that was served.
        let mayBeStale = (request.known + documents[answer.key]).contains(where: \.isServedStale)
        if response.isHit, !exchanges.isEmpty, !mayBeStale {
            throw Violation("called a hit, but the upstream was asked: \(answer.text)")
        }
        figures.hits += 1
        if response.cacheStatus.contains("composed") { figures.composed += 1 }
        if response.cacheStatus.contains("doubt") { figures.doubted += 1 }
        tell(exchanges, answer)
    }

    /// The flights that a request may have joined: under way with it, and begun after the last write that it may have seen
    /// answered (law 10).
    private func flights(joinedBy request: Open) -> [ReferenceExchange] {
        reference.state.withLock { state in
            state.exchanges.filter {
                $0.key == request.ask.key && $0.step != request.ask.number && $0.method == "GET"
                    && ($0.endedAt ?? .max) >= request.sent && $0.arrival >= request.lastWrite
            }
        }
    }

    /// Whether the response is the stored one, of which the upstream said that it holds.
    private func isHeld(_ answer: inout CheckedResponse, by exchange: ReferenceExchange) -> Bool {
        guard exchange.status == 304, let received = exchange.received, answer.response.status != 304 else {
            return false
        }
        // Another answer may have taken its place since it was asked about; it holds all the same.
        let known = (answer.request.known + documents[exchange.key]).map(\.received)
        guard known.contains(where: { $0.etag == received.etag && answer.fits($0.body) }) else { return false }
        figures.revalidated += 1
        answer.renewedBy = exchange
        return true
    }

    /// Whether the response is what the upstream said to this very request.
    private func isForwarded(_ answer: inout CheckedResponse, _ exchanges: [ReferenceExchange]) -> Bool {
        for exchange in exchanges.reversed() {
            if isHeld(&answer, by: exchange) { return true }
            if answer.isOf(exchange) { return true }
        }
        // Nobody answered: Larder says so itself.
        return exchanges.last?.ending == .lost && [502, 504].contains(answer.response.status)
            && answer.response.isProblem
    }

    /// Judges a response that came from the store.
    ///
    /// - Parameter hasFailed: whether it stands in for an error.
    private func judge(_ answer: CheckedResponse, hasFailed: Bool) throws -> Judgement {
        var judgement = Judgement.wrong("nothing is stored that may be reused")
        for document in documents[answer.key, answer.ask.client] + answer.request.known {
            guard (document.isFresh || document.isServedStale) && !answer.ask.isForced || hasFailed else { continue }
            if answer.ask.isRaw, answer.fits(document.received.body) { return .sound([:]) }
            if answer.ask.isRaw { continue }
            let bodies = try bodies(of: answer)
            // Not to be seen any more.
            if bodies.isEmpty { return .sound([:]) }
            for body in bodies {
                judgement = judge(
                    body,
                    as: document.received,
                    since: log(of: answer.request),
                    isInDoubt: answer.response.cacheStatus.contains("doubt"),
                    isSubstitute: hasFailed,
                    client: answer.ask.client
                )
                if judgement.facts != nil { return judgement }
            }
        }
        return judgement
    }

    /// The whole bodies that a response may be about: of a part, or of none, the one that its tag names.
    private func bodies(of answer: CheckedResponse) throws -> [String] {
        let response = answer.response
        if answer.ask.method == "GET", [200, 404].contains(response.status) { return [response.text] }
        func known() -> [String] {
            let tags = response["ETag"].map { [$0] } ?? (response.status == 304 ? answer.request.tags : [])
            return tags.flatMap { tagged[answer.key]?[$0] ?? [] }.filter {
                answer.fits($0, among: tagged[answer.key] ?? [:])
            }
        }
        let bodies = known()
        // A weak tag that holds says that what the client has is as good, not that its bytes are the same.
        let isWeak = response.status == 304 && response["ETag"]?.hasPrefix("W/") == true
        if !bodies.isEmpty && !isWeak || response["ETag"] == nil { return bodies }
        // Nobody has had the whole of it.
        let again = Ask(number: 0, page: answer.ask.page, scope: answer.ask.scope, client: answer.ask.client)
        let whole = try larder.get("/api\(again.page.target)", again.fields + ["Cache-Control": "only-if-cached"])
        guard whole.isHit, whole["ETag"] == response["ETag"] else { return [] }
        note(whole, again)
        guard answer.fits(whole.text, among: tagged[answer.key] ?? [:]) else {
            throw Violation("\(answer.text)\nis no part of\n\(whole.text)")
        }
        return [whole.text]
    }

    /// What Larder was told with the answers to a request.
    private func tell(_ exchanges: [ReferenceExchange], _ answer: CheckedResponse) {
        for exchange in exchanges where exchange.status == 404 { absent(exchange) }
        for exchange in exchanges where exchange.method == "HEAD" && exchange.ending == .whole {
            guard let received = exchange.received else { continue }
            if exchange.status == 200 { mayBeRefreshed(exchange, received) }
            if exchange.status == 304 { renewed(exchange, received, isServed: false) }
        }
        for exchange in exchanges where exchange.method == "GET" {
            guard let received = exchange.received, exchange.ending == .whole else { continue }
            if exchange.status == 200 || exchange.status == 404 { noteReceived(exchange, received) }
            if exchange.status == 200 { passedOn(exchange, received) }
            if exchange.status == 304 {
                renewed(exchange, received, isServed: answer.renewedBy?.arrival == exchange.arrival)
            }
        }
    }

    // MARK: ETags

    /// One ETag never names two bodies.
    private func checkTag(_ response: Response, _ ask: Ask) throws {
        guard response.status == 200, ask.method == "GET", let tag = response["ETag"], !tag.hasPrefix("W/") else {
            return
        }
        if let known = tagged[ask.key]?[tag], known != [response.text] {
            throw Violation("ETag \(tag) named\n\(known.first ?? "")\nbefore, and now names\n\(response.text)")
        }
    }

    private func note(_ response: Response, _ ask: Ask) {
        guard response.status == 200, ask.method == "GET", let tag = response["ETag"] else { return }
        tagged[ask.key, default: [:]][tag, default: []].insert(response.text)
    }

    // MARK: Words

    static func describe(_ result: Result<Response, any Error>) -> String {
        switch result {
        case .success(let response): "\(response.status) [\(response.cacheStatus)] \(response.text)"
        case .failure(let error): "\(error)"
        }
    }

    private func explanation(of answer: CheckedResponse, _ exchanges: [ReferenceExchange], _ reason: String) -> String {
        var text = "#\(answer.ask.number) got\n    \(answer.text)\n  \(reason)\n"
        for exchange in exchanges {
            text += "  the upstream said \(exchange.status) \(exchange.received?.body ?? "")\n"
        }
        for document in documents[answer.key] {
            text += "  stored may be (\(document.isFresh ? "fresh" : "stale"))\n    \(document.received.body)\n"
        }
        text += "  what the upstream was asked for it\n"
        for exchange in reference.state.withLock({ $0.exchanges }) where exchange.key == answer.key {
            let end = exchange.endedAt.map { "\($0)" } ?? "not yet"
            text += "    #\(exchange.step) at event \(exchange.arrival), over at \(end), "
            text += "said \(exchange.status), invalidated: \(exchange.invalidation)\n"
        }
        text += "  of the same page\n"
        for (page, line) in trace where page == answer.ask.page { text += "    \(line)\n" }
        return text
    }
}

/// A response that is being looked at.
struct CheckedResponse {
    let request: ReferenceRun.Open
    let response: Response
    let tagged: [String: Set<String>]
    /// The 304 that gave the stored answer its new time.
    var renewedBy: ReferenceExchange?

    var ask: Ask { request.ask }
    var key: Key { ask.key }
    var text: String { ReferenceRun.describe(.success(response)) }

    init(request: ReferenceRun.Open, response: Response, tagged: [String: Set<String>]) {
        (self.request, self.response, self.tagged) = (request, response, tagged)
    }

    /// Whether it is what the upstream said in one exchange.
    func isOf(_ exchange: ReferenceExchange) -> Bool {
        if exchange.status >= 400 {
            return response.status == exchange.status
                && (ask.method == "HEAD" || exchange.status >= 500 || response.text == exchange.received?.body)
        }
        guard let received = exchange.received, exchange.ending != .lost else { return false }
        if exchange.status == 304 {
            // The client's own condition was the one that held.
            return response.status == 304 && request.tags.contains(received.etag ?? "")
        }
        return exchange.ending != .cut && fits(received.body)
    }

    func fits(_ body: String) -> Bool { fits(body, among: tagged) }

    /// Whether it shows this body, as its request wants it shown.
    ///
    /// - Parameter tagged: the bodies that were got under each ETag.
    func fits(_ body: String, among tagged: [String: Set<String>]) -> Bool {
        switch response.status {
        case 200 where ask.method == "HEAD": return response["Content-Length"] == "\(body.utf8.count)"
        case 200, 404: return response.text == body
        case 206:
            guard let range = ask.range else { return false }
            let bytes = Array(body.utf8)
            let part = bytes[min(range.lowerBound, bytes.count)..<min(range.upperBound, bytes.count)]
            let field = "bytes \(range.lowerBound)-\(range.lowerBound + part.count - 1)/\(bytes.count)"
            if let tag = request.rangeTag, tagged[tag] != [body] { return false }
            return response.body == Array(part) && response["Content-Range"] == field
        case 416: return ask.range.map { $0.lowerBound >= body.utf8.count } ?? false
        case 304:
            // Only if what the client has is what it would have been given.
            return request.tags.contains { tag in
                tagged[tag]?.contains { tag.hasPrefix("W/") ? response["ETag"] == tag : $0 == body } ?? false
            }
        default: return false
        }
    }
}
