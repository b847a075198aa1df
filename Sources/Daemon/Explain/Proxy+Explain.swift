import Mapping
import Store

extension Proxy {
    /// What would be done with a request, by the functions that would do it.
    ///
    /// Nothing is fetched, nothing counts as used, nothing is taken into memory, and no principal comes to be.
    func explain(_ imagined: ImaginedRequest) async throws(StoreError) -> Explanation {
        let arrival = imagined.arrival
        let (principal, label) = try await principals.find(arrival.credentials, of: arrival.upstream)
        // Nobody's id: a principal that is not known has nothing.
        let request = arrival.live == nil ? imagined.request : imagined.request.plain
        let demand = Demand(
            request,
            arrival,
            principal: principal ?? -1,
            otherFields: principals.otherFields(of: arrival),
            hasher: cache.store.hasher
        )
        let now = now
        let (variants, selected) = try await cache.survey(demand, now: now)
        let mode = modes.current
        var explanation = Explanation(
            request: Explanation.Asked(demand, arrival, label: label, isKnown: principal != nil),
            overrides: Explanation.Overrides(demand.overrides),
            variants: variants.map { Explanation.Variant($0, isSelected: $0.ready === selected, now: now) }
                .sorted { $0.isSelected && !$1.isSelected },
            mode: mode.rawValue,
            online: Explanation.Outcome(action: "pass", cacheStatus: "", reason: ""),
            offline: Explanation.Outcome(.offline(demand.request.method))
        )
        guard MethodFacts.isAnswerable(demand.request.method) else {
            explanation.online = Self.outcome(ofUnanswerable: demand)
            return explanation
        }
        explanation.freshness = selected.map {
            Explanation.Freshness($0, of: demand.upstream, route: demand.overrides, now: now)
        }
        let absence = selected == nil ? await cache.absence(of: demand) : .uriMiss
        let parts = arrival.live == nil && !demand.isForOrigin ? try await cache.surveyParts(demand) : nil
        let shortfall = variants.first { $0.ready === selected }?.shortfall
        let online = Decision(demand, selected, absence: absence, mode: .online, now: now)
            .considering(parts, demand, mode: .online, limit: settings.limits.document, now: now)
        let offline = Decision(demand, selected, absence: absence, mode: .offline, now: now)
            .considering(parts, demand, mode: .offline, limit: settings.limits.document, now: now)
        explanation.online = Explanation.Outcome(online, demand, shortfall: shortfall, now: now)
        explanation.offline = Explanation.Outcome(offline, demand, shortfall: shortfall, now: now)
        if arrival.live != nil {
            let isShown = selected?.mayBeShown(at: now) == true
            explanation.online = .events(isShown: isShown, isAsked: !demand.directives.onlyIfCached)
            explanation.offline = .events(isShown: isShown, isAsked: false)
            explanation.upstream = .init(demand, stored: selected, variants: [], now: now)
            return explanation
        }
        if demand.isForOrigin {
            explanation.online = .forOrigin
            explanation.upstream = .init(demand.passed, stored: nil, variants: [], now: now)
            return explanation
        }
        switch online {
        case .ask(_, let stored):
            let others = demand.asksForItself ? try await cache.variants(besides: demand) : []
            explanation.upstream = .init(demand, stored: stored, variants: others, now: now)
        case .answerAndRefresh(let ready, _):
            explanation.upstream = .init(demand, stored: ready, variants: [], now: now)
        case .answer, .refuse: break
        }
        return explanation
    }

    private static func outcome(ofUnanswerable demand: Demand) -> Explanation.Outcome {
        let method = demand.request.method
        if !MethodFacts.isSafe(method), let problem = demand.upstream.refusesWrite(demand) { return .init(problem) }
        let forwarded = CacheStatus.forwarded(.method).text
        guard !MethodFacts.isSafe(method) else {
            return .init(action: "pass", cacheStatus: forwarded, reason: "\(method) is neither looked up nor stored")
        }
        let paths = demand.suspects.joined(separator: ", ")
        return .init(
            action: "write",
            cacheStatus: forwarded,
            reason: "\(method) goes to the upstream; unless it fails, what is stored of \(paths) is dropped"
        )
    }
}

extension Decision {
    /// What it becomes where something is stored in parts, as `Proxy.resort` has it.
    fileprivate func considering(
        _ parts: ReadyAnswer?,
        _ demand: Demand,
        mode: Mode,
        limit: Int,
        now: Int64
    ) -> Decision {
        guard let parts else { return self }
        var (demand, known): (Demand, ReadyAnswer?) = (demand, nil)
        switch self {
        case .answer, .answerAndRefresh: return self
        case .ask(let reason, let stored): (demand, known) = (demand.asking(because: reason), stored)
        case .refuse: break
        }
        switch (PartDecision(demand, stored: known, parts: parts, mode: mode, limit: limit, now: now), self) {
        case (.answer(let ready, let manner), _): return .answer(ready, manner)
        case (.ask, .refuse): return self
        case (.ask(let demand, let stored, _), _): return .ask(demand.reason, stored: stored)
        }
    }
}

extension Explanation.Asked {
    init(_ demand: Demand, _ arrival: Arrival, label: String, isKnown: Bool) {
        let upstream = demand.upstream
        let match = upstream.rules.route(method: demand.request.method, path: demand.route, status: nil)
        self.init(
            method: demand.request.method,
            upstream: upstream.name,
            sent: upstream.url(of: upstream.principal.redacted(url: demand.target)),
            key: demand.key.url,
            route: match.map { Explanation.Route(upstream.settings.routes[$0.index]) },
            principal: .init(
                label: label,
                isKnown: isKnown,
                fields: upstream.credentials(in: demand.request).map(\.name)
            ),
            context: arrival.context.split(separator: "\n").map(String.init),
            view: demand.view == .raw ? "raw" : "wire"
        )
    }
}

extension Explanation.Route {
    init(_ route: Settings.Route) {
        path = route.declaration.path
        method = route.declaration.method
        model = route.body.map { $0.isList ? "[\($0.model)]" : $0.model }
    }
}

extension Explanation.Overrides {
    /// Nil where the route says nothing.
    init?(_ route: Settings.Overrides) {
        guard route != Settings.Overrides() else { return nil }
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
    init(_ variant: AnswerCache.SurveyedAnswer, isSelected: Bool, now: Int64) {
        let (ready, answer) = (variant.ready, variant.ready.answer)
        let fields = answer.fields
        self.init(
            isSelected: isSelected,
            status: answer.status,
            selection: answer.selection.lines.filter { $0.name != OtherFields.name || $0.value != nil }.map { line in
                line.value.map { "\(line.name)=\(String(decoding: $0, as: UTF8.self))" } ?? line.name
            },
            inMemory: variant.isInMemory,
            document: variant.document,
            form: "\(answer.form)",
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

extension Upstream {
    /// The names of the fields and parameters of a request that say whose data it asks for, and why they do.
    func credentials(in request: Request) -> [(name: String, reason: String)] {
        var found: [(name: String, reason: String)] = []
        if let credential = settings.credential { found.append(("credential (\(credential.header))", "Larder's own")) }
        func add(_ name: String, _ reason: PrincipalFields.Reason?) {
            if let reason, !found.contains(where: { $0.name == name }) { found.append((name, "\(reason)")) }
        }
        for line in request.fields.lines { add(line.lowercasedName, principal.reason(forField: line.name)) }
        let target = Array(request.target.utf8)
        for parameter in URLParameters(target) {
            let name = FieldSyntax.lowercased(TargetNormaliser.unescaped(target[parameter.name]))
            add("?" + String(decoding: name, as: UTF8.self), principal.reason(forParameter: target[parameter.name]))
        }
        return found
    }

    /// The names of its `OtherFields`.
    func otherFields(in request: Request) -> [String] {
        var names: [String] = []
        for line in request.fields.withoutHopByHop().lines where role(of: line) == .other {
            if !names.contains(line.lowercasedName) { names.append(line.lowercasedName) }
        }
        return names
    }
}
