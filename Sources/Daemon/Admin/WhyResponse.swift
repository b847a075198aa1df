import HTTPSemantics
import Mapping
import Store

/// Where what is known of an object comes from, as programs are told.
struct WhyResponse {
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
        if let shown = member.shown { members.append(("from", source(shown))) }
        if let replaced = member.replaced {
            members.append(
                (
                    "replaced",
                    [
                        "value": .raw(replaced.value), "rule": .string(replaced.rule.rawValue),
                        "reason": .string(replaced.rule.sentence),
                    ]
                )
            )
        }
        if let challenger = member.challenger { members.append(("challenger", sighting(challenger))) }
        if member.standing == .gathered {
            let items = member.items.map { item -> JSONText in
                ["value": .raw(item.value), "at": .string(StoreTime.text(item.time))]
            }
            members.append(("gathered", .array(items)))
        }
        if let reason = Self.reason(member.standing) { members.append(("reason", .string(reason))) }
        if !member.quarantined.isEmpty {
            members.append(("quarantined", .array(member.quarantined.map(sighting))))
        }
        return .object(members)
    }

    private func sighting(_ sighting: Provenance.Sighting) -> JSONText {
        ["value": .raw(sighting.value), "from": source(sighting)]
    }

    private func source(_ sighting: Provenance.Sighting) -> JSONText {
        let source = why.sources[sighting.source]
        return [
            "method": source.map { .string($0.method) } ?? .null, "url": source.map { .string($0.url) } ?? .null,
            "stored": .bool(source?.isStored ?? false), "at": .string(StoreTime.text(sighting.time)),
            "age": .integer(max(0, now - sighting.time) / 1_000_000),
        ]
    }

    private static func reason(_ standing: Provenance.Standing) -> String? {
        switch standing {
        case .known, .gathered: nil
        case .doubt:
            "another value was seen that cannot be ordered against it; documents that show it are asked for again"
        case .quarantined: "no value that passes the checks is known"
        case .outdated:
            "the object was deleted, or written to, after all that is known of it: it moves into no document"
        case .local: "declared local: it belongs to its response, and each document keeps its own"
        case .undeclared: "not declared: it belongs to its response, and each document keeps its own"
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

extension KnowledgeRule {
    /// Why a value gave way, for people.
    var sentence: String {
        switch self {
        case .lowerStampedWrite: "a later write replaced it, though its response says that it was modified earlier"
        case .wentBack: "the upstream itself went back to an earlier modification, and stayed there"
        case .laterStamp: "the object says that it was modified later"
        case .newer: "it was observed later"
        case .decided: "of two values in doubt it was the last one seen"
        }
    }
}
