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
        for model in models { validateCaptures(of: model, &reader) }
        for rules in [upstream.routes + routes, upstream.errors + errors] {
            for rule in rules { validateRule(rule, byName, &reader) }
            validateTable(rules, &reader)
        }
    }

    private func validateModelNames(_ models: [ModelDraft], _ reader: inout ConfigReader) {
        var known: [String: [ModelDraft]] = [:]
        for model in models {
            let others = known[model.declaration.name.lowercased()] ?? []
            known[model.declaration.name.lowercased(), default: []].append(model)
            for other in others {
                let first = min(model, other), second = max(model, other)
                reader.once(
                    second.place,
                    first.declaration.name == second.declaration.name
                        ? "model \"\(second.declaration.name)\" is declared already, in \(reader.sources.words(for: first.place, seenFrom: second.place))"
                        : "model \"\(second.declaration.name)\" differs only in capitals from "
                            + "\"\(first.declaration.name)\", in \(reader.sources.words(for: first.place, seenFrom: second.place)); rename one"
                )
            }
        }
    }

    private func validateRelations(of model: ModelDraft, among names: Set<String>, _ reader: inout ConfigReader) {
        for property in model.properties {
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

    /// Reports `@url.NAME` if no path of any route captures this name.
    private func validateCaptures(of model: ModelDraft, _ reader: inout ConfigReader) {
        let rules = routes + errors + upstreams.flatMap { $0.routes + $0.errors }
        let known = Set(rules.flatMap { $0.path.flatMap { try? RoutePattern($0) }?.names.map(\.name) ?? [] })
        func check(_ sources: [String], _ place: Place?) {
            for case .capture(let name) in sources.compactMap({ ContextValue($0) }) where !known.contains(name) {
                reader.once(
                    place ?? model.place,
                    "no path of a route captures {\(name)}, so \"@url.\(name)\" has no value; write {\(name)} in the path"
                )
            }
        }
        check(model.declaration.identity, model.places["identity"])
        check(model.declaration.keys, model.places["keys"])
        for property in model.properties {
            check([property.declaration.from] + property.declaration.parts.map(\.from), property.place)
        }
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
        guard let model = models[name] else {
            return reader.once(rule.model?.place, Self.unknownModel(name, models.keys))
        }
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

    private static func unknownModel(_ name: String, _ names: some Collection<String>) -> String {
        if let meant = Suggestion.nearest(to: name, among: names) {
            return "there is no model \"\(name)\"; did you mean \"\(meant)\"?"
        }
        return "there is no model \"\(name)\"; declare it under \"models\""
    }
}

extension ModelDraft: Comparable {
    static func < (left: ModelDraft, right: ModelDraft) -> Bool { (left.place ?? .start) < (right.place ?? .start) }

    static func == (left: ModelDraft, right: ModelDraft) -> Bool { left.place == right.place }

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

extension Place {
    static let start = Place(line: 0, column: 0)
}
