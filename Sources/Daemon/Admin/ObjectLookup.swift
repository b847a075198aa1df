import HTTPSemantics
import Mapping
import Proxy
import Settings
import Store

/// Labels of principals, which reveal nothing about the credential.
enum PrincipalLabel {
    static func check(_ text: String) throws {
        let isLabel =
            text.hasPrefix("p-") && text.utf8.count == 10
            && text.utf8.dropFirst(2).allSatisfy { $0 &- 0x30 < 10 || $0 &- 0x61 < 6 }
        guard text == "anonymous" || isLabel else {
            throw ProblemDocument.badRequest(
                "\"\(text)\" is not a principal's label: labels are anonymous, or p- and eight hexadecimal digits"
            )
        }
    }
}

/// Checks of the names in a request, because an empty list would hide that a name is wrong.
extension DaemonCore {
    /// The error about a model that the config does not declare; nil if it does.
    func complaint(aboutModel name: String) -> String? {
        let known = Set(models.values.flatMap { $0.declarations.map(\.name) }).sorted()
        if known.contains(name) { return nil }
        let list = known.isEmpty ? "the config declares none" : "the config declares \(known.joined(separator: ", "))"
        return Self.complaint("no model is named", name, known, list)
    }

    /// Fails for an upstream that is in neither config nor store.
    func checkUpstream(_ name: String) async throws {
        let known = upstreams.map(\.name).sorted()
        if known.contains(name) { return }
        let stored = try await store.ownerNames().upstreams
        if stored.contains(name) { return }
        let old = stored.filter { !known.contains($0) }
        let list =
            "the config has \(known.joined(separator: ", "))"
            + (old.isEmpty ? "" : ", and the store has data of \(old.joined(separator: ", "))")
        throw ProblemDocument.badRequest(Self.complaint("no upstream is named", name, known + old, list))
    }

    /// Fails for a principal that is not in the store.
    func checkPrincipal(_ label: String) async throws {
        try PrincipalLabel.check(label)
        if try await store.hasPrincipal(label) { return }
        let names = try await store.ownerNames()
        let more = names.areAllPrincipals ? "" : " and others"
        throw ProblemDocument.badRequest(
            "no principal has the label \(label): the store knows \(names.principals.joined(separator: ", "))\(more)"
        )
    }

    func checkOwnership(of request: AdminRequest) async throws {
        if let upstream = request.value("upstream") { try await checkUpstream(upstream) }
        if let principal = request.value("principal") { try await checkPrincipal(principal) }
    }

    /// Fails for an unknown model in a request's path, or an unknown upstream or principal in its query.
    func checkNames(of request: AdminRequest) async throws {
        if let complaint = complaint(aboutModel: request.capture("model")) { throw ProblemDocument.notFound(complaint) }
        try await checkOwnership(of: request)
    }

    private static func complaint(_ what: String, _ name: String, _ known: [String], _ list: String) -> String {
        let meant = Suggestion.nearest(to: name, among: known).map { "; did you mean \($0)?" } ?? ""
        return "\(what) \"\(name)\": \(list)\(meant)"
    }
}

extension ObjectQuery {
    /// The objects that a request's path names, of the upstream and principal in its query.
    init(_ request: AdminRequest, limit: Int, after: Int64? = nil) {
        self.init(
            model: request.captures["model"],
            identity: request.captures["id"],
            upstream: request.value("upstream"),
            principal: request.value("principal"),
            limit: limit,
            after: after
        )
    }
}

/// Finds objects by identity, or by the value of one of their model's keys.
extension DaemonCore {
    private static let pageSize = 1000
    /// How long to read objects that are not in the index of keys.
    private static let patience: Duration = .seconds(1)

    /// The objects whose identity is `query.identity`; if there are none, those with a key of that value.
    ///
    /// The store has an index of keys. It lacks objects that were stored before their model had the key. These are found by
    /// reading the objects of the model, page by page. Fails if there are so many that this takes more than a second.
    func objects(named query: ObjectQuery) async throws -> Page<ObjectRow> {
        var page = try await store.objects(query)
        guard page.rows.isEmpty, let value = query.identity, let model = query.model,
            models.values.contains(where: { $0.declarations.contains { $0.name == model && !$0.keys.isEmpty } })
        else { return page }
        var query = query
        let limit = query.limit
        (query.identity, query.key) = (nil, value)
        page = try await store.objects(query)
        guard page.rows.isEmpty, query.after == nil else { return page }
        (query.key, query.limit) = (nil, Self.pageSize)
        let end = ContinuousClock.now + Self.patience
        var (found, examined, cursor): ([ObjectRow], Int, String?) = ([], 0, nil)
        repeat {
            let part = try await some(of: query, after: cursor)
            found += part.rows.filter { keys(of: $0).contains(value) }
            examined += part.rows.count
            cursor = part.next
            if found.count >= limit { break }
            guard cursor == nil || .now < end || !found.isEmpty else {
                throw ProblemDocument.notFound(
                    "no \(model) with the identity or key \(value) was found. Objects stored before the model declared the key "
                        + "are not indexed; the first \(examined) of them were searched. The dashboard's search covers all."
                )
            }
        } while cursor != nil && .now < end
        (page.rows, page.next) = (Array(found.prefix(limit)), nil)
        return page
    }

    private func some(of query: ObjectQuery, after cursor: String?) async throws -> (rows: [ObjectRow], next: String?) {
        if query.areDeleted {
            var query = query
            query.after = cursor.flatMap { Int64($0) }
            let page = try await store.objects(query)
            return (page.rows, page.cursor)
        }
        let listing = ObjectListing(
            model: query.model ?? "",
            order: .identity,
            upstream: query.upstream,
            principal: query.principal,
            limit: query.limit,
            view: query.view,
            after: cursor
        )
        guard let listing else { preconditionFailure("the cursor of a listing fits it") }
        let page = try await store.list(listing)
        return (page.rows, page.next)
    }

    /// The values of an object's keys, read from its newest known members.
    private func keys(of row: ObjectRow) -> [String] {
        models[row.upstream].map { $0.keys(in: row.json, of: row.model).map(\.value) } ?? []
    }

    /// The objects that a request's path names, in all principals and contexts that it allows, deleted ones too; fails without any.
    func namedObjects(_ request: AdminRequest, limit: Int) async throws -> [ObjectRow] {
        let query = ObjectQuery(request, limit: limit)
        var rows = try await objects(named: query).rows
        // The object of one principal may be deleted and another's not. If the identity is known, search by it and not by a key.
        var deleted = query
        deleted.areDeleted = true
        if let identity = rows.first?.identity { deleted.identity = identity }
        if rows.count < limit {
            let gone = rows.isEmpty ? try await objects(named: deleted) : try await store.objects(deleted)
            rows += gone.rows.prefix(limit - rows.count)
        }
        guard rows.isEmpty else { return rows }
        try await checkNames(of: request)
        throw ProblemDocument.notFound(
            "there is no \(request.capture("model")) with the identity or key \(request.capture("id"))"
                + (try await hint(for: query))
        )
    }

    private func hint(for query: ObjectQuery) async throws -> String {
        var wider = query
        (wider.model, wider.upstream, wider.principal, wider.limit) = (nil, nil, nil, 1)
        if let elsewhere = try await store.objects(wider).rows.first {
            let (upstream, principal) = (elsewhere.upstream, elsewhere.principal)
            return elsewhere.model == query.model
                ? "; \(upstream) has one for \(principal)" : "; a \(elsewhere.model) of \(upstream) is"
        }
        var all = query
        (all.identity, all.limit) = (nil, Paging.maximum)
        let names = try await some(of: all, after: nil).rows.flatMap { [$0.identity] + keys(of: $0) }
        return Suggestion.nearest(to: query.identity ?? "", among: names).map { ": did you mean \($0)?" } ?? ""
    }
}
