import HTTPSemantics
import Settings
import Store

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
            objects.append(WhyResponse(row, found, now: context.store.clock.now()).document)
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
