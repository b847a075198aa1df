/// How the answers to a request are to be read.
extension Demand {
    /// What of it bears on them.
    var facts: RequestFacts { RequestFacts(method: request.method, fields: request.fields) }

    /// What an answer to it says of its own use, and the configuration of it.
    ///
    /// Times are in seconds since 1970.
    func policy(status: Int, fields: Fields, requestTime: Int64, responseTime: Int64) -> ResponsePolicy {
        ResponsePolicy(
            request: facts,
            status: status,
            fields: fields,
            requestTime: requestTime,
            responseTime: responseTime,
            settings: upstream.policySettings,
            route: overrides
        )
    }
}
