import HTTPSemantics
import Store

/// Lists in an order that people choose, and searches in them.
///
/// They are read by keys, and a search stops after half a second and says where to go on: so a table over ten million objects
/// costs what a table over ten costs.
enum ListQuestion {
    static let objectParameters = [
        AdminRoute.Parameter(
            name: "search",
            sentence: "Only objects whose identity, key or JSON contains this, whatever the case of ASCII letters."
        ),
        AdminRoute.Parameter(
            name: "sort",
            sentence:
                "`id` or `stored`, the order in which they were first stored; `-id` and `-stored` for the reverse. By `id` they come principal by principal."
        ),
    ]

    static let documentParameters = [
        AdminRoute.Parameter(
            name: "search",
            sentence: "Only those whose path and query contain this, whatever the case of ASCII letters."
        ),
        AdminRoute.Parameter(name: "sort", sentence: "`-stored`: the latest stored first; always so with `search`."),
    ]

    /// A page of objects; nil where neither an order nor a search is asked for.
    static func objects(
        _ request: AdminRequest,
        _ view: ObjectView,
        in context: any AdminContext
    ) async throws(ProblemDocument) -> ObjectsResponse? {
        let (text, sort) = (request.value("search"), request.value("sort"))
        if text == nil, sort == nil { return nil }
        let order: ObjectListing.Order
        switch sort {
        case nil, "id", "-id": order = .identity
        case "stored", "-stored": order = .stored
        case let other?: throw .badRequest("sort is id, -id, stored or -stored; it was \"\(other)\"")
        }
        let listing = ObjectListing(
            model: request.captures["model"] ?? "",
            text: text,
            order: order,
            isDescending: sort?.hasPrefix("-") == true,
            upstream: request.value("upstream"),
            principal: request.value("principal"),
            limit: try Paging.limit(request),
            view: view.query,
            after: request.value("after")
        )
        guard let listing else { throw .badRequest("after must be the `next` of the previous page in this order") }
        let page = try await asked { () throws(StoreError) in try await context.store.list(listing) }
        if page.rows.isEmpty { try await request.checkNames(in: context) }
        return ObjectsResponse(objects: page.rows.map { .init($0) }, next: page.next, examined: page.examined)
    }

    /// A page of documents; nil where neither an order nor a search is asked for.
    static func documents(
        _ request: AdminRequest,
        in context: any AdminContext
    ) async throws(ProblemDocument) -> DocumentsResponse? {
        let (text, sort) = (request.value("search"), request.value("sort"))
        if text == nil, sort == nil { return nil }
        guard sort == nil || sort == "-stored" else {
            throw .badRequest("sort is -stored here; it was \"\(sort ?? "")\"")
        }
        guard request.value("url") == nil else {
            throw .badRequest(
                "url finds what begins with it, search what contains it: give one of them, and no sort with url"
            )
        }
        let paging = try Paging(request)
        let listing = DocumentListing(
            text: text,
            upstream: request.value("upstream"),
            principal: request.value("principal"),
            limit: paging.limit,
            after: paging.after
        )
        let page = try await asked { () throws(StoreError) in try await context.store.list(listing) }
        if page.rows.isEmpty { try await context.checkOwnership(of: request) }
        return DocumentsResponse(documents: page.rows.map { .init($0) }, next: page.cursor)
    }
}
