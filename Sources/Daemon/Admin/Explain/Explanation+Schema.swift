import HTTPSemantics

extension Explanation: SchemaDescribed {
    /// The schema of the document (JSON Schema, as OpenAPI 3.1 has it).
    ///
    /// Members may be added; those that are here stay what they are.
    static let schema: JSONText = object(
        required: ["request", "variants", "others", "mode", "online", "offline"],
        [
            ("request", request), ("overrides", overrides), ("variants", list(variant)),
            ("others", list(other)), ("unstored", unstored), ("freshness", freshness),
            ("mode", text("The mode that the daemon is in.")), ("online", outcome), ("offline", outcome),
            ("upstream", expectations),
        ]
    )

    private static let request = object(
        required: ["method", "upstream", "sent", "key", "principal", "context", "view"],
        [
            ("method", text("The method.")), ("upstream", text("The upstream's name.")),
            ("sent", text("What is sent upstream, as spelled by the client; credentials are replaced.")),
            ("key", text("The URL that the answer is known by.")),
            (
                "route",
                object(
                    required: ["path"],
                    [
                        ("path", text("The pattern of the rule that applies.")),
                        ("method", text("The method that it is restricted to.")),
                        ("model", text("What its answers hold; in brackets for a list.")),
                    ]
                )
            ),
            (
                "principal",
                object(
                    required: ["label", "isKnown", "fields"],
                    [
                        ("label", text("`anonymous`, or `p-` and eight digits.")),
                        ("isKnown", flag("Whether anything was ever asked for on its behalf.")),
                        ("fields", list(text("A field or query parameter that makes it."))),
                    ]
                )
            ),
            ("context", list(text("A field that chooses the representation, with its value."))),
            ("view", text("`wire` or `raw`.")),
        ]
    )

    private static let overrides = object(
        required: ["varyIgnore", "keySort", "keyIgnore"],
        [
            ("cache", text("`never` or `force`.")), ("fresh", text("A duration such as `5m`.")),
            ("stale", text("A duration.")), ("negative", text("A duration.")),
            ("varyIgnore", list(text("A field that selects no variant."))),
            ("keySort", flag("Whether the order of parameters says nothing.")),
            ("keyIgnore", list(text("A parameter, or a pattern of names, that says nothing."))),
        ]
    )

    private static let variant = object(
        required: [
            "isSelected", "status", "selection", "inMemory", "form", "isDirty", "objects", "bytes", "age", "timeToLive",
        ],
        [
            ("isSelected", flag("Whether it is the one for this request.")), ("status", integer("Its status.")),
            ("selection", list(text("A field named by Vary, with the value it was selected by."))),
            ("inMemory", flag("Whether it is ready in memory.")),
            ("document", integer("The document in the store.")),
            ("form", text("`received`, `composed` or `outdated`.")),
            ("isDirty", flag("Whether newer values are known of what it shows.")),
            ("objects", integer("How many objects it shows.")), ("bytes", integer("The length of its body.")),
            ("age", integer("Seconds.")), ("timeToLive", integer("Seconds; negative once stale.")),
            ("entityTag", text("The ETag.")), ("lastModified", text("The Last-Modified.")),
        ]
    )

    private static let other = object(
        required: ["principal", "context", "differences", "status", "selection", "age", "timeToLive"],
        [
            ("principal", text("`anonymous`, or `p-` and eight digits.")),
            ("context", list(text("A field that chooses the representation, with its value."))),
            ("differences", list(text("In what a request that gets it differs from this one."))),
            ("status", integer("Its status.")),
            ("selection", list(text("A field named by Vary, with the value it was selected by."))),
            ("age", integer("Seconds.")), ("timeToLive", integer("Seconds; negative once stale.")),
        ]
    )

    private static let unstored = object(
        required: ["status", "secondsAgo", "rule", "decidedBy", "reason", "differences"],
        [
            ("status", integer("Its status.")), ("secondsAgo", integer("When it came.")),
            ("rule", text("Why it was not stored, in a word: `no-store`, `private`, `too-large` and so on.")),
            ("decidedBy", text("Whose rule: `upstream`, `config`, `request`, `standard` (HTTP) or `larder`.")),
            ("reason", text("The same as a sentence.")),
            ("differences", list(text("In what its request differed from this one."))),
        ]
    )

    private static let freshness = object(
        required: ["isFresh", "terms", "rules"],
        [
            ("isFresh", flag("Whether it may be used without asking.")),
            (
                "terms",
                list(
                    object(
                        required: ["name", "seconds", "source"],
                        [
                            ("name", text("What the number is.")), ("seconds", integer("The number.")),
                            ("source", text("Where it comes from.")),
                        ]
                    )
                )
            ),
            ("rules", list(text("A directive that bears on reuse."))),
        ]
    )

    private static let outcome = object(
        required: ["action", "cacheStatus", "reason"],
        [
            ("action", text("`answer`, `answer-and-refresh`, `ask`, `events`, `pass`, `write` or `refuse`.")),
            ("status", integer("What the client would see; absent where the upstream decides.")),
            ("cacheStatus", text("Cache-Status as far as it is known.")), ("reason", text("Why.")),
        ]
    )

    private static let expectations = object(
        required: ["conditions", "failure"],
        [
            ("conditions", list(text("A conditional field that would be sent."))),
            ("notModified", text("What a 304 would do.")),
            ("storing", text("Why nothing that the upstream sends will be stored; absent where it decides.")),
            ("failure", text("What a failure would do.")),
        ]
    )
}
