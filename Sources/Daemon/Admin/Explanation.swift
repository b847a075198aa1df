import CachePolicy
import HTTPSemantics
import Mapping
import Proxy
import Settings
import Store
import Upstream

/// `GET /explain`: the responses stored for a URL, and the one that a request would get now; without any credential.
package struct Explanation: AdminBody, Equatable {
    static let sentences = [
        "variants": "Every variant stored under the key, the one that would be served first.",
        "others": "What is stored of the URL for other requests.",
        "unstored": "The latest response to the URL that was not stored, if it is remembered.",
        "freshness": "The arithmetic of RFC 9111 §4.2 for the variant that would be served.",
        "mode": "The mode that the daemon is in.",
        "online": "What the request would get in the mode `online`, or in `auto` if that is the mode now.",
        "offline": "What the request would get in this mode.",
        "upstream": "What would become of the upstream's response, if it is asked now.",
        "remedy":
            "What to write into the config so that such requests are hits, where the response's fields prevent it.",
        "overrides": "What the route says in place of the upstream.",
    ]
    package var request: Asked
    package var overrides: Overrides?
    package var variants: [Variant]
    package var others: [Other] = []
    package var unstored: NotStored?
    package var freshness: Freshness?
    package var mode: String
    package var online: Outcome
    package var offline: Outcome
    package var upstream: Expectations?
    package var remedy: String?

    package struct Asked: AdminBody, Equatable {
        static let sentences = [
            "method": "The method.", "upstream": "The upstream's name.", "url": "How the URL was read.",
            "sent": "What is sent upstream, as the client spells it; credentials are replaced.",
            "key": "The URL of the cache key.", "route": "The rule that decides how it is cached.",
            "context": "Fields that choose the representation, besides Vary, with their values.",
            "view": "`wire` or `raw`.",
        ]
        package var method: String
        package var upstream: String
        package var url: ReadURL
        package var sent: String
        package var key: String
        package var route: Route?
        package var principal: Principal
        package var context: [String]
        var view: String
    }

    package struct Route: AdminBody, Equatable {
        static let sentences = [
            "path": "The pattern.", "method": "The method that it is restricted to.",
            "model": "What its responses contain; in brackets for a list.",
        ]
        package var path: String
        package var method: String?
        package var model: String?
    }

    package struct Principal: AdminBody, Equatable {
        static let sentences = [
            "label": "`anonymous`, or `p-` and eight digits.", "isKnown": "Whether it has made a request before.",
            "fields": "The names of the fields and query parameters that make it.",
        ]
        package var label: String
        package var isKnown: Bool
        package var fields: [String]
    }

    /// The route's settings that override the upstream's fields.
    package struct Overrides: AdminBody, Equatable {
        static let sentences = [
            "cache": "`never` or `force`.", "fresh": "A duration such as `5m`.", "stale": "A duration.",
            "negative": "A duration.", "varyIgnore": "Fields that select no variant.",
            "keySort": "Whether the order of parameters is ignored.",
            "keyIgnore": "Parameters, or patterns of their names, that are ignored.",
        ]
        package var cache: String?
        package var fresh: String?
        package var stale: String?
        package var negative: String?
        package var varyIgnore: [String]
        package var keySort: Bool
        package var keyIgnore: [String]
    }

    package struct Variant: AdminBody, Equatable {
        static let sentences = [
            "isSelected": "Whether it is the one for this request.", "status": "Its status.",
            "selection":
                "The fields named by Vary, with the values that select it; the name alone where the field was absent.",
            "inMemory": "Whether it is ready in memory.",
            "document": "The document in the store; absent until it is committed.",
            "form": "`received`, `composed`, or `outdated`: newer values are known that it cannot show.",
            "isDirty": "Whether newer values are known of what it shows.", "objects": "How many objects it shows.",
            "bytes": "The length of its body.", "age": "Seconds.", "timeToLive": "Seconds; negative once stale.",
            "entityTag": "The ETag.", "lastModified": "The Last-Modified.",
        ]
        package var isSelected: Bool
        package var status: Int
        package var selection: [String]
        package var inMemory: Bool
        package var document: Int64?
        package var form: String
        package var isDirty: Bool
        package var objects: Int
        package var bytes: Int
        package var age: Int64
        package var timeToLive: Int64
        package var entityTag: String?
        package var lastModified: String?
    }

    package struct Other: AdminBody, Equatable {
        static let sentences = [
            "principal": "`anonymous`, or `p-` and eight digits.",
            "context": "Fields that choose the representation, with their values.",
            "differences": "How a request that gets it differs from this one.", "status": "Its status.",
            "selection": "The fields named by Vary, with the values that select it.", "age": "Seconds.",
            "timeToLive": "Seconds; negative once stale.",
        ]
        var principal: String
        var context: [String]
        package var differences: [String]
        package var status: Int
        var selection: [String]
        package var age: Int64
        package var timeToLive: Int64
    }

    package struct NotStored: AdminBody, Equatable {
        static let sentences = [
            "status": "Its status.", "secondsAgo": "When it was received.",
            "rule": "Why it was not stored, in a word: `no-store`, `private`, `too-large` and so on.",
            "decidedBy": "Whose rule: `upstream`, `config`, `request`, `standard` (HTTP) or `larder`.",
            "reason": "The same as a sentence.", "differences": "How its request differed from this one.",
        ]
        package var status: Int
        package var secondsAgo: Int64
        package var rule: String
        package var decidedBy: String
        package var reason: String
        package var differences: [String]
    }

    package struct Freshness: AdminBody, Equatable {
        static let sentences = [
            "isFresh": "Whether it may be used without asking the upstream.",
            "terms": "The numbers, each with its source.", "rules": "Directives that bear on reuse, such as no-cache.",
        ]
        package var isFresh: Bool
        package var terms: [Term]
        package var rules: [String]
    }

    package struct Term: AdminBody, Equatable {
        static let sentences = [
            "name": "What the number is.", "seconds": "The number.", "source": "Where it comes from.",
        ]
        package var name: String
        package var seconds: Int64
        package var source: String
    }

    package struct Outcome: AdminBody, Equatable {
        static let sentences = [
            "action":
                "`serve`, `serve-and-refresh`, `fetch`, `events`, `pass` (neither looked up nor stored), `write` or `refuse`.",
            "status": "The status that the client would see; absent where the upstream decides.",
            "cacheStatus": "Cache-Status as far as it is known.", "reason": "Why.",
        ]
        package var action: String
        package var status: Int?
        package var cacheStatus: String
        package var reason: String
    }

    package struct Expectations: AdminBody, Equatable {
        static let sentences = [
            "conditions": "The conditional fields that would be sent.", "notModified": "What a 304 would do.",
            "storing": "Why nothing that the upstream sends will be stored; absent where its response decides.",
            "failure": "What a failure would do.",
        ]
        package var conditions: [String]
        package var notModified: String?
        package var storing: String?
        package var failure: String
    }
}

extension Explanation {
    static let parameters: [AdminRoute.Parameter] = AdminRoute.Parameter.documented([
        "A path as clients send it to Larder or as it goes upstream, or an absolute URL of Larder or of an upstream.":
            .init("url", isRequired: true),
        "A field of the request, as `Name: value`; may be repeated.": .init("header", isRepeatable: true),
        "The method; GET by default, or POST with `data`.": .init("method"),
        "The body of a POST whose route says that it reads; JSON unless a field says otherwise.": .init("data"),
        "The upstream, where several could be meant.": .init("upstream"),
    ])

    static func make(for request: AdminRequest, _ daemon: DaemonCore) async throws -> Explanation {
        guard let url = request.value("url") else {
            throw ProblemDocument.badRequest("url is missing: give the URL to explain")
        }
        let (incoming, named): (IncomingRequest, NamedURL)
        let (upstreams, settings, name) = (daemon.upstreams, daemon.settings, request.value("upstream"))
        do throws(ImaginedRequestError) {
            named = try NamedURL(url, among: upstreams, at: settings.listen, upstream: name)
            let data = request.value("data")
            let imagined = try IncomingRequest(
                imagined: request.value("method") ?? (data == nil ? "GET" : "POST"),
                url,
                fields: request.values("header"),
                withJSON: data != nil,
                of: upstreams,
                named: name,
                settings
            )
            incoming = daemon.proxy.knowing(data.map { Array($0.utf8) }, of: imagined)
        } catch {
            switch error {
            case .unreadable, .unserved: throw ProblemDocument.badRequest(error.description)
            case .refused: throw ProblemDocument(422, error.description)
            }
        }
        return Explanation(try await daemon.proxy.explain(incoming), of: incoming, named)
    }

    init(_ explained: ExplainedRequest, of incoming: IncomingRequest, _ named: NamedURL) {
        let (request, selected, now) = (explained.request, explained.selected, explained.now)
        self.request = Asked(request, incoming, named, explained.principal)
        overrides = Overrides(request.overrides)
        variants = explained.variants.map { variant in
            Variant(variant, isSelected: selected.map { variant.ready.replaces($0) } ?? false, now: now)
        }
        .sorted { $0.isSelected && !$1.isSelected }
        others = explained.documents.compactMap { document in
            let (stored, isOthers) = (document.stored, document.principal != explained.principal.label)
            let credential = isOthers ? "another credential (\(document.principal))" : nil
            let context = stored.key.context
            let differences = Self.differences(from: request.key.context, to: context, credential: credential)
            guard !differences.isEmpty, let policy = StoredPolicy(bytes: stored.policy) else { return nil }
            let applied = request.upstream.applying(policy, request.overrides)
            return Other(
                principal: document.principal,
                context: context.split(separator: "\n").map(String.init),
                differences: differences,
                status: stored.status,
                selection: VarySelection(bytes: stored.variant)?.texts ?? [],
                age: applied.age(at: now),
                timeToLive: applied.timeToLive(at: now)
            )
        }
        unstored = explained.unstored.map { NotStored($0, for: request, now: now) }
        freshness = selected.map { Freshness($0, of: request.upstream, route: request.overrides, now: now) }
        mode = explained.mode.rawValue
        if let stream = explained.stream {
            (online, offline) = (Outcome(stream.online), Outcome(stream.offline))
        } else {
            online = Outcome(explained.online, request, after: explained.pause, now: now)
            offline = Outcome(explained.offline, request, now: now)
            if explained.mayBeShared {
                online.reason += "; if another machine of the fleet has shared it, that is served"
            }
        }
        upstream = explained.inquiry.map { Expectations($0, assembled: explained.assembled, now: now) }
        remedy = Self.remedy(for: request, selected, explained.unstored)
    }
}

extension Explanation {
    private static func remedy(
        for request: ProxyRequest,
        _ selected: ReadyResponse?,
        _ unstored: NotStoredReasons.Note?
    ) -> String? {
        guard MethodFacts.isCacheable(request.message.method), request.overrides.cache != .never else { return nil }
        guard let selected else {
            let forced = FreshnessRemedy.route(request.route, reading: request.read?.kind, cache: .force)
            switch unstored?.reason.rule {
            case Storability.Reason.noStore.rawValue: return forced.sentence
            case Storability.Reason.varyAny.rawValue:
                return "By Vary: * the response is for no other request. If you know better, write \(forced.line)."
            default: return nil
            }
        }
        return FreshnessRemedy(for: selected, route: request.route, reading: request.read?.kind)?.sentence
    }
}

extension Explanation.Outcome {
    /// What a plan means for the client, which waits for `pause` first.
    init(_ plan: Plan, _ request: ProxyRequest, after pause: Duration? = nil, now: Int64) {
        switch plan.outcome {
        case .serve(let ready, _, _), .serveAndRefresh(let ready, _, _, _):
            let content = ServedContent(of: ready.shown(to: request), for: request.message, now: now)
            status = content?.status(of: ready) ?? ready.response.status
        case .refuse(let problem), .refuseAndExpire(let problem): status = problem.status
        case .ask, .write, .held: break
        }
        (action, reason, cacheStatus) = (plan.action, plan.sentence, plan.cacheStatus(sent: status, now: now))
        guard let pause else { return }
        let seconds = Int((pause / .seconds(1)).rounded(.up))
        reason += "; first it waits for the upstream's limit, which is reset in \(seconds) s"
    }

    init(_ stream: ExplainedStream) {
        (action, cacheStatus) = ("events", stream.cacheStatus.text)
        status = stream.isOver ? 204 : 200
        let problem = stream.problem.map { $0.detail ?? $0.title }
        reason =
            switch (stream.use, problem) {
            case _ where stream.isOver: "the client has seen the last event, and is to stay away"
            case (nil, nil): "what the upstream says"
            case (_?, nil): "`cached` with what is stored, then what the upstream says"
            case (nil, let problem?): "`error`: \(problem)"
            case (_?, let problem?): "`cached` with what is stored; the upstream is not asked: \(problem)"
            }
    }
}

extension Explanation.Expectations {
    init(_ inquiry: Plan.Inquiry, assembled: ReadyResponse?, now: Int64) {
        let validation = inquiry.validation
        let names = ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"]
        conditions = inquiry.upstreamRequest.fields.lines.filter { names.contains($0.lowercasedName) }.map {
            "\(String(decoding: $0.name, as: UTF8.self)): \($0.text)"
        }
        if let across = validation.across, validation.chosen == nil {
            notModified =
                if case .expected = across {
                    "with that ETag, what is stored for another principal becomes this one's, too, and is served"
                } else { "shows that the upstream does not compare entity tags, and the whole is fetched" }
        } else if validation.chosen == nil, !validation.isEmpty {
            notModified = "the stored variant that its ETag names is renewed, and serves this request, too"
        } else if !validation.isEmpty, let stored = inquiry.stored {
            notModified =
                "renews what is stored, lifetime \(stored.policy.lifetime) s unless it says otherwise, and that is served"
        }
        if let refusal = NotStoredReason.refusal(of: inquiry.request) { storing = "is not stored: \(refusal.text)" }
        let request = inquiry.request
        if inquiry.stored?.maySubstitute(at: now, for: request) == true {
            failure = "what is stored is served in its place"
        } else if request.view == .mapped, assembled?.maySubstitute(at: now, for: request) == true {
            failure = "it is passed on; if no response comes, what is known of the object is served"
        } else {
            failure = "it is passed on"
        }
    }
}

extension Explanation.Asked {
    fileprivate init(
        _ request: ProxyRequest,
        _ incoming: IncomingRequest,
        _ named: NamedURL,
        _ principal: (label: String, isKnown: Bool)
    ) {
        let upstream = request.upstream
        let query = ProxiedUpstream.query(ofURL: request.target)
        let match = upstream.rules.route(method: request.sentMethod, path: request.route, query: query, status: nil)
        let fields = upstream.credentials(in: request.message).map(\.name)
        (method, self.upstream, key) = (request.sentMethod, upstream.name, request.key.url)
        url = ReadURL(incoming, named)
        sent = upstream.url(of: upstream.principal.redacted(url: request.target))
        route = match.map { Explanation.Route(upstream.settings.routes[$0.index]) }
        self.principal = .init(label: principal.label, isKnown: principal.isKnown, fields: fields)
        context = incoming.context.split(separator: "\n").map(String.init)
        view = request.view == .raw ? "raw" : "wire"
    }
}

extension Explanation.Route {
    init(_ route: Configuration.Route) {
        (path, method) = (route.declaration.path, route.declaration.method)
        model = route.body.map { $0.isList ? "[\($0.model)]" : $0.model }
    }
}

extension Explanation.Overrides {
    /// Nil if the route has no caching settings.
    init?(_ route: CacheOverrides) {
        guard route != CacheOverrides() else { return nil }
        cache = route.cache?.rawValue
        (fresh, stale) = (route.fresh.map(Units.text), route.stale.map(Units.text))
        negative = route.negative.map(Units.text)
        (varyIgnore, keySort, keyIgnore) = (route.vary.ignore, route.key.sort, route.key.ignore)
    }
}

extension Explanation.Variant {
    init(_ variant: StoredVariant, isSelected: Bool, now: Int64) {
        let (ready, response) = (variant.ready, variant.ready.response)
        (self.isSelected, inMemory, isDirty) = (isSelected, variant.isInMemory, variant.isDirty)
        (status, selection, form) = (response.status, response.selection.texts, "\(response.form)")
        (document, objects, bytes) = (variant.document?.rawValue, variant.objects, ready.body.count)
        (age, timeToLive) = (ready.policy.age(at: now), ready.policy.timeToLive(at: now))
        (entityTag, lastModified) = (response.fields.text("etag"), response.fields.text("last-modified"))
    }
}

extension VarySelection {
    /// A line for each field: `accept-encoding=gzip`, or the name alone if it was absent.
    fileprivate var texts: [String] {
        lines.filter { $0.name != OtherFields.name || $0.value != nil }.map { line in
            line.value.map { "\(line.name)=\(String(decoding: $0, as: UTF8.self))" } ?? line.name
        }
    }
}

extension Explanation {
    /// The differences between this request (`asked`) and another one in their cache keys; `credential`: in words.
    fileprivate static func differences(from asked: String, to other: String, credential: String?) -> [String] {
        func fields(_ context: String) -> [String: String] {
            var fields: [String: String] = [:]
            for line in context.split(separator: "\n") {
                let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                fields[String(parts[0])] = parts.count == 2 ? String(parts[1]) : ""
            }
            return fields
        }
        let (asked, other) = (fields(asked), fields(other))
        let names = Set(asked.keys).union(other.keys).sorted().filter { asked[$0] != other[$0] }
        return (credential.map { [$0] } ?? [])
            + names.map { "\($0): \(other[$0] ?? "none") instead of \(asked[$0] ?? "none")" }
    }
}

extension Explanation.NotStored {
    fileprivate init(_ note: NotStoredReasons.Note, for request: ProxyRequest, now: Int64) {
        (status, secondsAgo) = (note.status, max(0, now - note.time))
        (rule, decidedBy, reason) = (note.reason.rule, note.reason.decidedBy.rawValue, note.reason.text)
        let credential = note.principal == request.key.principal ? nil : "another credential"
        differences = Explanation.differences(from: request.key.context, to: note.context, credential: credential)
    }
}
