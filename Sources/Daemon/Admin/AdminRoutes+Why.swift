import Mapping
import Store

/// Where what is known of objects comes from, and what shows them.
extension AdminRoute {
    static let provenance: [AdminRoute] = [
        AdminRoute(
            method: "GET",
            path: "/objects/{model}/{id}/why",
            sentence:
                "Where each member of an object comes from, what it overruled, and which documents show it: one per principal and context.",
            query: WhyQuestion.parameters + Ownership.parameters,
            schema: WhyAnswer.schema,
            answer: { request, context throws(Problem) in
                .json(try await WhyQuestion(request).answer(in: context))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/objects/{model}/{id}/documents",
            sentence:
                "The documents that show an object, the newest first. A page may be short, or empty with a next: then there is more to look through.",
            query: Paging.parameters + Ownership.parameters,
            schema: WhyAnswer.documentsSchema,
            answer: { request, context throws(Problem) in
                .json(try await ShowingQuestion(request).answer(in: context))
            }
        ),
    ]
}

/// `GET /objects/{model}/{id}/why`.
struct WhyQuestion: Sendable {
    static let parameters = [
        AdminRoute.Parameter(
            name: "member",
            sentence: "Only this one: a property's name, `user.login`, or a JSON pointer."
        ),
        AdminRoute.Parameter(
            name: "documents",
            kind: .integer,
            sentence:
                "How many documents are told of for each object, 0 to \(maximumDocuments); 10 unless said otherwise."
        ),
    ]
    private static let maximumDocuments = 100
    /// More objects than this are not gone into for one answer.
    private static let maximumObjects = 20
    /// For how long documents are looked for, for all objects of an answer.
    private static let patience: Duration = .seconds(2)

    private let request: AdminRequest
    private let member: String?
    private var documents = 10

    init(_ request: AdminRequest) throws(Problem) {
        self.request = request
        member = request.value("member")
        guard let text = request.value("documents") else { return }
        guard let number = Int(text), (0...Self.maximumDocuments).contains(number) else {
            throw .badRequest("documents must be a number from 0 to \(Self.maximumDocuments)")
        }
        documents = number
    }

    func answer(in context: any AdminContext) async throws(Problem) -> JSONText {
        let rows = try await request.namedObjects(limit: Self.maximumObjects, in: context)
        let end = ContinuousClock.now + Self.patience
        var objects: [JSONText] = []
        var known: Set<String> = []
        for row in rows {
            let rest = max(.zero, end - .now)
            let found = try await asked { () throws(StoreError) in
                try await context.store.why(row.id, documents: documents, patience: rest)
            }
            // Gone in the meantime.
            guard var found else { continue }
            for member in found.members { known.formUnion(member.spellings) }
            if let member {
                found.members.removeAll { !$0.spellings.contains(member) }
                if found.members.isEmpty { continue }
            }
            objects.append(WhyAnswer(row, found, now: context.store.clock.now()).document)
        }
        if objects.isEmpty, let member, !known.isEmpty {
            let nearest = Suggestion.nearest(to: member, among: known)
            throw .notFound(
                "nothing is known of a member \(member) of \(request.objectName)"
                    + (nearest.map { ": did you mean \($0)?" } ?? "")
            )
        }
        return .object([("objects", .array(objects))])
    }
}

/// `GET /objects/{model}/{id}/documents`.
struct ShowingQuestion: Sendable {
    private static let maximumObjects = 100
    private static let patience: Duration = .seconds(1)

    private let request: AdminRequest
    private let limit: Int
    /// The object that is looked for, and the document before which its search goes on; both from the page before.
    private let cursor: (object: ObjectID, position: Int64?)?

    init(_ request: AdminRequest) throws(Problem) {
        self.request = request
        // Its `after` has two parts here.
        var plain = request
        plain.query.removeAll { $0.name == "after" }
        limit = try Paging(plain).limit
        cursor = try request.value("after").map { (text) throws(Problem) in
            let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
            guard (1...2).contains(parts.count), let object = parts[0], parts.count == 1 || parts[1] != nil else {
                throw .badRequest("after must be the next of the page before")
            }
            return (object, parts.count == 2 ? parts[1] : nil)
        }
    }

    func answer(in context: any AdminContext) async throws(Problem) -> JSONText {
        let rows = try await request.namedObjects(limit: Self.maximumObjects, in: context).sorted { $0.id < $1.id }
        let end = ContinuousClock.now + Self.patience
        var documents: [JSONText] = []
        var next: String?
        for row in rows where row.id >= cursor?.object ?? 0 {
            if documents.count == limit || ContinuousClock.now >= end {
                next = "\(row.id)"
                break
            }
            let position = cursor.flatMap { $0.object == row.id ? $0.position : nil }
            let wanted = limit - documents.count
            let page = try await asked { () throws(StoreError) in
                try await context.store.documents(
                    showing: row.id,
                    limit: wanted,
                    after: position,
                    patience: end - .now
                )
            }
            let now = context.store.clock.now()
            documents += page.rows.map { WhyAnswer.document(of: $0, now: now) }
            if let position = page.next {
                next = "\(row.id)-\(position)"
                break
            }
        }
        var members: [(name: String, value: JSONText)] = [("documents", .array(documents))]
        if let next { members.append(("next", .string(next))) }
        return .object(members)
    }
}

extension AdminRequest {
    /// How its path names an object.
    fileprivate var objectName: String { "\(captures["model"] ?? "") \(captures["id"] ?? "")" }

    /// The objects that its path names, of every principal and context that is not ruled out; never none.
    fileprivate func namedObjects(limit: Int, in context: any AdminContext) async throws(Problem) -> [ObjectRow] {
        let query = ObjectQuery(
            model: captures["model"],
            identity: captures["id"],
            upstream: value("upstream"),
            principal: value("principal"),
            limit: limit
        )
        let rows = try await asked { () throws(StoreError) in try await context.lookup.objects(query).rows }
        guard rows.isEmpty else { return rows }
        let (model, id) = (captures["model"] ?? "", captures["id"] ?? "")
        guard context.modelNames.contains(model) else {
            let nearest = Suggestion.nearest(to: model, among: context.modelNames)
            let known = context.modelNames.joined(separator: ", ")
            throw .notFound(
                "no model is named \(model): "
                    + (nearest.map { "did you mean \($0)?" }
                        ?? (known.isEmpty ? "the config declares none" : "the config declares \(known)"))
            )
        }
        throw .notFound("no \(model) is known as \(id)" + (try await hint(for: query, in: context)))
    }

    /// What may have been meant by an identity that is none: the same one elsewhere, or one that is spelled alike.
    private func hint(for query: ObjectQuery, in context: any AdminContext) async throws(Problem) -> String {
        var wider = query
        wider.model = nil
        (wider.upstream, wider.principal) = (nil, nil)
        wider.limit = 1
        let elsewhere = try await asked { () throws(StoreError) in try await context.store.objects(wider).rows.first }
        if let elsewhere {
            let (upstream, principal) = (elsewhere.upstream, elsewhere.principal)
            return elsewhere.model == query.model
                ? "; \(upstream) has one for \(principal)" : "; a \(elsewhere.model) of \(upstream) is"
        }
        var all = query
        all.identity = nil
        all.limit = Paging.maximum
        let rows = try await asked { () throws(StoreError) in try await context.store.objects(all).rows }
        let names = rows.flatMap { row in
            [row.identity] + (context.models[row.upstream]?.keys(in: row.json, of: row.model).map(\.value) ?? [])
        }
        return Suggestion.nearest(to: query.identity ?? "", among: names).map { ": did you mean \($0)?" } ?? ""
    }
}
