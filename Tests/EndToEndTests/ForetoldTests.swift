import Foundation
import TestSupport
import Testing

/// What `/explain` foretells is what the next request gets, in generated states for generated requests.
@Suite(.scripts) struct ForetoldTests {
    @Test func `explain foretells what the next request gets, in every kind of state`() throws {
        let walks = try together(6) { number -> (seen: Set<String>, mistake: String?) in
            let walk = try ForetoldWalk(seed: UInt64(number + 1))
            for step in 0..<200 {
                try walk.change()
                guard let mistake = try walk.check() else { continue }
                let history = walk.history.suffix(8).joined(separator: "\n")
                return (walk.seen, "seed \(number + 1), step \(step): \(mistake)\n\(history)")
            }
            return (walk.seen, nil)
        }
        let mistakes = walks.compactMap(\.mistake)
        #expect(mistakes.isEmpty, "\(mistakes.joined(separator: "\n"))")
        let wanted: Set<String> = [
            "serve", "serve-and-refresh", "fetch", "pass", "write", "refuse", "412", "429", "503", "504", "206", "304",
            "events", "cached", "error", "reads", "guarded", "400", "403", "421", "508",
            "fwd=stale", "fwd=request", "fwd=uri-miss", "fwd=vary-miss", "fwd=partial", "fwd=bypass", "fwd=method",
            "detail=offline", "detail=retry-after", "detail=stale", "detail=outdated", "detail=doubt",
            "detail=composed", "detail=never-by-route", "detail=only-if-cached", "detail=assembled", "validated",
            "loaded", "detail=unreachable", "detail=no-cache", "detail=must-revalidate", "detail=request-no-cache",
            "detail=body-not-json",
        ]
        let seen = walks.reduce(into: Set<String>()) { $0.formUnion($1.seen) }
        #expect(wanted.subtracting(seen).isEmpty, "\(wanted.subtracting(seen).sorted())")
    }

    /// The request that waits for a commit is explained as one that waits.
    @Test func `explain counts a response that is not yet committed as stored`() throws {
        let origin = try Origin { request in .json(#"{"id":1,"name":"a"}"#, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        for _ in 0..<20 {
            _ = try larder.get("/users/1", ["Cache-Control": "no-cache"])
            let foretold = try ExplainTests.explain(larder, "/users/1")
            #expect((foretold["online"] as? [String: Any])?["action"] as? String == "serve")
        }
    }
}

/// A daemon whose upstream and store change at random, and random requests to it.
private final class ForetoldWalk {
    /// How the upstream responds to a path.
    private struct Behaviour: Sendable {
        var version = 1
        var fields: FieldLines = Fresh.hour
        var status = 200
        var hasTag = true
    }

    private static let documents = [
        "/users", "/users/1", "/users/2", unstored, "/text/1", "/text/2", "/limited/1", "/never",
    ]
    private static let methods = Array(repeating: "GET", count: 14) + ["HEAD", "HEAD", "OPTIONS", "PUT", "POST"]
    /// Where a POST reads.
    private static let search = "/search"
    /// Fields with which every request is refused before anything is looked up.
    private static let refused: [(name: String, value: String)] = [
        ("X-HTTP-Method-Override", "DELETE"), ("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Purpose", "prefetch"), ("Host", "evil.example"), ("Larder-View", "odd"),
        ("Via", Array(repeating: "1.1 larder", count: 30).joined(separator: ", ")),
    ]
    /// A detail that is never stored: its object is known from the list.
    private static let unstored = "/users/3"
    /// The one document that may fail without `Retry-After`.
    private static let failing = "/text/2"
    private static let freshness: [FieldLines] = [
        Fresh.hour, Fresh.hour, ["Cache-Control": "max-age=60", "Age": "100"],
        ["Cache-Control": "max-age=60, must-revalidate", "Age": "100"], ["Cache-Control": "max-age=6000", "Age": "60"],
        ["Cache-Control": "max-age=3600, no-cache"], ["Cache-Control": "no-store"],
        ["Cache-Control": "max-age=3600", "Vary": "X-Variant"],
        ["Cache-Control": "max-age=60, stale-if-error=10", "Age": "100"],
        ["Cache-Control": "max-age=60, stale-while-revalidate=6000", "Age": "100"],
    ]

    private let origin: Origin
    private let larder: Larder
    private let behaviours: Monitor<[String: Behaviour]>
    private var random: SeededGenerator
    private var isOffline = false
    /// Whether the upstream refuses connections, and the daemon knows it.
    private var isDown = false
    private var ownTag = "\"larder-0123456789abcdef0123456789abcdef\""
    private(set) var history: [String] = []
    /// The kinds of plans and states met.
    private(set) var seen: Set<String> = []

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        let behaviours = Monitor(
            Dictionary(uniqueKeysWithValues: ForetoldWalk.documents.map { ($0, Behaviour()) })
        )
        self.behaviours = behaviours
        origin = try Origin { request in
            let behaviour = behaviours.current[request.path] ?? Behaviour()
            return ForetoldWalk.response(to: request, behaviour)
        }
        // Doubts are asked about once, so that no second passes between two inquiries.
        larder = try Larder(
            config: Configs.blog(origin, upstream: ["lag: 1h"])
                .replacing(#"{id:#}", model: User }"#, with: #"{id:#}", model: User, object: { id: id } }"#)
                .replacing(
                    "routes:",
                    with: "routes:\n  - { path: never, cache: never }\n  - { path: search, method: POST, read: true }"
                )
        )
    }

    private static func response(to request: Origin.Request, _ behaviour: Behaviour) -> OriginResponse {
        let isSearch = request.path == search
        guard request.method == "GET" || request.method == "HEAD" || isSearch else { return .empty(204) }
        guard behaviour.status == 200 else {
            let wait: FieldLines = behaviour.status == 500 ? [:] : ["Retry-After": "3600"]
            return .text("later", wait, status: behaviour.status)
        }
        if isSearch { return .json(#"{"found":\#(behaviour.version)}"#, behaviour.fields) }
        let tag = behaviour.hasTag ? "\"\(request.path.dropFirst())-\(behaviour.version)\"" : nil
        let name = "n\(behaviour.version)"
        let body =
            switch request.path {
            case "/users":
                #"[{"id":1,"name":"\#(name)"},{"id":2,"name":"\#(name)","company":"c"},{"id":3,"name":"\#(name)"}]"#
            case "/users/1", "/users/2", unstored: #"{"id":\#(request.path.last ?? "1"),"name":"\#(name)"}"#
            default: "0123456789 of version \(behaviour.version)"
            }
        guard request.path.hasPrefix("/users") else {
            let content = RangedContent(body, tag: tag, behaviour.fields)
            return request.method == "GET" ? content.answer(request) : .text(body, behaviour.fields)
        }
        var fields = request.path == unstored ? ["Cache-Control": "no-store"] : behaviour.fields
        if let tag { fields.append("ETag", tag) }
        if let tag, request["If-None-Match"]?.contains(tag) == true { return .notModified(fields) }
        return .json(body, fields)
    }

    // MARK: States

    /// Changes how the upstream responds, or what the daemon has.
    func change() throws {
        if random.once(in: 2) {
            let path = random.pick(Self.documents + [Self.search])
            let kind = random.below(10)
            var behaviour = behaviours.current[path] ?? Behaviour()
            behaviour.status = 200
            switch kind {
            case 0: behaviour.status = 503
            case 1 where path == Self.failing: behaviour.status = 500
            case 2 where path.hasPrefix("/limited"): behaviour.status = 429
            case 3...5: behaviour.version += 1
            default:
                // After a failed refresh there is a pause of a second, which may end between explanation and request.
                behaviour.fields = random.pick(path == Self.failing ? Array(Self.freshness.dropLast()) : Self.freshness)
                behaviour.hasTag = !random.once(in: 4)
            }
            let changed = behaviour
            behaviours.withLock { $0[path] = changed }
        }
        // A restart, and a change of the mode, would make the daemon forget what it knows of an outage.
        guard !isDown else {
            if random.once(in: 6) { try restore() }
            return
        }
        switch random.below(40) {
        case 0: try larder.restart()
        case 1...2: try switchMode()
        case 3: try reload()
        case 4: _ = try larder.command("clean", "--all", "--yes")
        case 5 where !isOffline: return try breakDown()
        default:
            guard isOffline, random.once(in: 5) else { return }
            try switchMode()
        }
        // A restart begins in the configured mode.
        isOffline = try ExplainTests.explain(larder, "/users")["mode"] as? String == "offline"
        history.append(isOffline ? "offline" : "online")
    }

    private func switchMode() throws { _ = try larder.command("mode", isOffline ? "auto" : "offline") }

    /// Ends the upstream, and asks until the daemon holds requests back.
    private func breakDown() throws {
        try awaitUpstream()
        origin.stop()
        isDown = try eventually {
            _ = try self.larder.request("OPTIONS", "/none")
            let upstreams = try self.larder.admin("GET", "/upstreams").object["upstreams"] as? [[String: Any]]
            return upstreams?.first?["is_held_back"] as? Bool == true
        }
        #expect(isDown)
        history.append("down")
    }

    /// Brings the upstream back, and asks until the daemon knows it.
    private func restore() throws {
        try origin.restart()
        #expect(try eventually { try self.larder.request("OPTIONS", "/none").status == 204 })
        isDown = false
        history.append("up")
    }

    /// Replaces the store by its own copy.
    private func reload() throws {
        let copy = larder.folder.file("copy-\(UInt32.random(in: 0 ... .max)).db")
        _ = try larder.command("save", copy)
        let loaded = try larder.command("load", copy, "--replace")
        if loaded.end == .exited(0) { seen.insert("loaded") } else { history.append(loaded.errors) }
    }

    // MARK: Requests

    private struct Asked {
        var method = "GET"
        var path: String
        var fields: FieldLines = [:]
        var body: String?
        var isStream = false

        var lines: [String] { fields.lines.map { "\($0.name): \($0.value)" } }

        /// The query for `/explain`.
        var query: String {
            let pairs =
                [("url", path), ("method", method)] + lines.map { ("header", $0) } + (body.map { [("data", $0)] } ?? [])
            return pairs.map { "\($0.0)=\(ExplainTests.escaped($0.1))" }.joined(separator: "&")
        }
    }

    private func request() -> Asked {
        switch random.below(12) {
        case 0: return stream()
        case 1: return search()
        case 2 where random.once(in: 2):
            let (name, value) = random.pick(Self.refused)
            return Asked(method: random.pick(Self.methods), path: random.pick(Self.documents), fields: [name: value])
        default: return plain()
        }
    }

    /// A stream that ends with the upstream's response.
    private func stream() -> Asked {
        var asked = Asked(path: random.pick(Self.documents), fields: ["Larder-Live": "once"], isStream: true)
        switch random.below(6) {
        case 0: asked.fields.append("Cache-Control", random.pick(["no-cache", "only-if-cached"]))
        case 1: asked.fields.append("X-Variant", random.pick(["a", "b"]))
        case 2: asked.fields.append("Larder-View", "mapped")
        default: break
        }
        return asked
    }

    /// A POST whose route says that it reads; one of its bodies cannot be read.
    private func search() -> Asked {
        let body = random.pick([#"{"q":1}"#, #"{"q":2}"#, "{"])
        return Asked(method: "POST", path: Self.search, fields: ["Content-Type": "application/json"], body: body)
    }

    private func plain() -> Asked {
        let path = random.pick(Self.documents)
        let method = random.pick(Self.methods)
        var fields: FieldLines = [:]
        if path == Self.unstored, random.once(in: 2) {
            return Asked(method: method, path: path, fields: ["Larder-View": "mapped"])
        }
        switch random.below(6) {
        case 0:
            let directives = [
                "no-cache", "max-age=0", "max-stale=100000", "max-stale=5", "min-fresh=100000", "only-if-cached",
                "no-store",
            ]
            fields.append("Cache-Control", random.pick(directives))
        case 1:
            let version = behaviours.current[path]?.version ?? 1
            let tag = random.once(in: 4) ? ownTag : "\"\(path.dropFirst())-\(version)\""
            fields.append(random.pick(["If-None-Match", "If-None-Match", "If-Match"]), tag)
        case 2 where path.hasPrefix("/text"):
            fields.append("Range", random.pick(["bytes=0-3", "bytes=2-5", "bytes=4-", "bytes=-2"]))
        case 3: fields.append("X-Variant", random.pick(["a", "b"]))
        case 4 where random.once(in: 3): fields.append("Larder-View", random.pick(["raw", "mapped"]))
        case 4 where random.once(in: 3): fields.append("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")
        default: break
        }
        return Asked(method: method, path: path, fields: fields)
    }

    /// Explains a request and sends it; returns what went otherwise than foretold, nil if nothing did.
    func check() throws -> String? {
        let request = request()
        // What a stream finds must not be about to change.
        if request.isStream { try awaitUpstream() }
        let explanation = try larder.admin("GET", "/explain?\(request.query)")
        guard explanation.status != 422 else { return try checkRefused(request, explanation) }
        #expect(explanation.status == 200, "\(explanation.text)")
        let foretold = explanation.object
        let outcome = try #require(foretold[isOffline ? "offline" : "online"] as? [String: Any])
        let (action, status) = (outcome["action"] as? String ?? "", outcome["status"] as? Int)
        let asked = origin.count()
        let response = try larder.request(request.method, request.path, request.fields, body: request.body)
        let explained = (outcome["cache_status"] as? String ?? "").filter { $0 != " " }
        let reason = outcome["reason"] as? String ?? ""
        history.append(
            "\(request.method) \(request.path) \(request.lines) \(request.body ?? "")"
                + "\n  \(action) \(status ?? 0) \(explained): \(reason)\n  \(response.status) \(response.cacheStatus)"
        )
        if let tag = response["ETag"], tag.hasPrefix("\"larder-") { ownTag = tag }
        note(action, response)
        // Held back, a doubt is put off for a second, which may end between explanation and request.
        if isDown, (explained + response.cacheStatus).contains("doubt") { return nil }
        if request.path == Self.search, ["fetch", "serve"].contains(action) { seen.insert("reads") }

        if let status, status != response.status { return "the status is another" }
        switch action {
        case "fetch", "pass", "write":
            // It goes on after a client that has its 304 already, and renews what is stored after a HEAD.
            if response.status == 304 || request.method == "HEAD" { try awaitUpstream() }
            guard origin.count() > asked else { return "the upstream was not asked" }
            let conditions = (foretold["upstream"] as? [String: Any])?["conditions"] as? [String]
            let sent = Self.conditions(in: origin.requests[asked])
            if !sent.isEmpty { seen.insert("validated") }
            if let conditions, conditions.sorted() != sent { return "the upstream was sent \(sent)" }
        case "serve-and-refresh":
            guard origin.waitForRequests(asked + 1) else { return "nothing was refreshed" }
            let conditions = (foretold["upstream"] as? [String: Any])?["conditions"] as? [String] ?? []
            let sent = Self.conditions(in: origin.requests[asked])
            if conditions.sorted() != sent { return "the upstream was sent \(sent)" }
            try awaitUpstream()
        case "events":
            if let mistake = try streamed(response, reason, asked, foretold) { return mistake }
        default:
            if origin.count() != asked { return "the upstream was asked" }
        }
        return difference(explained, response)
    }

    /// Sends a request that would be refused before anything is looked up.
    private func checkRefused(_ request: Asked, _ explanation: Response) throws -> String? {
        let asked = origin.count()
        let response = try larder.request(request.method, request.path, request.fields)
        seen.formUnion(["guarded", "\(response.status)"])
        history.append(
            "\(request.method) \(request.path) \(request.lines)\n  \(explanation.text)\n  \(response.status)"
        )
        if origin.count() != asked { return "the upstream was asked" }
        return explanation.text.contains("refused with \(response.status) ") ? nil : "the status is another"
    }

    /// What came in a stream otherwise than foretold.
    private func streamed(_ response: Response, _ reason: String, _ asked: Int, _ foretold: [String: Any]) throws
        -> String?
    {
        let first = try response.events.first?.name ?? ""
        seen.insert(first)
        let foretoldFirst = ["cached", "error"].first { reason.hasPrefix("`\($0)`") }
        // What the upstream says may be an error, too.
        if foretoldFirst.map({ $0 != first }) ?? (first == "cached") { return "the first event is \(first)" }
        try awaitUpstream()
        guard !reason.hasPrefix("`error`"), !reason.contains("the upstream is not asked") else {
            return origin.count() == asked ? nil : "the upstream was asked"
        }
        guard origin.count() > asked else { return "the upstream was not asked" }
        let conditions = (foretold["upstream"] as? [String: Any])?["conditions"] as? [String] ?? []
        let sent = Self.conditions(in: origin.requests[asked])
        return conditions.sorted() == sent ? nil : "the upstream was sent \(sent)"
    }

    /// Waits until all transfers are over and what they brought is stored.
    private func awaitUpstream() throws {
        _ = try eventually { try self.larder.total("larder_upstream_in_flight") == 0 }
        _ = try larder.waitForQuiet()
    }

    private static func conditions(in request: Origin.Request) -> [String] {
        let names = ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"]
        return names.flatMap { name in request.fields.all(name).map { "\(name): \($0)" } }.sorted()
    }

    /// What `Cache-Status` says otherwise than foretold.
    private func difference(_ explained: String, _ response: Response) -> String? {
        let words = response.cacheStatus.split(separator: ";").map(String.init)
        let foretold = explained.split(separator: ";").map(String.init)
        // The status of the upstream, and what becomes of its response, is not known before.
        let known = foretold.filter { !$0.hasPrefix("ttl=") && !$0.hasPrefix("detail=") }
        guard known.allSatisfy({ words.contains($0) }) else { return "Cache-Status is another" }
        func detail(_ words: [String]) -> Set<Substring> {
            let text = words.first { $0.hasPrefix("detail=") }?.dropFirst("detail=".count) ?? ""
            return Set(text.filter { $0 != "\"" }.split(separator: "+"))
        }
        if words.contains("hit") || !words.contains(where: { $0.hasPrefix("fwd=") }) {
            return detail(words) == detail(foretold) ? nil : "the detail is another"
        }
        let isReplaced = words.contains { $0.hasPrefix("fwd-status=5") || $0.hasPrefix("fwd-status=4") }
        return isReplaced || detail(foretold).isSubset(of: detail(words)) ? nil : "the detail is another"
    }

    private func note(_ action: String, _ response: Response) {
        seen.formUnion([action, "\(response.status)"])
        for word in response.cacheStatus.split(separator: ";") {
            if word.hasPrefix("fwd=") { seen.insert(String(word)) }
            guard word.hasPrefix("detail=") else { continue }
            for detail in word.dropFirst("detail=".count).split(separator: "+") {
                seen.insert("detail=" + detail.filter { $0 != "\"" })
            }
        }
    }
}
