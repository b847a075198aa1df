import CachePolicy
import HTTPSemantics
import Mapping

extension ConfigDraft {
    /// Checks the models, routes and errors of one upstream.
    func validateMapping(of upstream: UpstreamDraft, _ reader: inout ConfigReader) {
        let models = models(for: upstream)
        validateModelNames(models, &reader)
        let names = Set(models.map(\.declaration.name))
        for model in models { validateRelations(of: model, among: names, &reader) }
        validateDeclarations(of: models, &reader)
        let byName = Dictionary(models.map { ($0.declaration.name, $0) }) { first, _ in first }
        for model in models { validateKeys(of: model, among: byName, &reader) }
        for model in models { validateSurroundings(of: model, in: upstream, &reader) }
        for rules in [upstream.routes + routes, upstream.errors + errors] {
            for rule in rules { validateRule(rule, byName, &reader) }
            validateTable(rules, &reader)
        }
        warnOfUnnamedWrites(in: upstream.routes + routes, &reader)
    }

    /// Warns of writes whose last capture, at the end of the path or before an action, names no object: what they change is shown as
    /// it was.
    private func warnOfUnnamedWrites(in rules: [RouteDraft], _ reader: inout ConfigReader) {
        let retrievals = rules.filter { $0.model != nil && ["GET", nil].contains($0.route.declaration.method) }
            .compactMap { rule in rule.path.flatMap { try? RoutePattern($0) }.map { (pattern: $0, rule: rule) } }
        for write in rules where write.model == nil && write.route.read == nil {
            guard let method = write.route.declaration.method, !MethodFacts.isSafe(method),
                let pattern = write.path.flatMap({ try? RoutePattern($0) }), let capture = pattern.names.last,
                capture.position >= pattern.components.count - 2
            else { continue }
            let path = pattern.sample
            let isKnown = retrievals.contains { $0.pattern.matches(path: path) }
            let isAction = retrievals.contains {
                $0.rule.model?.arity == .one && !$0.pattern.names.isEmpty && $0.pattern.isParent(of: path)
            }
            guard !isKnown, !isAction else { continue }
            reader.once(
                write.places["path"] ?? write.place,
                "this write names no object, so objects that it changes are shown as they were; say which one it changes, with "
                    + "\"model\" and \"object\", such as { id: \(capture.name) }",
                .warning
            )
        }
    }

    private func validateModelNames(_ models: [ModelDraft], _ reader: inout ConfigReader) {
        var known: [String: [ModelDraft]] = [:]
        for model in models {
            let others = known[model.declaration.name.lowercased()] ?? []
            known[model.declaration.name.lowercased(), default: []].append(model)
            for other in others {
                let pair = [model, other].sorted { ($0.place ?? .start) < ($1.place ?? .start) }
                let (first, second) = (pair[0].declaration.name, pair[1].declaration.name)
                let place = reader.sources.words(for: pair[0].place, seenFrom: pair[1].place)
                reader.once(
                    pair[1].place,
                    first == second
                        ? "model \"\(second)\" is declared already, in \(place)"
                        : "model \"\(second)\" differs only in capitals from \"\(first)\", in \(place); rename one"
                )
            }
        }
    }

    private func validateRelations(of model: ModelDraft, among names: Set<String>, _ reader: inout ConfigReader) {
        for property in model.properties {
            warnOfModelAsMember(property, among: names, &reader)
            guard let target = property.declaration.relation?.model, !names.contains(target) else { continue }
            reader.once(property.modelPlace, Self.unknownModel(target, names))
        }
        for choice in model.choicePlaces where !names.contains(choice.model) {
            reader.once(choice.place, Self.unknownModel(choice.model, names))
        }
        if let base = model.declaration.base, !names.contains(base) {
            reader.once(model.places["base"], Self.unknownModel(base, names))
        }
    }

    /// Warns of `author: User`, which reads a member called User.
    private func warnOfModelAsMember(
        _ property: PropertyDraft,
        among names: Set<String>,
        _ reader: inout ConfigReader
    ) {
        let (name, from) = (property.declaration.name, property.declaration.from)
        guard property.isNamed, property.declaration.relation == nil, from != name, names.contains(from) else { return }
        reader.once(
            property.place,
            "\"\(from)\" is read as the name of a member; for an object of the model write \(name): { model: \(from) }",
            .warning
        )
    }

    /// Reports the mapping's own errors, in all models at once.
    private func validateDeclarations(of models: [ModelDraft], _ reader: inout ConfigReader) {
        let names = Set(models.map(\.declaration.name))
        let declarations = models.map { model in
            // References to unknown models have already been reported.
            var declaration = model.declaration
            declaration.properties.removeAll { property in property.relation.map { !names.contains($0.model) } ?? false
            }
            declaration.choices.removeAll { !names.contains($0.model) }
            if let base = declaration.base, !names.contains(base) { declaration.base = nil }
            return declaration
        }
        for mistake in Models.mistakes(in: declarations) {
            // Names that differ only in case are reported at their own place.
            if case .duplicateModel = mistake.error { continue }
            let model = models[mistake.model]
            let property = mistake.property.map { declarations[mistake.model].properties[$0].name }
            let place = property.flatMap { name in model.properties.last { $0.declaration.name == name }?.place }
            reader.once(place ?? model.place(of: mistake.error), mistake.error.description)
        }
    }

    /// Reports `@url.NAME` and `@query.NAME` if they never have a value.
    private func validateSurroundings(of model: ModelDraft, in upstream: UpstreamDraft, _ reader: inout ConfigReader) {
        let rules = routes + errors + upstreams.flatMap { $0.routes + $0.errors }
        let captures = Set(rules.flatMap { $0.path.flatMap { try? RoutePattern($0) }?.names.map(\.name) ?? [] })
        let bodies = (routes + upstreams.flatMap(\.routes)).filter { $0.model != nil }
        func complaint(about source: String) -> String? {
            switch ContextValue(source) {
            case .capture(let name) where !captures.contains(name):
                "no path of a route captures {\(name)}, so \"\(source)\" has no value; write {\(name)} in the path"
            case .query(let name) where PrincipalWords.count(parameter: name, in: upstream.settings.principal):
                "the parameter \(name) is a credential by \"principal\", so \"\(source)\" has no value; "
                    + "use another source, or add \"-?\(name)\" to \"principal\""
            case .query(let name) where !bodies.isEmpty && bodies.allSatisfy({ ignores(name, $0) }):
                "every route ignores the parameter \(name), so \"\(source)\" has no value; "
                    + "remove it from \"ignore\" of \"key\""
            default: nil
            }
        }
        func check(_ sources: [String], _ place: Place?) {
            for complaint in sources.compactMap(complaint) { reader.once(place ?? model.place, complaint) }
        }
        check(model.declaration.identity, model.places["identity"])
        check(model.declaration.keys, model.places["keys"])
        for property in model.properties {
            check([property.declaration.from] + property.declaration.parts.map(\.from), property.place)
        }
    }

    /// Whether a rule leaves a query parameter out of the URL.
    private func ignores(_ name: String, _ rule: RouteDraft) -> Bool {
        rule.route.overrides.key.ignore.contains { Glob($0).matches(Array(name.utf8)) }
    }

    private func validateRule(_ rule: RouteDraft, _ models: [String: ModelDraft], _ reader: inout ConfigReader) {
        for (name, place) in rule.also.map({ ($0.model.name, $0.model.place) }) + (rule.envelope.map { [$0] } ?? [])
        where models[name] == nil { reader.once(place, Self.unknownModel(name, models.keys)) }
        warnOfTwins(in: rule, &reader)
        if let envelope = rule.envelope, rule.root == nil, let arity = rule.model?.arity, arity != .one {
            reader.once(
                envelope.place,
                "\"envelope\" is for the members around what \"root\" leads to, but the rule has no \"root\"; add it, "
                    + "or remove \"envelope\"",
                .warning
            )
        }
        guard let name = rule.model?.name else {
            if rule.places["object"] != nil, rule.places["model"] == nil {
                reader.once(
                    rule.places["object"],
                    "\"object\" says which object of a model the path names, but the rule names no model; add \"model\""
                )
            }
            return
        }
        guard let model = models[name]
        else { return reader.once(rule.model?.place, Self.unknownModel(name, models.keys)) }
        guard !rule.route.object.isEmpty else { return }
        if rule.route.body?.arity != .one {
            reader.once(
                rule.places["object"],
                "\"object\" is for one object, but the body is a list; write \"model: \(name)\" or remove \"object\""
            )
        }
        if !Self.hasIdentity(model, among: models) {
            return reader.once(
                rule.places["object"],
                "objects of \"\(name)\" have no identity, so no path names one; remove \"object\", or give the model an identity"
            )
        }
        let known = Self.lineage(of: model, among: models).flatMap(\.members).uniqued
        for (binding, place) in zip(rule.route.object, rule.objectPlaces) where !known.contains(binding.key) {
            let list = known.isEmpty ? "" : "; known are \(known.joined(separator: ", "))"
            reader.once(place, "\"\(binding.key)\" is not an identity, key or property of model \"\(name)\"\(list)")
        }
    }

    /// Warns of one model under a key and its plural, alone and as a list: if a body has both, both are used.
    private func warnOfTwins(in rule: RouteDraft, _ reader: inout ConfigReader) {
        guard let main = rule.model else { return }
        for other in rule.also
        where other.model.name == main.name && (other.model.arity == .one) != (main.arity == .one)
            && Self.arePluralAndSingular(rule.root ?? "", other.root)
        {
            reader.once(
                other.model.place,
                "\"\(main.name)\" is declared twice for this body, alone and as a list; if a body has both, both are used",
                .warning
            )
        }
    }

    private static func arePluralAndSingular(_ one: String, _ other: String) -> Bool {
        let (short, long) = one.count < other.count ? (one, other) : (other, one)
        // Forms such as story and stories differ in the last letter, too.
        return !short.isEmpty && long.count > short.count && long.hasPrefix(short.dropLast())
    }

    private func validateTable(_ rules: [RouteDraft], _ reader: inout ConfigReader) {
        let rules = rules.filter { $0.path != nil }
        for (index, error) in RouteTable.mistakes(in: rules.map(\.route.declaration)) {
            if case .unreachableRoute = error { reader.once(rules[index].places["method"], error.description) }
            guard case .duplicateRoute(let path, let first, _) = error else { continue }
            let pair = [rules[first], rules[index]].sorted { ($0.place ?? .start) < ($1.place ?? .start) }
            let hasQuery = !rules[index].route.declaration.query.isEmpty
            let others = reader.sources.words(for: pair[0].place, seenFrom: pair[1].place)
            let problem =
                "\"\(path)\" has the same pattern, method and status as the rule in \(others)"
                + (hasQuery ? ", and one request can have the query of both" : "")
            reader.once(
                pair[1].places["path"],
                "\(problem), so it is unclear which of the two applies; remove one, or give one "
                    + (hasQuery ? "a further parameter" : "a method, status or query of its own")
            )
        }
    }

    static func unknownModel(_ name: String, _ names: some Collection<String>) -> String {
        if let meant = Suggestion.nearest(to: name, among: names) {
            return "there is no model \"\(name)\"; did you mean \"\(meant)\"?"
        }
        return "there is no model \"\(name)\"; declare it under \"models\""
    }
}

extension ModelDraft {
    /// The names that a route's `object:` may use, from the model's own declaration.
    fileprivate var members: [String] { declaration.identity + declaration.keys + declaration.properties.map(\.name) }

    /// The place of the declaration that an error concerns.
    fileprivate func place(of error: MappingError) -> Place? {
        func property(_ name: String) -> Place? { properties.last { $0.declaration.name == name }?.place }
        func use(_ name: String) -> Place? {
            places[name] ?? property(name)
                ?? properties.first { name.hasSuffix($0.declaration.name) }?.place
        }
        let found: Place? =
            switch error {
            case .invalidName(let kind, let name, _): kind == "property" ? property(name) : place
            case .duplicateProperty(let name, _, _): property(name)
            case .sameKeyPath(_, let properties, _): properties.last.flatMap(property)
            case .unknownModel(_, let name, _): property(name)
            case .invalidKeyPath(_, let name, _), .crossesRelation(_, let name, _, _, _), .namedTwice(_, let name, _):
                use(name)
            case .identityIsList: places["identity"]
            default: place
            }
        return found ?? place
    }
}

extension [String] {
    /// Each text once, in order of first occurrence.
    fileprivate var uniqued: [String] {
        var seen: Set<String> = []
        return filter { seen.insert($0).inserted }
    }
}

extension RoutePattern {
    /// A path that it matches, with digits for whatever it leaves open.
    fileprivate var sample: String {
        components.map { component in
            switch component {
            case .literal(let text): "/\(text)"
            case .digits(let suffix), .any(let suffix): "/1\(suffix)"
            case .rest: "/1"
            }
        }.joined()
    }

    /// Whether it matches the path above another.
    fileprivate func isParent(of path: String) -> Bool {
        path.lastIndex(of: "/").map { matches(path: String(path[..<$0])) } ?? false
    }
}
