import CachePolicy
import HTTPSemantics
import Mapping

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
