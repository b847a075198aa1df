@testable package import CachePolicy
@testable package import HTTPSemantics

/// Sun, 06 Nov 1994 08:49:37 GMT, the date in the RFCs' examples.
package let exampleDate: Int64 = 784_111_777

/// Fields from pairs, as a table spells them.
package func fields(_ lines: [(String, String)]) -> Fields {
    Fields(lines.map { Field($0.0, $0.1) })
}

package func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

package func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

package func date(_ seconds: Int64) -> String { text(HTTPDate.format(seconds)) }

/// The directives of a request with this `Cache-Control`.
package func asking(_ cacheControl: String) -> RequestDirectives {
    RequestDirectives(fields: fields([("Cache-Control", cacheControl)]))
}

/// A request with these fields.
package func request(_ method: String = "GET", _ lines: [(String, String)] = []) -> Request {
    Request(method: method, target: "/", fields: fields(lines))
}

/// The policy of a GET's 200 with these fields, asked for and received at `exampleDate`.
package func policy(
    _ lines: [(String, String)],
    status: Int = 200,
    request: Request = request(),
    requestTime: Int64 = exampleDate,
    responseTime: Int64 = exampleDate,
    shared: Bool = false,
    targets: [String] = ["Larder-Cache-Control"],
    route: CacheOverrides = CacheOverrides()
) -> ResponsePolicy {
    var settings = CachePolicySettings()
    settings.isShared = shared
    settings.targets = targets
    return ResponsePolicy(
        request: request,
        status: status,
        fields: fields(lines),
        times: ExchangeTimes(request: requestTime, response: responseTime),
        settings: settings,
        route: route
    )
}

extension Reuse {
    /// Whether it may be sent at once without asking the upstream first.
    package var isServable: Bool {
        switch self {
        case .fresh: true
        case .stale(_, _, let allowed): !allowed.isDisjoint(with: [.byRequest, .whileRevalidating])
        case .mustValidate: false
        }
    }
}
