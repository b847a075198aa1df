import CachePolicy
import HTTPSemantics
import Mapping
import Yams

/// Which object a path names, and which other paths a write to it makes outdated.
extension RouteDraft {
    static let effects: [ConfigKey<RouteDraft>] = [
        ConfigKey(
            "object",
            .named(.text, name: "login"),
            example: "{ login: login }",
            "Members of the object whose values are in the path: the model's member, then the name of the capture."
        ) { node, draft, reader in
            guard let pairs = reader.pairs(node, wanted: "members of the model, each with a capture of the path") else {
                return
            }
            for (key, place, value) in pairs {
                guard let capture = reader.text(value, wanted: "the name of a capture") else { continue }
                draft.route.object.append(.init(key: key, capture: capture))
                draft.objectPlaces.append(place)
            }
        },
        .boolean(
            "deletes",
            \.route.deletes,
            """
            Whether a DELETE with a 2xx response deletes the object. false: it only changes the object, and its response is \
            read like that of any other write.
            """
        ),
        ConfigKey(
            "invalidates",
            .list(.text),
            fallback: "[]",
            example: "[\"users/{login}/**\", search/users]",
            """
            Patterns of further paths whose responses become outdated by a write (POST, PUT, PATCH, DELETE) to this one, for \
            all clients and queries; {name} is what the capture of that name matched.
            """
        ) { node, draft, reader in
            let patterns = reader.texts(node, wanted: "a list of path patterns in quotes") ?? []
            draft.invalidates = patterns.map { ($0.text, $0.place) }
        },
    ]

    mutating func checkPattern(_ reader: inout ConfigReader) {
        guard let path else { return }
        let pattern: RoutePattern
        do {
            pattern = try RoutePattern(path)
        } catch {
            reader.error(places["path"], error.description)
            return
        }
        for (binding, place) in zip(route.object, objectPlaces)
        where !pattern.names.contains(where: { $0.name == binding.capture }) {
            let known = pattern.names.map(\.name)
            let meant =
                known.isEmpty
                ? "it has none; write {\(binding.capture)} there" : "it has \(known.joined(separator: ", "))"
            reader.error(place, "\"\(path)\" has no capture \"\(binding.capture)\"; \(meant)")
        }
        if !route.deletes, let method = route.declaration.method, method != "DELETE" {
            reader.error(
                places["deletes"],
                "\"deletes\" applies to DELETE, but the rule to \(method); remove \"method\" or \"deletes\""
            )
        }
        checkInvalidated(by: pattern, &reader)
    }

    /// Reads the patterns of what a write invalidates, whose captures are those of the route.
    private mutating func checkInvalidated(by pattern: RoutePattern, _ reader: inout ConfigReader) {
        if let place = invalidates.first?.place {
            if let method = route.declaration.method, MethodFacts.isSafe(method) {
                reader.error(
                    place,
                    "\"invalidates\" applies to writes, but the rule to \(method); remove \"method\" or \"invalidates\""
                )
            }
            if let status, !status.mayBeSuccess {
                reader.error(
                    place,
                    "a write with such a response has changed nothing, so nothing is invalidated; remove \"status\" or \"invalidates\""
                )
            }
        }
        for (text, place) in invalidates {
            do {
                let invalidated = try RoutePattern(text)
                let known = pattern.names.map(\.name)
                if let unknown = invalidated.names.first(where: { !known.contains($0.name) })?.name {
                    let meant = known.isEmpty ? "it has none" : "it has \(known.joined(separator: ", "))"
                    reader.error(
                        place,
                        "\"\(path ?? "")\" has no capture \"\(unknown)\"; \(meant). Write \"*\" for any component"
                    )
                }
                route.invalidates.append(invalidated)
            } catch {
                reader.error(place, error.description)
            }
        }
    }
}

/// How responses are cached, where that is not as the upstream says.
extension RouteDraft {
    private static let lifetimes: ClosedRange<Duration> = .zero ... .forever

    static let caching: [ConfigKey<RouteDraft>] = [
        .optionalSeconds(
            "fresh",
            \.route.overrides.fresh,
            in: lifetimes,
            example: "5m",
            "How long a response is fresh, in place of what the upstream says."
        ),
        .optionalSeconds(
            "stale",
            \.route.overrides.stale,
            in: lifetimes,
            example: "1d",
            "How long after that it is still served while a new one is fetched in the background."
        ),
        ConfigKey(
            "cache",
            .choice(CacheOverrides.Cache.allCases.map(\.rawValue)),
            example: "force",
            "never: nothing is stored. force: responses are stored and used even if the upstream forbids it."
        ) { node, draft, reader in
            let words = CacheOverrides.Cache.allCases.map(\.rawValue)
            draft.route.overrides.cache = reader.choice(node, of: words).flatMap(CacheOverrides.Cache.init)
        },
        .optionalSeconds(
            "negative",
            \.route.overrides.negative,
            in: lifetimes,
            example: "30s",
            "How long a response with 404, 405, 410, 414 or 501 is fresh, if it does not say so itself."
        ),
        .section("vary", \.route.overrides.vary, "How the response's Vary is treated."),
        .section(
            "key",
            \.route.overrides.key,
            "Which spellings of a URL share one stored response. The upstream gets the URL as the client wrote it."
        ),
    ]

    /// Reports the keys on caching that leave others without effect.
    func checkOverrides(_ reader: inout ConfigReader) {
        if route.overrides.cache == .never {
            if let place = places["fresh"] ?? places["stale"] ?? places["negative"] {
                reader.error(
                    place,
                    "\"cache: never\" stores nothing that could be fresh or stale; remove one of the two"
                )
            }
            if let place = places["vary"] ?? places["key"] {
                reader.error(place, "\"cache: never\" stores nothing that could be found again; remove one of the two")
            }
        }
        if route.overrides.cache == .force, route.overrides.fresh == nil, let place = places["stale"] {
            reader.error(
                place,
                "\"cache: force\" alone keeps responses fresh for ever, so that they are never stale; add \"fresh\" with a duration"
            )
        }
        let concernsCaching = ["fresh", "stale", "cache", "negative", "vary", "key"].first { places[$0] != nil }
        if let name = concernsCaching, let method = route.declaration.method, !MethodFacts.isAnswerable(method) {
            reader.error(
                places[name],
                "\"\(name)\" applies to GET, but the rule to \(method); remove \"method\" or \"\(name)\""
            )
        }
    }
}

extension CacheOverrides.Vary: ConfigSection {
    static let keys: [ConfigKey<CacheOverrides.Vary>] = [
        .texts(
            "ignore",
            \.ignore,
            example: "[User-Agent, Origin]",
            "Request fields to ignore in Vary: they select no variant of the response.",
            check: FieldName.complaint
        )
    ]
}

extension CacheOverrides.Key: ConfigSection {
    static let keys: [ConfigKey<CacheOverrides.Key>] = [
        .boolean(
            "sort",
            \.sort,
            "Whether the order of query parameters is ignored. Parameters with the same name keep theirs."
        ),
        .texts(
            "ignore",
            \.ignore,
            example: "[\"utm_*\", fbclid]",
            "Query parameters that make no difference to the response; \"*\" stands for any text. They are still sent upstream.",
            check: ParameterName.complaint
        ),
    ]
}
