import HTTPSemantics
import Store

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
            documents += page.rows.map { WhyResponse.document(of: $0, now: now) }
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
