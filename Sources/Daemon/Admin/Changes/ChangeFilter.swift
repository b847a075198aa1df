import Mapping
import Store

/// Which changes somebody wants to hear of; conditions of different names add up, those of one name are alternatives.
struct ChangeFilter: Sendable, Equatable {
    /// Names of models; empty: all.
    var models: Set<String> = []
    /// Identities; empty: all.
    var ids: Set<String> = []
    /// Names of upstreams; empty: all.
    var upstreams: Set<String> = []
    /// Labels of principals; empty: all.
    var principals: Set<String> = []

    var isEverything: Bool { models.isEmpty && ids.isEmpty && upstreams.isEmpty && principals.isEmpty }

    func accepts(_ change: ObjectChange) -> Bool {
        (models.isEmpty || models.contains(change.model)) && (ids.isEmpty || ids.contains(change.identity))
            && (upstreams.isEmpty || upstreams.contains(change.upstream))
            && (principals.isEmpty || principals.contains(change.principal))
    }
}

extension ChangeFilter {
    static let parameters = [
        AdminRoute.Parameter(name: "model", sentence: "Only objects of this model.", isRepeatable: true),
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
    init(_ request: AdminRequest, _ context: any AdminContext) throws(Problem) {
        let known = context.models
        let names = context.modelNames
        for name in request.values("model") {
            guard names.contains(name) else {
                let list = names.isEmpty ? "none" : names.joined(separator: ", ")
                throw .badRequest("no model is named \"\(name)\": the config declares \(list)")
            }
            // The objects of a cluster go by the name of its base.
            models.formUnion(known.values.map { $0.objectName(of: name) })
        }
        for name in request.values("upstream") {
            guard known[name] != nil else {
                throw .badRequest(
                    "no upstream is named \"\(name)\": the config has \(known.keys.sorted().joined(separator: ", "))"
                )
            }
            upstreams.insert(name)
        }
        for label in request.values("principal") {
            guard Self.isLabel(label) else {
                throw .badRequest(
                    "\"\(label)\" is no principal's label: those are anonymous, or p- and eight hexadecimal digits"
                )
            }
            principals.insert(label)
        }
        for id in request.values("id") {
            guard !id.isEmpty else { throw .badRequest("id is empty: give an object's identity") }
            ids.insert(id)
        }
    }

    private static func isLabel(_ text: String) -> Bool {
        if text == "anonymous" { return true }
        guard text.hasPrefix("p-"), text.utf8.count == 10 else { return false }
        return text.utf8.dropFirst(2).allSatisfy { $0 &- 0x30 < 10 || $0 &- 0x61 < 6 }
    }
}

extension AdminRequest {
    /// All values of a parameter of the query, in order.
    func values(_ name: String) -> [String] {
        query.filter { $0.name == name }.map(\.value)
    }
}
