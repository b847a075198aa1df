import HTTPSemantics
import Mapping
import Settings
import Store

/// `GET /objects/{model}/{id}/why`: the origin of each value of an object.
package struct WhyResponse: AdminBody {
    package var objects: [Object]

    package struct Object: AdminBody {
        static let sentences = objectSentences.merging([
            "mark": "Present if the object was deleted, or if a write may have changed it.",
            "next": "The `after` with which `/documents` of this object goes on.",
        ]) { $1 }
        package var upstream: String
        package var principal: String
        package var context: String
        package var model: String
        package var id: String
        var observed: String
        package var mark: Mark?
        package var members: [Member]
        package var documents: [ShowingDocumentResponse]
        package var next: String?
    }

    /// A deletion, or a write with an unknown effect.
    package struct Mark: AdminBody {
        static let sentences = [
            "kind": "`deleted`, or `unknown`: a write happened, and no response showed its effect on the object.",
            "at": "Since when (RFC 3339): the end of a write, the start of a read.", "age": "Seconds since then.",
            "by":
                "The request by which that is known; absent if it is no longer known. Without a method it is a write that was under way when Larder ended.",
            "superseded": "Whether the members below were observed after that; then it concerns older responses only.",
            "reason": "The same as a sentence.",
        ]
        package var kind: String
        package var at: String
        package var age: Int64
        var by: Request?
        package var superseded: Bool
        package var reason: String
    }

    struct Request: AdminBody {
        var method: String?
        var url: String?
    }

    package struct Member: AdminBody {
        static let sentences = [
            "pointer": "Its place in the upstream's JSON (RFC 6901).",
            "properties": "The declared properties that are read from there.",
            "standing": "`known`, `doubt`, `merged`, `quarantined`, `outdated`, `local` or `undeclared`.",
            "merge": "How new values meet known ones, as in the config.",
            "moves": "Whether it moves into other responses.", "reason": "Why it has this standing.",
            "value": "The settled value; objects in it are shown by their identities.",
            "from": "The response that showed the value last.", "replaced": "What the settled value replaced.",
            "conflicting": "A value of which it is unclear whether it is newer than the settled one.",
            "quarantined": "Values that fail their checks.", "merged": "The values that were merged.",
        ]
        package var pointer: String
        package var properties: [String]
        package var standing: String
        package var merge: String
        package var moves: Bool
        var reason: String?
        package var value: RawJSON?
        package var from: Source?
        package var replaced: Replaced?
        package var conflicting: Sighting?
        package var quarantined: [Sighting]?
        package var merged: [Part]?
    }

    package struct Sighting: AdminBody {
        package var value: RawJSON
        package var from: Source
    }

    package struct Replaced: AdminBody {
        static let sentences = [
            "rule": "A stable code for the rule; `reason` is the same in words.", "reason": "Why it was replaced.",
        ]
        package var value: RawJSON
        var rule: String
        package var reason: String
    }

    package struct Part: AdminBody {
        static let sentences = ["at": "When it was observed (RFC 3339)."]
        var value: RawJSON
        var at: String
    }

    package struct Source: AdminBody {
        static let sentences = [
            "method": "The request's method; absent if it is no longer known.",
            "url": "Path and query, credentials replaced; absent if they are no longer known.",
            "stored": "Whether the response is still in the store.",
            "seeded": "True if there was no request: the value was given (`larder seed`).",
            "at": "When the value was last seen (RFC 3339).", "age": "Seconds since then.",
        ]
        package var method: String?
        package var url: String?
        var stored: Bool
        package var seeded: Bool?
        var at: String
        package var age: Int64
    }
}

/// `GET /objects/{model}/{id}/documents`: the documents that show an object.
package struct ShowingDocumentsResponse: AdminBody {
    static let sentences = nextSentence
    package var documents: [ShowingDocumentResponse]
    package var next: String?
}

package struct ShowingDocumentResponse: AdminBody {
    static let sentences = documentSentences.merging([
        "age": "Seconds since it was current.",
        "shows":
            "`newest`; `composed`: the newest values are put in at the next hit; `outdated`: they cannot be, and the next request is a miss.",
        "reason": "Why it is outdated.",
    ]) { $1 }
    var id: Int64
    package var upstream: String
    package var principal: String
    var context: String
    package var url: String
    package var status: Int
    var objects: Int
    var bytes: Int64
    var received: String
    package var age: Int64
    package var shows: String
    package var reason: String?

    init(_ document: ShowingDocument, now: Int64) {
        let row = document.row
        id = row.id.rawValue
        (upstream, principal, context) = (row.upstream, row.principal, row.context)
        (url, status, objects, bytes) = (row.url, row.status, row.objects, row.bytes)
        (received, age) = (StoreTime.text(row.end), seconds(since: row.start, now: now))
        switch document.form {
        case .asReceived: shows = "newest"
        case .composed: shows = "composed"
        case .outdated(let reason): (shows, self.reason) = ("outdated", reason)
        }
    }
}

extension WhyResponse.Object {
    init(_ row: ObjectRow, _ why: ObjectWhy, now: Int64) {
        (upstream, principal, context) = (row.upstream, row.principal, row.context)
        (model, id, observed) = (row.model, row.identity, StoreTime.text(row.observed))
        mark = why.notice.map { WhyResponse.Mark($0, now: now) }
        members = why.members.map { member in WhyResponse.Member(member) { WhyResponse.Source($0, why, now: now) } }
        documents = why.documents.rows.map { ShowingDocumentResponse($0, now: now) }
        next = why.documents.next.map { "\(row.id)-\($0)" }
    }
}

extension WhyResponse.Mark {
    fileprivate init(_ notice: ObjectNotice, now: Int64) {
        kind = notice.kind == .deleted ? "deleted" : "unknown"
        (at, age) = (StoreTime.text(notice.time), seconds(since: notice.time, now: now))
        by =
            switch notice.cause {
            case .request(let request): .init(method: request.method, url: request.path)
            case .itself(let source?): .init(method: source.method, url: source.url)
            case .itself(nil), .forgotten: nil
            }
        superseded = notice.isSuperseded
        reason = Self.reason(notice) + (superseded ? "; the values shown here were observed since" : "")
    }

    private static func reason(_ notice: ObjectNotice) -> String {
        switch (notice.kind, notice.cause) {
        case (.deleted, .request(let request)) where request.method == "DELETE":
            "the response to \(words(request)) means that it is gone"
        case (.deleted, .request(let request)): "\(words(request)) responded 404 or 410"
        case (_, .itself(let source)):
            "its own members say so" + (source.map { ", in the response to \($0.method) \($0.url)" } ?? "")
        case (.unknown, .request(let request)) where request.method == nil:
            "a write\(request.path.map { " to \($0)" } ?? "") was under way when Larder ended, and its outcome is not known"
        case (.unknown, .request(let request)) where ["GET", "HEAD"].contains(request.method):
            "\(words(request)) responded 404 or 410 then"
        case (.unknown, .request(let request)) where notice.isSuperseded && request.method == "DELETE":
            "\(words(request)) happened"
        case (.unknown, .request(let request)):
            "\(words(request)) happened, and no response showed its effect on the object"
        case (.deleted, .forgotten): "the request that showed it is no longer known"
        case (.unknown, .forgotten): "newer values were removed, or the request that showed it is no longer known"
        }
    }

    private static func words(_ request: MarkSource) -> String {
        [request.method, request.path].compactMap(\.self).joined(separator: " ")
    }
}

extension WhyResponse.Member {
    fileprivate init(_ member: Provenance.Member, source: (Provenance.Sighting) -> WhyResponse.Source) {
        (pointer, properties, standing) = (member.pointer, member.properties, member.standing.rawValue)
        (merge, moves, reason) = (member.policy.rawValue, member.moves, Self.reason(member.standing))
        value = member.value.map(RawJSON.init)
        from = member.shown.map(source)
        replaced = member.replaced.map {
            .init(value: RawJSON($0.value), rule: $0.rule.rawValue, reason: $0.rule.sentence)
        }
        let sighting = { WhyResponse.Sighting(value: RawJSON($0.value), from: source($0)) }
        conflicting = member.challenger.map(sighting)
        quarantined = member.quarantined.isEmpty ? nil : member.quarantined.map(sighting)
        if member.standing == .gathered {
            merged = member.items.map { .init(value: RawJSON($0.value), at: StoreTime.text($0.time)) }
        }
    }

    private static func reason(_ standing: Provenance.Standing) -> String? {
        switch standing {
        case .known, .gathered: nil
        case .doubt:
            "another value was seen, and it is unclear which one is newer; documents that show it are fetched again"
        case .quarantined: "no known value passes the checks"
        case .outdated:
            "the object was deleted or written to after its last observation: the value is not used in other documents"
        case .local: "declared local: it belongs to its response, and each document keeps its own"
        case .undeclared: "not declared: it belongs to its response, and each document keeps its own"
        }
    }
}

extension WhyResponse.Source {
    fileprivate init(_ sighting: Provenance.Sighting, _ why: ObjectWhy, now: Int64) {
        let source = why.sources[sighting.source]
        if source?.isSeed == true {
            (stored, seeded) = (false, true)
        } else {
            (method, url, stored) = (source?.method, source?.url, source?.isStored ?? false)
        }
        (at, age) = (StoreTime.text(sighting.time), seconds(since: sighting.time, now: now))
    }
}

/// Whole seconds between two times of the store's clock.
private func seconds(since time: Int64, now: Int64) -> Int64 { max(0, now - time) / 1_000_000 }

extension Provenance.Member {
    /// The names that users may give it: a property, its key path, or its pointer with or without the slash.
    fileprivate var spellings: [String] {
        let path = String(pointer.dropFirst())
        return properties + [pointer, path, path.replacing("/", with: ".")]
    }
}

extension KnowledgeRule {
    fileprivate var sentence: String {
        switch self {
        case .lowerStampedWrite: "a later write replaced it, though its response says that it was modified earlier"
        case .wentBack: "the upstream itself went back to an earlier modification, and stayed there"
        case .laterStamp: "the object says that it was modified later"
        case .laterWord: "the response that showed it last now shows another value"
        case .newer: "it was observed later"
        case .afterWrite: "it was observed after a write whose response did not show it"
        case .overlappingWrite: "a write showed another value; which one is newer is unknown"
        case .decided: "which value was newer is unknown; the one seen last is kept"
        }
    }
}

extension WhyResponse {
    static let parameters: [AdminRoute.Parameter] = AdminRoute.Parameter.documented([
        "Only this member: a property's name, `user.login`, or a JSON pointer.": .init("member"),
        "How many documents to list for each object, 0 to \(maximumDocuments); 10 by default.":
            .init("documents", .integer),
    ])
    private static let maximumDocuments = 100
    private static let maximumObjects = 20
    /// How long to search for documents, for all objects of a response.
    private static let patience: Duration = .seconds(2)

    init(to request: AdminRequest, _ daemon: DaemonCore) async throws {
        let member = request.value("member")
        let documents = try request.integer("documents", in: 0...Self.maximumDocuments) ?? 10
        let rows = try await daemon.namedObjects(request, limit: Self.maximumObjects)
        let end = ContinuousClock.now + Self.patience
        objects = []
        var known: Set<String> = []
        for row in rows {
            // Nil if it was removed in the meantime.
            guard var found = try await daemon.store.why(row.id, documents: documents, patience: max(.zero, end - .now))
            else { continue }
            for member in found.members { known.formUnion(member.spellings) }
            if let member {
                found.members.removeAll { !$0.spellings.contains(member) }
                if found.members.isEmpty { continue }
            }
            objects.append(.init(row, daemon.shown(found, of: row.upstream), now: daemon.store.clock.now()))
        }
        if objects.isEmpty, let member, !known.isEmpty {
            let nearest = Suggestion.nearest(to: member, among: known).map { ": did you mean \($0)?" } ?? ""
            let object = "\(request.capture("model")) \(request.capture("id"))"
            throw ProblemDocument.notFound("\(object) has no known member \(member)\(nearest)")
        }
    }
}

extension ShowingDocumentsResponse {
    private static let maximumObjects = 100
    private static let patience: Duration = .seconds(1)

    init(to request: AdminRequest, _ daemon: DaemonCore) async throws {
        let limit = try Paging.limit(request)
        let cursor = try Self.cursor(request)
        let rows = try await daemon.namedObjects(request, limit: Self.maximumObjects).sorted { $0.id < $1.id }
        let end = ContinuousClock.now + Self.patience
        documents = []
        for row in rows where row.id >= cursor?.object ?? .zero {
            if documents.count == limit || ContinuousClock.now >= end {
                next = "\(row.id)"
                break
            }
            let page = try await daemon.store.documents(
                showing: row.id,
                limit: limit - documents.count,
                after: cursor.flatMap { $0.object == row.id ? $0.position : nil },
                patience: end - .now
            )
            let now = daemon.store.clock.now()
            documents += page.rows.map { ShowingDocumentResponse(daemon.shown($0), now: now) }
            if let position = page.next {
                next = "\(row.id)-\(position)"
                break
            }
        }
    }

    /// The object that is being searched for, and the document before which to continue; both from the previous page.
    private static func cursor(_ request: AdminRequest) throws -> (object: ObjectID, position: Int64?)? {
        guard let text = request.value("after") else { return nil }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
        guard (1...2).contains(parts.count), let object = parts[0], parts.count == 1 || parts[1] != nil else {
            throw ProblemDocument.badRequest(Paging.wrongAfter)
        }
        return (ObjectID(rawValue: object), parts.count == 2 ? parts[1] : nil)
    }
}
