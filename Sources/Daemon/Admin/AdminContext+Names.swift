import Mapping
import Settings
import Store

/// What questions may name, and what is said of a name that is none.
extension AdminContext {
    /// The names of all models that the config declares, sorted.
    var modelNames: [String] {
        Set(models.values.flatMap { $0.declarations.map(\.name) }).sorted()
    }

    /// What there is to say of a model that the config does not declare; nil where it does.
    func unknownModel(_ name: String) -> String? {
        let known = modelNames
        if known.contains(name) { return nil }
        let list = known.isEmpty ? "the config declares none" : "the config declares \(known.joined(separator: ", "))"
        return Self.complaint("no model is named", name, known, list)
    }

    /// What there is to say of an upstream that neither the config has nor the store; nil where one of them does.
    func unknownUpstream(_ name: String) async throws(Problem) -> String? {
        if models[name] != nil { return nil }
        let stored = try await asked { () throws(StoreError) in try await store.ownerNames().upstreams }
        if stored.contains(name) { return nil }
        let known = models.keys.sorted()
        let old = stored.filter { models[$0] == nil }
        let list =
            "the config has \(known.joined(separator: ", "))"
            + (old.isEmpty ? "" : ", and the store something of \(old.joined(separator: ", "))")
        return Self.complaint("no upstream is named", name, known + old, list)
    }

    /// What there is to say of a principal of whom the store has nothing; nil where it has.
    func unknownPrincipal(_ label: String) async throws(Problem) -> String? {
        if let complaint = PrincipalLabel.complaint(label) { return complaint }
        if try await asked({ () throws(StoreError) in try await store.hasPrincipal(label) }) { return nil }
        let names = try await asked { () throws(StoreError) in try await store.ownerNames() }
        let more = names.areAllPrincipals ? "" : " and others"
        return "no principal has the label \(label): the store knows \(names.principals.joined(separator: ", "))\(more)"
    }

    /// Fails for an upstream or a principal in the query of a request of whom nobody knows anything: nobody would notice
    /// in silence that the name is wrong.
    func checkOwnership(of request: AdminRequest) async throws(Problem) {
        try await checkOwnership(upstream: request.value("upstream"), principal: request.value("principal"))
    }

    func checkOwnership(upstream: String?, principal: String?) async throws(Problem) {
        if let upstream, let complaint = try await unknownUpstream(upstream) { throw .badRequest(complaint) }
        if let principal, let complaint = try await unknownPrincipal(principal) { throw .badRequest(complaint) }
    }

    private static func complaint(_ what: String, _ name: String, _ known: [String], _ list: String) -> String {
        let meant = Suggestion.nearest(to: name, among: known).map { "; did you mean \($0)?" } ?? ""
        return "\(what) \"\(name)\": \(list)\(meant)"
    }
}

/// How principals are called: nobody learns anything of them from that.
enum PrincipalLabel {
    /// What is wrong with a label that none can be; nil where one can.
    static func complaint(_ text: String) -> String? {
        if text == "anonymous" { return nil }
        let isLabel =
            text.hasPrefix("p-") && text.utf8.count == 10
            && text.utf8.dropFirst(2).allSatisfy { $0 &- 0x30 < 10 || $0 &- 0x61 < 6 }
        return isLabel
            ? nil : "\"\(text)\" is no principal's label: those are anonymous, or p- and eight hexadecimal digits"
    }
}
