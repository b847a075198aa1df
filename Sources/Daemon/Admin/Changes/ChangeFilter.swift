import Mapping
import Store

/// Which changes somebody wants to hear of; conditions of different names add up, those of one name are alternatives.
struct ChangeFilter: Sendable, Equatable {
    /// Names of models, concrete ones of clusters and bases alike; empty: all.
    var models: Set<String> = []
    /// Identities; empty: all.
    var ids: Set<String> = []
    /// Names of upstreams; empty: all.
    var upstreams: Set<String> = []
    /// Labels of principals; empty: all.
    var principals: Set<String> = []

    var isEverything: Bool { models.isEmpty && ids.isEmpty && upstreams.isEmpty && principals.isEmpty }

    func accepts(_ change: ObjectChange) -> Bool {
        (models.isEmpty || change.models.contains { models.contains($0) })
            && (ids.isEmpty || ids.contains(change.identity))
            && (upstreams.isEmpty || upstreams.contains(change.upstream))
            && (principals.isEmpty || principals.contains(change.principal))
    }
}

extension ChangeFilter {
    static let parameters = [
        AdminRoute.Parameter(
            name: "model",
            sentence:
                "Only objects of this model: of a cluster's base all, of a concrete model those known to be of it.",
            isRepeatable: true
        ),
        AdminRoute.Parameter(
            name: "id",
            sentence: "Only objects with this identity, as `/objects` shows it.",
            isRepeatable: true
        ),
        AdminRoute.Parameter(name: "upstream", sentence: "Only objects of this upstream.", isRepeatable: true),
        AdminRoute.Parameter(
            name: "principal",
            sentence: "Only objects of the principal with this label, such as `anonymous`.",
            isRepeatable: true
        ),
    ]

    /// Reads the conditions; what can never be met is refused, because nobody would notice it in silence.
    ///
    /// A principal that has not asked for anything yet may be waited for.
    init(_ request: AdminRequest, _ context: any AdminContext) async throws(Problem) {
        for name in request.values("model") {
            if let complaint = context.unknownModel(name) { throw .badRequest(complaint) }
            models.insert(name)
        }
        for name in request.values("upstream") {
            if let complaint = try await context.unknownUpstream(name) { throw .badRequest(complaint) }
            upstreams.insert(name)
        }
        for label in request.values("principal") {
            if let complaint = PrincipalLabel.complaint(label) { throw .badRequest(complaint) }
            principals.insert(label)
        }
        for id in request.values("id") {
            guard !id.isEmpty else { throw .badRequest("id is empty: give an object's identity") }
            ids.insert(id)
        }
    }
}

extension AdminRequest {
    /// All values of a parameter of the query, in order.
    func values(_ name: String) -> [String] {
        query.filter { $0.name == name }.map(\.value)
    }
}
