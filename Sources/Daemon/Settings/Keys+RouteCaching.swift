import CachePolicy
import HTTPSemantics
import Mapping

/// How answers are cached, where that is not as the upstream says.
extension RouteDraft {
    private static let lifetimes: ClosedRange<Duration> = .zero ... .forever

    static let caching: [ConfigKey<RouteDraft>] = [
        .optionalSeconds(
            "fresh",
            \.route.overrides.fresh,
            in: lifetimes,
            example: "5m",
            "How long an answer is fresh, in place of what the upstream says."
        ),
        .optionalSeconds(
            "stale",
            \.route.overrides.stale,
            in: lifetimes,
            example: "1d",
            "How long after that it is still served while a new one is fetched behind it."
        ),
        ConfigKey(
            "cache",
            .choice(CacheOverrides.Cache.allCases.map(\.rawValue)),
            example: "force",
            "never: nothing is stored. force: stored and used even where the upstream forbids it."
        ) { node, draft, reader in
            let words = CacheOverrides.Cache.allCases.map(\.rawValue)
            draft.route.overrides.cache = reader.choice(node, of: words).flatMap(CacheOverrides.Cache.init)
        },
        .optionalSeconds(
            "negative",
            \.route.overrides.negative,
            in: lifetimes,
            example: "30s",
            "How long an answer of absence (404, 405, 410, 414, 501) is fresh, where it does not say so itself."
        ),
        .section("vary", \.route.overrides.vary, "What becomes of the answer's Vary."),
        .section(
            "key",
            \.route.overrides.key,
            "Which spellings of a URL have one answer; upstream goes what the client wrote."
        ),
    ]

    /// Says which of the words on caching leave nothing for others to say.
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
                "\"cache: force\" alone keeps answers fresh for ever, never stale; add \"fresh\" for how long"
            )
        }
        let concernsCaching = ["fresh", "stale", "cache", "negative", "vary", "key"].first { places[$0] != nil }
        if let name = concernsCaching, let method = route.declaration.method, !MethodFacts.isAnswerable(method) {
            reader.error(
                places[name],
                "\"\(name)\" speaks of answers to GET, but the rule of \(method); remove \"method\" or \"\(name)\""
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
            "Request fields that select no variant of the answer, though its Vary names them.",
            check: FieldName.complaint
        )
    ]
}

extension CacheOverrides.Key: ConfigSection {
    static let keys: [ConfigKey<CacheOverrides.Key>] = [
        .boolean(
            "sort",
            \.sort,
            "Whether query parameters may come in any order. Those of one name keep theirs."
        ),
        .texts(
            "ignore",
            \.ignore,
            example: "[\"utm_*\", fbclid]",
            "Query parameters that make no difference to the answer; \"*\" stands for any text. They go upstream all the same.",
            check: ParameterName.complaint
        ),
    ]
}
