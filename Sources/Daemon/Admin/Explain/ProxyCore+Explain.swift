import CachePolicy
import EventLoops
package import HTTPSemantics
import Mapping
package import Proxy
import Settings
import Store

extension ProxyCore {
    /// Explains what would happen to a request, by the functions that would serve it.
    ///
    /// Nothing is fetched, marked as used or put into memory, and no principal is created.
    func explain(_ incoming: IncomingRequest) async throws(StoreError) -> Explanation {
        let (principal, label) = try await principals.find(incoming.credentials, of: incoming.upstream)
        let request = makeRequest(incoming, of: principal ?? .nobody)
        let now = now
        let (variants, selected) = try await cache.survey(request, now: now)
        let mode = modes.current
        var explanation = Explanation(
            request: Explanation.Asked(request, incoming, label: label, isKnown: principal != nil),
            overrides: Explanation.Overrides(request.overrides),
            variants: variants.map { Explanation.Variant($0, isSelected: $0.ready === selected, now: now) }
                .sorted { $0.isSelected && !$1.isSelected },
            mode: mode.rawValue,
            online: Explanation.Outcome(action: "pass", cacheStatus: "", reason: ""),
            offline: Explanation.Outcome(.offline(request.message.method))
        )
        explanation.others = try await others(than: request, label: label, now: now)
        explanation.unstored = fetches.notStored[request.key].map { Explanation.NotStored($0, for: request, now: now) }
        guard MethodFacts.isCacheable(request.message.method) else {
            explanation.online = Self.outcome(ofUncacheable: request)
            return explanation
        }
        explanation.freshness = selected.map {
            Explanation.Freshness($0, of: request.upstream, route: request.overrides, now: now)
        }
        let absence = selected == nil ? await cache.absence(of: request) : .uriMiss
        let parts = incoming.live == nil && !request.isForOrigin ? try await cache.surveyParts(request) : nil
        let shortfall = variants.first { $0.ready === selected }?.shortfall
        let online = Decision(request, selected, absence: absence, mode: .online, now: now)
            .considering(parts, request, mode: .online, limit: request.upstream.daemon.limits.document, now: now)
        let offline = Decision(request, selected, absence: absence, mode: .offline, now: now)
            .considering(parts, request, mode: .offline, limit: request.upstream.daemon.limits.document, now: now)
        explanation.online = Explanation.Outcome(online, request, shortfall: shortfall, now: now)
        explanation.offline = Explanation.Outcome(offline, request, shortfall: shortfall, now: now)
        if incoming.live != nil {
            let isShown = selected?.mayBeShown(at: now) == true
            explanation.online = .events(isShown: isShown, isAsked: !request.directives.onlyIfCached)
            explanation.offline = .events(isShown: isShown, isAsked: false)
            explanation.upstream = .init(request, stored: selected, variants: [], now: now)
            return explanation
        }
        if case .ask = online, let backOff = fetches.backOffs.backOff(for: request, now: loop.now) {
            let isServed = selected?.maySubstitute(at: now, for: request) == true
            explanation.online = .backedOff(
                backOff,
                of: request,
                stored: isServed ? selected : nil,
                seconds: backOff.secondsLeft(at: loop.now),
                now: now
            )
            return explanation
        }
        if request.isForOrigin {
            explanation.online = .forOrigin
            explanation.upstream = .init(request.passed, stored: nil, variants: [], now: now)
            return explanation
        }
        switch online {
        case .ask(_, let stored):
            let others = request.asksForItself ? try await cache.variants(besides: request) : []
            explanation.upstream = .init(request, stored: stored, variants: others, now: now)
        case .serveAndRefresh(let ready, _):
            explanation.upstream = .init(request, stored: ready, variants: [], now: now)
        case .serve, .refuse: break
        }
        return explanation
    }

    /// The responses stored for the URL for other principals and contexts.
    private func others(
        than request: ProxyRequest,
        label: String,
        now: Int64
    ) async throws(StoreError) -> [Explanation.Other] {
        let documents = try await cache.store.documents(ofURL: request.key.url, upstream: request.key.upstream)
        return documents.compactMap { document in
            let differences = Explanation.differences(
                from: request.key.context,
                to: document.context,
                credential: document.principal == label ? nil : "another credential (\(document.principal))"
            )
            // A part is stored beside the whole, for the same requests.
            guard document.status != 206, !differences.isEmpty, let policy = StoredPolicy(bytes: document.policy) else {
                return nil
            }
            let applied = request.upstream.applying(policy, request.overrides)
            return Explanation.Other(
                principal: document.principal,
                context: document.context.split(separator: "\n").map(String.init),
                differences: differences,
                status: document.status,
                selection: VarySelection(bytes: document.variant)?.texts ?? [],
                age: applied.age(at: now),
                timeToLive: applied.timeToLive(at: now)
            )
        }
    }

    private static func outcome(ofUncacheable request: ProxyRequest) -> Explanation.Outcome {
        let method = request.message.method
        if !MethodFacts.isSafe(method), let problem = request.upstream.refusesWrite(request) { return .init(problem) }
        let forwarded = CacheStatus.forwarded(.method).text
        guard !MethodFacts.isSafe(method) else {
            return .init(action: "pass", cacheStatus: forwarded, reason: "\(method) is neither looked up nor stored")
        }
        let paths = request.suspects.joined(separator: ", ")
        return .init(
            action: "write",
            cacheStatus: forwarded,
            reason: "\(method) goes to the upstream; unless it fails, what is stored of \(paths) is dropped"
        )
    }
}

extension Decision {
    /// The outcome given the stored parts, as in `ProxyCore.servePartsOrAsk`.
    fileprivate func considering(
        _ parts: ReadyResponse?,
        _ request: ProxyRequest,
        mode: Mode,
        limit: Int,
        now: Int64
    ) -> Decision {
        guard let parts else { return self }
        var (request, known): (ProxyRequest, ReadyResponse?) = (request, nil)
        switch self {
        case .serve, .serveAndRefresh: return self
        case .ask(let reason, let stored): (request, known) = (request.asking(because: reason), stored)
        case .refuse: break
        }
        switch (PartDecision(request, stored: known, parts: parts, mode: mode, limit: limit, now: now), self) {
        case (.serve(let ready, let cacheUse), _): return .serve(ready, cacheUse)
        case (.ask, .refuse): return self
        case (.ask(let request, let stored, _), _): return .ask(request.reason, stored: stored)
        }
    }
}

extension Explanation.Asked {
    init(_ request: ProxyRequest, _ incoming: IncomingRequest, label: String, isKnown: Bool) {
        let upstream = request.upstream
        let match = upstream.rules.route(method: request.message.method, path: request.route, status: nil)
        self.init(
            method: request.message.method,
            upstream: upstream.name,
            sent: upstream.url(of: upstream.principal.redacted(url: request.target)),
            key: request.key.url,
            route: match.map { Explanation.Route(upstream.settings.routes[$0.index]) },
            principal: .init(
                label: label,
                isKnown: isKnown,
                fields: upstream.credentials(in: request.message).map(\.name)
            ),
            context: incoming.context.split(separator: "\n").map(String.init),
            view: request.view == .raw ? "raw" : "wire"
        )
    }
}

extension Explanation.Route {
    init(_ route: Configuration.Route) {
        path = route.declaration.path
        method = route.declaration.method
        model = route.body.map { $0.isList ? "[\($0.model)]" : $0.model }
    }
}

extension Explanation.Overrides {
    /// Nil if the route has no caching settings.
    init?(_ route: CacheOverrides) {
        guard route != CacheOverrides() else { return nil }
        cache = route.cache?.rawValue
        fresh = route.fresh.map(Units.text)
        stale = route.stale.map(Units.text)
        negative = route.negative.map(Units.text)
        varyIgnore = route.vary.ignore
        keySort = route.key.sort
        keyIgnore = route.key.ignore
    }
}

extension Explanation.Variant {
    init(_ variant: ResponseCache.SurveyedResponse, isSelected: Bool, now: Int64) {
        let (ready, response) = (variant.ready, variant.ready.response)
        let fields = response.fields
        self.init(
            isSelected: isSelected,
            status: response.status,
            selection: response.selection.texts,
            inMemory: variant.isInMemory,
            document: variant.document?.rawValue,
            form: "\(response.form)",
            isDirty: variant.isDirty,
            objects: variant.objects,
            bytes: ready.body.count,
            age: ready.policy.age(at: now),
            timeToLive: ready.policy.timeToLive(at: now),
            entityTag: fields.text("etag"),
            lastModified: fields.text("last-modified")
        )
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
    /// The differences between another request and this one in their cache keys.
    ///
    /// - Parameters:
    ///   - asked: the context of this request, and `other` that of the other.
    ///   - credential: the text for the other's credential, if it differs.
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
        let isOthers = note.principal != request.key.principal
        self.init(
            status: note.status,
            secondsAgo: max(0, now - note.time),
            rule: note.reason.rule,
            decidedBy: note.reason.decidedBy.rawValue,
            reason: note.reason.text,
            differences: Explanation.differences(
                from: request.key.context,
                to: note.context,
                credential: isOthers ? "another credential" : nil
            )
        )
    }
}

extension ProxiedUpstream {
    /// The names of a request's fields and parameters that identify the principal, with reasons.
    package func credentials(in request: Request) -> [(name: String, reason: String)] {
        var found: [(name: String, reason: String)] = []
        if let credential = settings.credential { found.append(("credential (\(credential.header))", "Larder's own")) }
        func add(_ name: String, _ reason: PrincipalFields.Reason?) {
            if let reason, !found.contains(where: { $0.name == name }) { found.append((name, "\(reason)")) }
        }
        for line in request.fields.lines { add(line.lowercasedName, principal.reason(forField: line.name)) }
        let target = Array(request.target.utf8)
        for (parameter, reason) in principal.parameters(in: target) {
            let name = FieldSyntax.lowercased(TargetNormaliser.unescaped(target[parameter.name]))
            add("?" + String(decoding: name, as: UTF8.self), reason)
        }
        return found
    }

    /// The names of its `OtherFields`.
    package func otherFields(in request: Request) -> [String] {
        var names: [String] = []
        for line in request.fields.withoutHopByHop().lines where role(of: line) == .other {
            if !names.contains(line.lowercasedName) { names.append(line.lowercasedName) }
        }
        return names
    }
}

extension ResponseCache {
    /// One variant of a document, from memory or disk.
    struct SurveyedResponse: Sendable {
        var ready: ReadyResponse
        var isInMemory: Bool
        /// Nil until it is committed.
        var document: DocumentID?
        var isDirty: Bool
        var objects: Int
        /// Why it cannot show the newest values; nil if it does, or if that is unknown.
        var shortfall: String?
    }

    /// All variants under a request's key, and the selected one, as a look-up would find them.
    ///
    /// Nothing is put into memory or marked as used.
    func survey(_ request: ProxyRequest, now: Int64) async throws(StoreError) -> (
        variants: [SurveyedResponse], selected: ReadyResponse?
    ) {
        var variants = (memory.responses(at: request.digest) ?? []).filter { $0.key == request.key }.map { ready in
            SurveyedResponse(
                ready: ready,
                isInMemory: true,
                document: ready.stored?.document,
                isDirty: !ready.isClean,
                objects: ready.stored?.objects.count ?? 0
            )
        }
        let documents = store.mayHave(request.digest) ? try await store.documents(at: request.key) : []
        for (document, response) in current(documents, at: request.digest, for: request) {
            let known = variants.firstIndex { $0.ready.response.selection == response.selection }
            // As for any request, a response in memory precedes the disk unless it is dirty.
            if let known, !variants[known].isDirty { continue }
            let variant = SurveyedResponse(
                ready: ReadyResponse(response, digest: request.digest, upstream: request.upstream, base: request.base),
                isInMemory: known != nil,
                document: document.id,
                isDirty: known != nil || response.form == .outdated,
                objects: document.objects.count,
                shortfall: document.form.shortfall
            )
            if let known { variants[known] = variant } else { variants.append(variant) }
        }
        if let held = inMemory(request, now: now), held.isClean { return (variants, held) }
        let selected = variants.map(\.ready).filter { $0.matches(request) }
            .max { $1.isPreferred(to: $0, for: request.directives, now: now) }
        return (variants, selected)
    }
}

extension StoredDocument.Form {
    /// Why the document cannot show the newest values.
    fileprivate var shortfall: String? { if case .outdated(let reason) = self { reason } else { nil } }
}
