import Store

/// What `GET /explain` asks: a URL, and the request that would be sent for it.
struct ExplainQuestion: Sendable, Equatable {
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

    var url: String
    var fields: [String]
    var method: String
    var upstream: String?

    init(_ request: AdminRequest) throws(Problem) {
        guard let url = request.value("url") else { throw .badRequest("url is missing: say which URL is meant") }
        self.url = url
        fields = request.query.filter { $0.name == "header" }.map(\.value)
        method = request.value("method") ?? "GET"
        upstream = request.value("upstream")
    }
}

extension Parts {
    func explain(_ question: ExplainQuestion) async throws(Problem) -> Explanation {
        let imagined = try imagine(question)
        return try await asked { () throws(StoreError) in try await proxy.explain(imagined) }
    }

    /// The request that is asked about.
    private func imagine(_ question: ExplainQuestion) throws(Problem) -> ImaginedRequest {
        let url: AskedURL
        do {
            url = try AskedURL(question.url, of: upstreams, at: settings.listen, named: question.upstream)
        } catch {
            throw .badRequest(error.description)
        }
        do {
            return try ImaginedRequest(
                question.method,
                url,
                fields: question.fields,
                limits: settings.httpLimits,
                listen: settings.listen
            )
        } catch {
            throw error.problem
        }
    }
}

extension ImaginedRequestError {
    fileprivate var problem: Problem {
        switch self {
        case .unreadable: .badRequest(description)
        case .refused: Problem(422, description)
        }
    }
}
