import CachePolicy
import HTTPSemantics
import HTTPServer

/// How the responses to a request are to be read.
extension Demand {
    /// What of it bears on them.
    var facts: RequestFacts { RequestFacts(method: request.method, fields: request.fields) }

    /// What a response to it says of its own use, and the configuration of it.
    ///
    /// - Parameters:
    ///   - requestTime: when the request was sent, and `responseTime` when the head of its response came, in seconds of the
    ///     store's clock.
    ///   - wall: the latter in seconds of the wall clock, with which `Date` is compared.
    func policy(
        status: Int,
        fields: Fields,
        requestTime: Int64,
        responseTime: Int64,
        wall: Int64
    ) -> ResponsePolicy {
        ResponsePolicy(
            request: facts,
            status: status,
            fields: fields,
            requestTime: requestTime,
            responseTime: responseTime,
            wall: wall,
            settings: upstream.policySettings,
            route: overrides
        )
    }
}
