import Mapping
import Store

/// Where what is known of an object comes from, as programs are told.
struct WhyAnswer {
    private let row: ObjectRow
    private let why: ObjectWhy
    private let now: Int64

    init(_ row: ObjectRow, _ why: ObjectWhy, now: Int64) {
        self.row = row
        self.why = why
        self.now = now
    }

    var document: JSONText {
        var members = row.ownMembers
        members.append(("members", .array(why.members.map(member))))
        members.append(("documents", .array(why.documents.rows.map { Self.document(of: $0, now: now) })))
        if let next = why.documents.next { members.append(("next", .string("\(row.id)-\(next)"))) }
        return .object(members)
    }

    // MARK: Members

    private func member(_ member: Provenance.Member) -> JSONText {
        var members: [(name: String, value: JSONText)] = [
            ("pointer", .string(member.pointer)), ("properties", .array(member.properties.map { .string($0) })),
            ("standing", .string(member.standing.rawValue)), ("merge", .string(member.policy.name)),
            ("moves", .bool(member.moves)),
        ]
        if let value = member.value { members.append(("value", .raw(value))) }
        switch member.standing {
        case .known, .local, .undeclared:
            if let first = member.sightings.first { members.append(("from", source(first.observation))) }
            let others = member.sightings.dropFirst().map { source($0.observation) }
            if !others.isEmpty { members.append(("also", .array(others))) }
        case .disputed, .contradicted:
            members.append(("candidates", .array(member.sightings.map { sighting($0) })))
        case .gathered:
            let items = member.items.map { item -> JSONText in
                ["value": .raw(item.value), "at": .string(StoreTime.text(item.time))]
            }
            members.append(("gathered", .array(items)))
        case .quarantined: break
        }
        if let reason = Self.reason(member.standing) { members.append(("reason", .string(reason))) }
        if !member.overruled.isEmpty {
            let overruled = member.overruled.map { old in
                sighting(old.sighting, [("rule", old.rule.map { .string($0.rawValue) } ?? .null)])
            }
            members.append(("overruled", .array(overruled)))
        }
        if !member.quarantined.isEmpty {
            members.append(("quarantined", .array(member.quarantined.map { sighting($0) })))
        }
        return .object(members)
    }

    private func sighting(
        _ sighting: Provenance.Sighting,
        _ more: [(name: String, value: JSONText)] = []
    ) -> JSONText {
        .object([("value", .raw(sighting.value)), ("from", source(sighting.observation))] + more)
    }

    private func source(_ observation: Observation) -> JSONText {
        let source = why.sources[observation.sequence]
        let time = observation.kind == .write ? observation.end : observation.start
        return [
            "method": source.map { .string($0.method) } ?? .null, "url": source.map { .string($0.url) } ?? .null,
            "stored": .bool(source?.isStored ?? false), "kind": .string(observation.kind.name),
            "start": .string(StoreTime.text(observation.start)), "end": .string(StoreTime.text(observation.end)),
            "age": .integer(max(0, now - time) / 1_000_000),
        ]
    }

    private static func reason(_ standing: Provenance.Standing) -> String? {
        switch standing {
        case .known, .gathered: nil
        case .disputed:
            "the answers that show it overlapped in time and disagree; each document keeps its own until a later answer decides"
        case .contradicted:
            "one answer shows the object several times and disagrees with itself; each place keeps its own"
        case .quarantined: "no value that passes the checks is known"
        case .local: "declared local: it belongs to its answer, and each document keeps its own"
        case .undeclared: "not declared: it belongs to its answer, and each document keeps its own"
        }
    }

    // MARK: Documents

    /// - Parameter now: the store's clock, in µs.
    static func document(of showing: ShowingDocument, now: Int64) -> JSONText {
        let row = showing.row
        var members: [(name: String, value: JSONText)] = [
            ("upstream", .string(row.upstream)), ("principal", .string(row.principal)),
            ("context", .string(row.context)), ("url", .string(row.url)), ("status", .integer(row.status)),
            ("objects", .integer(row.objects)), ("bytes", .integer(row.bytes)),
            ("received", .string(StoreTime.text(row.end))), ("age", .integer(max(0, now - row.start) / 1_000_000)),
        ]
        switch showing.appearance {
        case .newest: members.append(("shows", "newest"))
        case .composed: members.append(("shows", "composed"))
        case .outdated(let reason):
            members.append(("shows", "outdated"))
            members.append(("reason", .string(reason)))
        }
        return .object(members)
    }
}

extension Provenance.Member {
    /// How people may name it: by a property, by its key path, or by its pointer with or without the slash.
    var spellings: [String] {
        let path = String(pointer.dropFirst())
        return properties + [pointer, path, path.replacing("/", with: ".")]
    }
}

extension Observation.Kind {
    /// As people read it.
    var name: String {
        switch self {
        case .detail: "detail"
        case .list: "list"
        case .write: "write"
        }
    }
}

// MARK: Schema

extension WhyAnswer: SchemaDescribed {
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
                            ("members", list(memberSchema)), ("documents", list(showingSchema)),
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

    private static let memberSchema = object(
        required: ["pointer", "properties", "standing", "merge", "moves"],
        [
            ("pointer", text("Where it stands in the upstream's JSON (RFC 6901).")),
            ("properties", list(text("A declared property that is read from there."))),
            (
                "standing",
                text("`known`, `disputed`, `contradicted`, `gathered`, `quarantined`, `local` or `undeclared`.")
            ),
            ("reason", text("Why it stands so.")), ("merge", text("How new values meet known ones, as in the config.")),
            ("moves", flag("Whether it moves into other answers.")),
            ("value", ["description": "The newest value; objects in it are shown by their identities."]),
            ("from", sourceSchema), ("also", list(sourceSchema)),
            ("candidates", list(object(required: ["value", "from"], sightingMembers))),
            (
                "overruled",
                list(
                    object(
                        required: ["value", "from", "rule"],
                        sightingMembers + [
                            ("rule", ["description": "`modified`, `lag` or `later`; null where that is not known."])
                        ]
                    )
                )
            ),
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
        ("value", ["description": "As that answer shows it."]), ("from", sourceSchema),
    ]

    private static let sourceSchema = object(
        required: ["method", "url", "stored", "kind", "start", "end", "age"],
        [
            ("method", ["description": "The request's method; null where it is no longer known."]),
            ("url", ["description": "Path and query, credentials replaced; null where it is no longer known."]),
            ("stored", flag("Whether the answer is still in the store.")),
            ("kind", text("`detail`, `list` or `write`.")),
            ("start", text("When the request was sent, less the answer's `Age`.")),
            ("end", text("When the answer was complete.")),
            ("age", integer("Seconds since a read's start, or a write's end.")),
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
