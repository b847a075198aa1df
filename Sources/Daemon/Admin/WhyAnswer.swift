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
        if let notice = why.notice { members.append(("mark", mark(notice))) }
        members.append(("members", .array(why.members.map(member))))
        members.append(("documents", .array(why.documents.rows.map { Self.document(of: $0, now: now) })))
        if let next = why.documents.next { members.append(("next", .string("\(row.id)-\(next)"))) }
        return .object(members)
    }

    // MARK: The object

    private func mark(_ notice: ObjectNotice) -> JSONText {
        var by = JSONText.null
        switch notice.cause {
        case .request(let request):
            by = [
                "method": request.method.map { .string($0) } ?? .null,
                "url": request.path.map { .string($0) } ?? .null,
            ]
        case .itself(let source?): by = ["method": .string(source.method), "url": .string(source.url)]
        case .itself(nil), .forgotten: break
        }
        return [
            "kind": notice.kind == .deleted ? "deleted" : "unknown", "at": .string(StoreTime.text(notice.time)),
            "age": .integer(max(0, now - notice.time) / 1_000_000), "by": by,
            "superseded": .bool(notice.isSuperseded), "reason": .string(Self.reason(notice)),
        ]
    }

    private static func reason(_ notice: ObjectNotice) -> String {
        let reason =
            switch (notice.kind, notice.cause) {
            case (.deleted, .request(let request)):
                switch request.method {
                case "DELETE": "\(words(request)) was answered so that it is gone"
                default: "\(words(request)) found nothing"
                }
            case (_, .itself(let source)):
                "it says so of itself" + (source.map { ", in the answer to \($0.method) \($0.url)" } ?? "")
            case (.unknown, .request(let request)) where request.method == nil:
                "a write\(request.path.map { " to \($0)" } ?? "") was under way when Larder ended, and nobody was told its outcome"
            case (.unknown, .request(let request)) where ["GET", "HEAD"].contains(request.method):
                "\(words(request)) found nothing then"
            case (.unknown, .request(let request)) where notice.isSuperseded && request.method == "DELETE":
                "\(words(request)) happened"
            case (.unknown, .request(let request)):
                "\(words(request)) happened, and no answer told what it made of the object"
            case (.deleted, .forgotten): "by which request is no longer known"
            case (.unknown, .forgotten): "what was known newer was removed, or by which request is no longer known"
            }
        return notice.isSuperseded ? "\(reason); what is told here was observed since" : reason
    }

    private static func words(_ request: MarkSource) -> String {
        [request.method, request.path].compactMap(\.self).joined(separator: " ")
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
        case .known, .outdated, .local, .undeclared:
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
        case .outdated:
            "the object was deleted, or written to, after all that told of it: it moves into no other answer"
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
