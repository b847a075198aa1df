import Admin
import Proxy
import Settings

/// What `GET /explain` answers.
extension Parts {
    func explain(_ question: ExplainQuestion) async throws(Problem) -> Explanation {
        let imagined = try imagine(question)
        do {
            return try await proxy.explain(imagined)
        } catch {
            throw Problem(error)
        }
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
