import HTTPSemantics

/// What programs may rely on.
extension WhyResponse: SchemaDescribed {
    /// Members may be added; those that are here stay what they are.
    static let schema: JSONText = object(
        required: ["objects"],
        [
            (
                "objects",
                list(
                    object(
                        required: ["upstream", "principal", "context", "model", "id", "members", "documents"],
                        [
                            ("upstream", text("The upstream's name.")), ("principal", text("The principal's label.")),
                            ("context", text("The representation that was asked for.")), ("model", text("The model.")),
                            ("id", text("The identity.")), ("observed", text("When it was last observed (RFC 3339).")),
                            ("mark", markSchema), ("members", list(memberSchema)), ("documents", list(showingSchema)),
                            ("next", text("Where `/documents` of this object goes on.")),
                        ]
                    )
                )
            )
        ]
    )

    static let documentsSchema: JSONText = object(
        required: ["documents"],
        [("documents", list(showingSchema)), ("next", text("What to give as `after` for what comes then."))]
    )

    private static let markSchema = object(
        required: ["kind", "at", "age", "by", "superseded", "reason"],
        [
            ("kind", text("`deleted`, or `unknown`: a write happened, and nobody told what it made of the object.")),
            ("at", text("Since when (RFC 3339): of a write its end, of a read its start.")),
            ("age", integer("Seconds since then.")),
            (
                "by",
                [
                    "description":
                        "The request by which that is known, as `method` and `url`; method is null for a write under way when Larder ended; null where it is no longer known."
                ]
            ),
            (
                "superseded",
                flag("Whether what is told here was observed after that; only older answers are concerned then.")
            ),
            ("reason", text("The same as a sentence.")),
        ]
    )

    private static let memberSchema = object(
        required: ["pointer", "properties", "standing", "merge", "moves"],
        [
            ("pointer", text("Where it stands in the upstream's JSON (RFC 6901).")),
            ("properties", list(text("A declared property that is read from there."))),
            (
                "standing",
                text("`known`, `doubt`, `gathered`, `quarantined`, `outdated`, `local` or `undeclared`.")
            ),
            ("reason", text("Why it stands so.")), ("merge", text("How new values meet known ones, as in the config.")),
            ("moves", flag("Whether it moves into other responses.")),
            ("value", ["description": "The settled value; objects in it are shown by their identities."]),
            ("from", sourceSchema),
            (
                "replaced",
                object(
                    required: ["value", "rule", "reason"],
                    [
                        ("value", ["description": "What the settled value replaced."]),
                        ("rule", text("By which rule: `C2`, `S3`, `W1`, `S1` or `C4`.")),
                        ("reason", text("The rule as a sentence.")),
                    ]
                )
            ),
            ("challenger", object(required: ["value", "from"], sightingMembers)),
            ("quarantined", list(object(required: ["value", "from"], sightingMembers))),
            (
                "gathered",
                list(
                    object(
                        required: ["value", "at"],
                        [("value", ["description": "A part."]), ("at", text("When it was observed."))]
                    )
                )
            ),
        ]
    )

    private static let sightingMembers: [(name: String, value: JSONText)] = [
        ("value", ["description": "As that response shows it."]), ("from", sourceSchema),
    ]

    private static let sourceSchema = object(
        required: ["method", "url", "stored", "at", "age"],
        [
            ("method", ["description": "The request's method; null where it is no longer known."]),
            ("url", ["description": "Path and query, credentials replaced; null where it is no longer known."]),
            ("stored", flag("Whether the response is still in the store.")),
            ("at", text("When the value was last seen (RFC 3339).")), ("age", integer("Seconds since then.")),
        ]
    )

    private static let showingSchema = object(
        required: [
            "upstream", "principal", "context", "url", "status", "objects", "bytes", "received", "age", "shows",
        ],
        [
            ("upstream", text("The upstream's name.")), ("principal", text("The principal's label.")),
            ("context", text("The representation that was asked for.")), ("url", text("Path and query.")),
            ("status", integer("The status code.")), ("objects", integer("How many objects it shows.")),
            ("bytes", integer("The length of the body received.")), ("received", text("When it had come (RFC 3339).")),
            ("age", integer("Seconds since the moment that it speaks of.")),
            (
                "shows",
                text(
                    "`newest`; `composed`: the newest is put in at the next hit; `outdated`: it cannot be, and the next request is a miss."
                )
            ),
            ("reason", text("Why it is outdated.")),
        ]
    )
}
