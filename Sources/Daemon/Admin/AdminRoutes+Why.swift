import Store

/// Where what is known of objects comes from, and what shows them.
extension AdminRoute {
    static let provenance: [AdminRoute] = [
        AdminRoute(
            method: "GET",
            path: "/objects/{model}/{id}/why",
            sentence:
                "Where each member of an object comes from, what it replaced, and which documents show it: one per principal and context.",
            query: WhyQuestion.parameters + Ownership.parameters,
            schema: WhyResponse.schema,
            answer: { request, context throws(Problem) in
                .json(try await WhyQuestion(request).answer(in: context))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/objects/{model}/{id}/documents",
            sentence:
                "The documents that show an object, the newest first. A page may be short, or empty with a next: then there is more to look through.",
            query: Paging.parameters + Ownership.parameters,
            schema: WhyResponse.documentsSchema,
            answer: { request, context throws(Problem) in
                .json(try await ShowingQuestion(request).answer(in: context))
            }
        ),
    ]
}
