/// What `GET /explain` asks: a URL, and the request that would be sent for it.
package struct ExplainQuestion: Sendable, Equatable {
    static let parameters = [
        AdminRoute.Parameter(
            name: "url",
            sentence: "A path as clients send it to Larder, or an absolute URL of Larder's or of an upstream.",
            isRequired: true
        ),
        AdminRoute.Parameter(
            name: "header",
            sentence: "A field of the request, as `Name: value`; may be repeated.",
            isRepeatable: true
        ),
        AdminRoute.Parameter(name: "method", sentence: "The method; GET unless given."),
        AdminRoute.Parameter(name: "upstream", sentence: "An upstream's name, where the URL leaves a choice."),
    ]

    package var url: String
    package var fields: [String]
    package var method: String
    package var upstream: String?

    init(_ request: AdminRequest) throws(Problem) {
        guard let url = request.value("url") else { throw .badRequest("url is missing: say which URL is meant") }
        self.url = url
        fields = request.query.filter { $0.name == "header" }.map(\.value)
        method = request.value("method") ?? "GET"
        upstream = request.value("upstream")
    }
}
