import HTTPSemantics
import Mapping
import Store

/// How objects are shown: with the members that the upstream gave, or as their model has them.
struct ObjectView: Sendable {
    static let parameters = [
        AdminRoute.Parameter(
            name: "view",
            sentence: "`wire`: the members as the upstream spells them, the default; `mapped`: as the model has them."
        ),
        AdminRoute.Parameter(
            name: "members",
            sentence:
                "With the mapped view: only these properties, separated by commas, `user.login` for one of a related object."
        ),
    ]

    /// What the store is asked for.
    let query: ObjectQuery.View

    init(_ request: AdminRequest) throws(ProblemDocument) {
        let members = try request.value("members").map { (text) throws(ProblemDocument) in try Self.names(text) }
        switch request.value("view") {
        case nil, "wire":
            query = .wire
            if members != nil { throw .badRequest("members goes with view=mapped") }
        case "mapped": query = .mapped(members: members)
        case let other?: throw .badRequest("view is wire or mapped; it was \"\(other)\"")
        }
    }

    private static func names(_ text: String) throws(ProblemDocument) -> [String] {
        guard let names = MemberNames.split(text) else {
            throw .badRequest("members names properties, separated by commas; it was \"\(text)\"")
        }
        return names
    }

    /// Fails for names that no property of a model has, in any upstream.
    func check(_ model: String, _ models: [String: Models]) throws(ProblemDocument) {
        guard case .mapped(let members?) = query else { return }
        let unknown = models.values.filter { $0.declarations.contains { $0.name == model } }
            .map { DocumentMapper(models: $0).unknownMembers(among: members, of: [model]) }
        guard let first = unknown.first, unknown.allSatisfy({ !$0.isEmpty }) else { return }
        throw .badRequest("\(model) has no property \(first[0])")
    }
}

/// Names of properties as people write them, separated by commas.
package enum MemberNames {
    /// The names; nil where one is empty.
    package static func split(_ text: String) -> [String]? {
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimming(" ") }
        let isGood = names.allSatisfy { name in
            name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { !$0.isEmpty }
        }
        return isGood ? names.map(String.init) : nil
    }
}

extension Substring {
    fileprivate func trimming(_ blank: Character) -> Substring {
        let start = drop { $0 == blank }
        return start.lastIndex { $0 != blank }.map { start[...$0] } ?? ""
    }
}
