import TestSupport

/// What the laws say of an answer.
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
        case .whole, .empty, .cut:
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
        defer { note(response, request.ask) }
        var answer = CheckedAnswer(request: request, response: response, tagged: tagged[request.ask.key] ?? [:])
        try checkTag(response, request.ask)
        if let leaked = exchanges.first(where: \.hasOwnTag) {
            throw Violation("an ETag of Larder's own went upstream with #\(leaked.step)")
        }
        let isForwarded = !response.isHit && isForwarded(&answer, exchanges)
        if isForwarded || !response.isHit && others.contains(where: { answer.isOf($0) || isHeld(&answer, by: $0) }) {
            if exchanges.isEmpty { figures.collapsed += 1 }
            if !exchanges.isEmpty, isNeedless(answer) { figures.needless += 1 }
            tell(exchanges, answer)
            return
        }
        let mayBeStale = (exchanges + others).contains { $0.status >= 500 || $0.ending == .lost || $0.ending == .cut }
        var fitting = World.possible(worlds).filter { isFromStore(&answer, in: $0, mayBeStale: mayBeStale) }
        // What was asked for behind an earlier answer may have come later than it was waited for.
        if fitting.isEmpty, try takeRefreshes() {
            fitting = World.possible(worlds).filter { isFromStore(&answer, in: $0, mayBeStale: mayBeStale) }
        }
        guard !fitting.isEmpty else { throw Violation(explanation(of: answer, exchanges)) }
        worlds = fitting
        // Behind a stale answer, or in the place of an error.
        let mayAsk = mayBeStale || fitting.contains { $0.isServedStale(answer.key) }
        if response.isHit, !exchanges.isEmpty, !mayAsk {
            throw Violation("called a hit, but the upstream was asked: \(answer.text)")
        }
        figures.hits += 1
        if response.cacheStatus.contains("composed") { figures.composed += 1 }
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

    /// Whether the answer is the stored one, of which the upstream said that it holds.
    private func isHeld(_ answer: inout CheckedAnswer, by exchange: ReferenceExchange) -> Bool {
        guard exchange.status == 304, let received = exchange.received, answer.response.status != 304 else {
            return false
        }
        // It does, if nothing newer is known than it shows.
        let fitting = World.possible(worlds).filter { world in
            (world.documents[exchange.key]?.candidates ?? []).contains { document in
                document.received.etag == received.etag && world.isClean(document)
                    && answer.fits([[document.received.body]])
            }
        }
        if fitting.isEmpty {
            // Another answer has taken its place since it was asked about; it holds all the same.
            return answer.request.known.contains { document in
                document.received.etag == received.etag && answer.fits([[document.received.body]])
                    && World.possible(worlds).contains { $0.isClean(document) }
            }
        }
        worlds = fitting
        figures.revalidated += 1
        answer.renewedBy = exchange
        return true
    }

    /// Whether the answer is what the upstream said to this very request.
    private func isForwarded(_ answer: inout CheckedAnswer, _ exchanges: [ReferenceExchange]) -> Bool {
        for exchange in exchanges.reversed() {
            if isHeld(&answer, by: exchange) { return true }
            if answer.isOf(exchange) { return true }
        }
        // Nobody answered: Larder says so itself.
        return exchanges.last?.ending == .lost && [502, 504].contains(answer.response.status)
            && answer.response.isProblem
    }

    /// Whether the upstream was asked for what could have been answered, whatever Larder has taken in by now.
    private func isNeedless(_ answer: CheckedAnswer) -> Bool {
        guard !answer.ask.isForced, answer.request.tags.isEmpty, answer.ask.method == "GET" else { return false }
        return World.possible(worlds).allSatisfy { world in
            guard let document = world.documents[answer.key], document.isFresh, document.rivals.isEmpty else {
                return false
            }
            return !world.isUntold(document.received) && world.composed(document) != nil
        }
    }

    /// Whether the answer is what a world has stored.
    private func isFromStore(_ answer: inout CheckedAnswer, in world: World, mayBeStale: Bool) -> Bool {
        (world.documents[answer.key]?.candidates ?? []).contains { document in
            let isServed = document.isFresh || document.isServedStale
            guard isServed && !answer.ask.isForced || mayBeStale else { return false }
            let own: [Alternatives] = [[document.received.body]]
            if answer.ask.isRaw { return answer.fits(own) }
            // Served as it came while its objects are being taken apart.
            if world.isUntold(document.received), answer.fits(own) { return true }
            // Law 6: what cannot be composed is a miss, or, with the upstream away, served as received.
            if mayBeStale, world.isMerelyConfirmed(document), answer.fits(own) { return true }
            if (world.composed(document) ?? (mayBeStale ? own : nil)).map({ answer.fits($0) }) == true { return true }
            return world.composed(document, leniently: true).map { answer.fits($0) } == true
        }
    }

    /// What Larder was told with the answers to a request.
    private func tell(_ exchanges: [ReferenceExchange], _ answer: CheckedAnswer) {
        for exchange in exchanges where exchange.status == 404 { absent(exchange) }
        for exchange in exchanges where exchange.method == "HEAD" && exchange.ending == .whole {
            guard let received = exchange.received else { continue }
            if exchange.status == 200 { mayBeRefreshed(exchange, received) }
            if exchange.status == 304 { mayBeRenewed(exchange, received) }
        }
        for exchange in exchanges where exchange.method == "GET" {
            guard let received = exchange.received, exchange.ending == .whole else { continue }
            if exchange.status == 200 || exchange.status == 404 { told(exchange, received) }
            if exchange.status == 304, answer.renewedBy?.arrival == exchange.arrival {
                renewed(exchange, received)
            } else if exchange.status == 304 {
                mayBeRenewed(exchange, received)
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

    private func explanation(of answer: CheckedAnswer, _ exchanges: [ReferenceExchange]) -> String {
        var text = "#\(answer.ask.number) got\n    \(answer.text)\n"
        for exchange in exchanges {
            text += "  the upstream said \(exchange.status) \(exchange.received?.body ?? "")\n"
        }
        for (index, world) in World.possible(worlds).enumerated().prefix(4) {
            guard let document = world.documents[answer.key] else {
                text += "  nothing is stored\n"
                continue
            }
            let pieces = world.composed(document).map { $0.map { $0.joined(separator: "|") }.joined() }
            text +=
                "  account \(index + 1) allows (\(document.isFresh ? "fresh" : "stale"))\n    \(pieces ?? "a miss only")\n"
            text += "    received as\n    \(document.received.body)\n"
        }
        return text
    }
}

/// An answer that is being looked at.
struct CheckedAnswer {
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
        return exchange.ending != .cut && fits([[received.body]])
    }

    /// Whether it shows this body, as its request wants it shown.
    func fits(_ pieces: [Alternatives]) -> Bool {
        switch response.status {
        case 200 where ask.method == "HEAD":
            return whole(pieces).contains { response["Content-Length"] == "\($0.utf8.count)" }
        case 200, 404:
            return matches(response.text[...].utf8, pieces[...])
        case 206:
            guard let range = ask.range else { return false }
            return whole(pieces).contains { body in
                let bytes = Array(body.utf8)
                let part = bytes[min(range.lowerBound, bytes.count)..<min(range.upperBound, bytes.count)]
                let field = "bytes \(range.lowerBound)-\(range.lowerBound + part.count - 1)/\(bytes.count)"
                if let tag = request.rangeTag, tagged[tag] != [body] { return false }
                return response.body == Array(part) && response["Content-Range"] == field
            }
        case 416:
            return whole(pieces).contains { body in ask.range.map { $0.lowerBound >= body.utf8.count } ?? false }
        case 304:
            // Only if what the client has is what it would have been given.
            return request.tags.contains { tag in
                (tagged[tag] ?? []).contains { body in
                    tag.hasPrefix("W/") ? response["ETag"] == tag : matches(body[...].utf8, pieces[...])
                }
            }
        default: return false
        }
    }

    private func whole(_ pieces: [Alternatives]) -> [String] {
        pieces.reduce([""]) { begun, piece in begun.flatMap { text in piece.map { text + $0 } } }
    }
}
