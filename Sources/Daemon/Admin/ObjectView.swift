import Mapping
import Store

/// How objects are shown: with the members that the upstream gave, or as their model has them.
struct ObjectView: Sendable {
    static let parameters = [
        AdminRoute.Parameter(
            name: "view",
            sentence: "`wire`: the members as the upstream spells them; `mapped`: as the model has them."
        ),
        AdminRoute.Parameter(
            name: "members",
            sentence:
                "With the mapped view: only these properties, separated by commas, `user.login` for one of a related object."
        ),
    ]

    private let isMapped: Bool
    private let members: [String]?

    init(_ request: AdminRequest) throws(Problem) {
        switch request.value("view") {
        case nil, "wire": isMapped = false
        case "mapped": isMapped = true
        case let other?: throw .badRequest("view is wire or mapped; it was \"\(other)\"")
        }
        members = request.value("members").map { $0.split(separator: ",").map(String.init) }
        guard isMapped || members == nil else { throw .badRequest("members goes with view=mapped") }
    }

    /// A row with its object in this view; related objects are shown by their identities.
    ///
    /// - Parameter models: by upstream.
    func document(_ row: ObjectRow, _ models: [String: Models]) -> JSONText {
        guard isMapped, let models = models[row.upstream] else { return row.document }
        let mapped = DocumentMapper(models: models).mapObject(row.json, model: row.model, members: members)
        let notes: [(name: String, value: JSONText)] = [
            ("object", .raw(mapped.body)), ("synthetic", .array(mapped.synthetic.map { .string($0) })),
            ("warnings", .array(mapped.warnings.map(\.document))),
        ]
        return .object(row.ownMembers + notes)
    }
}

extension MappingWarning {
    /// As programs are told of it where it is made.
    var document: JSONText {
        [
            "kind": .string(kind.rawValue), "message": .string(message),
            "pointer": pointer.map { .string($0) } ?? .null, "model": model.map { .string($0) } ?? .null,
        ]
    }
}
