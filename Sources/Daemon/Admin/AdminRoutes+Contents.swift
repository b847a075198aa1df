import CachePolicy
import HTTPSemantics
import Mapping
import Proxy
import Settings
import Store

/// The contents of the store: objects, documents, warnings.
///
/// Lists and searches are read by keys, and stop after half a second with the position to continue from. So a page of a table
/// with ten million objects costs as much as one of ten.
extension AdminRoute {
    static let contents: [AdminRoute] = documented([
        "How many objects and documents the store has, and their size.":
            .json("GET /count") { _, daemon in try await daemon.store.count() },
        "The objects of a model at their newest known values. A page may be short, or even empty, and have a next.":
            .json(
                "GET /objects/{model}",
                query: Parameter.documented([
                    "Only objects whose identity, key or JSON contains this, whatever the case of ASCII letters.":
                        Parameter("search"),
                    "`id` or `stored`, the order in which they were first stored; `-id` and `-stored` for the reverse. By `id` they come principal by principal; this finds the few of one model among many others at once. By `id` with a search, else `stored`.":
                        Parameter("sort"),
                ]) + ObjectView.parameters + Paging.parameters + Ownership.parameters
            ) { request, daemon in
                let view = try ObjectView(request, daemon)
                let listed = try await list(request, view, daemon)
                if listed.objects.isEmpty { try await daemon.checkNames(of: request) }
                return listed
            },
        "The objects of a model with this identity, or with a key of this value: one per principal and context.":
            .json("GET /objects/{model}/{id}", query: ObjectView.parameters + Paging.parameters + Ownership.parameters)
        { request, daemon in
            let view = try ObjectView(request, daemon)
            let page = try await objects(request, view, daemon)
            guard page.objects.isEmpty else { return page }
            let (model, id) = (request.capture("model"), request.capture("id"))
            guard try await objects(request, view, daemon, areDeleted: true).objects.isEmpty else {
                throw ProblemDocument(410, "\(model) \(id) is deleted; `larder why \(model) \(id)` shows since when")
            }
            try await daemon.checkNames(of: request)
            throw ProblemDocument.notFound("there is no \(model) with the identity or key \(id)")
        },
        "Where each member of an object comes from, what it replaced, and which documents show it: one per principal and context.":
            .json("GET /objects/{model}/{id}/why", query: WhyResponse.parameters + Ownership.parameters) {
                (request, daemon) in try await WhyResponse(to: request, daemon)
            },
        "The documents that show an object, the newest first. A page may be short, or even empty, and have a next.":
            .json("GET /objects/{model}/{id}/documents", query: Paging.parameters + Ownership.parameters) {
                (request, daemon) in try await ShowingDocumentsResponse(to: request, daemon)
            },
        "The stored responses. A page may be short, or even empty, and have a next.": .json(
            "GET /documents",
            query: Parameter.documented([
                "Only those with this path and query, as clients send it or as it goes upstream, or with this URL of Larder or an upstream; with `*` at its end, all that begin with it.":
                    Parameter("url"), "Only those of the route whose path the config spells so.": Parameter("route"),
                "Only those whose path and query contain this, whatever the case of ASCII letters; a path or URL is read like `url`.":
                    Parameter("search"),
                "`-stored`: the latest stored first; always so with `search`.": Parameter("sort"),
            ]) + Paging.parameters + Ownership.parameters
        ) { request, daemon in
            let read = try request.value("url").map { try StoredURL($0, of: request.value("upstream"), in: daemon) }
            let page = try await documents(request, read, daemon)
            if page.rows.isEmpty {
                try await daemon.checkOwnership(of: request)
                if page.cursor == nil { try read?.checkIsServed() }
            }
            let documents = page.rows.map { DocumentsResponse.Document(daemon.shown($0)) }
            return DocumentsResponse(documents: documents, next: page.cursor, url: read?.shown)
        },
        "One stored response as a client would get it: fields, body, and how fresh it is.":
            .json("GET /documents/{id}", query: DocumentResponse.parameters, respond: DocumentResponse.init(to:_:)),
        "What is stored for a URL, how fresh it is and why, and what a request would get now.":
            .json("GET /explain", query: Explanation.parameters, respond: Explanation.make),
        "What did not fit the models and routes, the latest first.":
            .json("GET /warnings", query: Paging.parameters) { request, daemon in
                let paging = try Paging(request)
                let page = try await daemon.store.warnings(limit: paging.limit, after: paging.after)
                let declarations = daemon.models.values.flatMap(\.declarations)
                let rows = page.rows.map { warning in
                    WarningsResponse.Warning(daemon.shown(warning)) { model in
                        declarations.first { $0.name == model }?.local ?? []
                    }
                }
                return WarningsResponse(warnings: rows, next: page.cursor)
            },
    ])

    private static func objects(
        _ request: AdminRequest,
        _ view: ObjectView,
        _ daemon: DaemonCore,
        areDeleted: Bool = false
    ) async throws -> ObjectsResponse {
        let paging = try Paging(request)
        var query = ObjectQuery(request, limit: paging.limit, after: paging.after)
        (query.areDeleted, query.view) = (areDeleted, view.query)
        let page = try await daemon.objects(named: query)
        return ObjectsResponse(objects: page.rows.map { .init($0) }, next: page.cursor)
    }

    private static func list(
        _ request: AdminRequest,
        _ view: ObjectView,
        _ daemon: DaemonCore
    ) async throws -> ObjectsResponse {
        let order = try request.choice(
            "sort",
            of: ["id": ObjectListing.Order.identity, "-id": .identity, "stored": .stored, "-stored": .stored]
        )
        let listing = ObjectListing(
            model: request.capture("model"),
            text: request.value("search"),
            order: order ?? (request.value("search") == nil ? .stored : .identity),
            isDescending: request.value("sort")?.hasPrefix("-") == true,
            upstream: request.value("upstream"),
            principal: request.value("principal"),
            limit: try Paging.limit(request),
            view: view.query,
            after: request.value("after")
        )
        guard let listing else {
            throw ProblemDocument.badRequest(Paging.wrongAfter + "; the order must be the same")
        }
        let page = try await daemon.store.list(listing)
        return ObjectsResponse(objects: page.rows.map { .init($0) }, next: page.next, examined: page.examined)
    }

    private static func documents(
        _ request: AdminRequest,
        _ read: StoredURL?,
        _ daemon: DaemonCore
    ) async throws -> Page<DocumentRow> {
        let (url, text, sort) = (request.value("url"), request.value("search"), request.value("sort"))
        let (upstream, principal) = (request.value("upstream"), request.value("principal"))
        guard sort == nil || sort == "-stored" else {
            throw ProblemDocument.badRequest("sort is -stored here; it was \"\(sort ?? "")\"")
        }
        let isSorted = text != nil || sort != nil
        guard !isSorted || url == nil else {
            throw ProblemDocument.badRequest(
                "url finds what has it, search what contains it: give one of them, and no sort with url"
            )
        }
        let route = try request.value("route").map { try daemon.route(spelled: $0, of: read?.upstream ?? upstream) }
        // A path with an upstream's prefix, or a URL, is stored as it goes upstream.
        let sought = text.flatMap { try? StoredURL($0, of: upstream, in: daemon) }
        let reread = sought.flatMap { $0.shown != nil && $0.url != text ? $0 : nil }
        var covers: (@Sendable (String) -> Bool)?
        if read != nil || route != nil {
            covers = { url in (read?.covers(url) ?? true) && (route?.covers(url) ?? true) }
        }
        let paging = try Paging(request)
        return try await daemon.store.list(
            DocumentListing(
                text: reread?.url ?? text,
                covers: covers,
                isDescending: isSorted,
                upstream: read?.upstream ?? route?.upstream ?? reread?.upstream ?? upstream,
                principal: principal,
                limit: paging.limit,
                after: paging.after
            )
        )
    }
}

/// How objects are shown: with the upstream's members, or as their model maps them.
struct ObjectView: Sendable {
    static let parameters: [AdminRoute.Parameter] = AdminRoute.Parameter.documented([
        "`wire`: the members as the upstream spells them, the default; `mapped`: as the model has them.": .init("view"),
        "With the mapped view: only these properties, separated by commas, `user.login` for one of a related object.":
            .init("members"),
    ])

    let query: ObjectQuery.View

    /// Fails for names that are no property of the path's model in any upstream.
    init(_ request: AdminRequest, _ daemon: DaemonCore) throws {
        let members = try request.value("members").map { text in
            guard let names = MemberNames.split(text) else {
                throw ProblemDocument.badRequest("members names properties, separated by commas; it was \"\(text)\"")
            }
            return names
        }
        let isMapped = try request.choice("view", of: ["wire": false, "mapped": true]) ?? false
        query = isMapped ? .mapped(members: members) : .wire
        guard let members else { return }
        guard isMapped else { throw ProblemDocument.badRequest("members goes with view=mapped") }
        let model = request.capture("model")
        let unknown = daemon.models.values.filter { $0.declarations.contains { $0.name == model } }
            .map { DocumentMapper(models: $0).unknownMembers(among: members, of: [model]) }
        guard let first = unknown.first, unknown.allSatisfy({ !$0.isEmpty }) else { return }
        throw ProblemDocument.badRequest("\(model) has no property \(first[0])")
    }
}

/// Names of properties, separated by commas.
package enum MemberNames {
    /// The names; nil if one is empty.
    package static func split(_ text: String) -> [String]? {
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map { name in
            let start = name.drop { $0 == " " }
            return start.lastIndex { $0 != " " }.map { start[...$0] } ?? ""
        }
        let isGood = names.allSatisfy { name in
            name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { !$0.isEmpty }
        }
        return isGood ? names.map(String.init) : nil
    }
}
