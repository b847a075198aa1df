@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy

extension ServedRequest {
    /// A request that was served like this.
    static func sample(route: String?, _ outcome: Outcome, status: Int = 200, seconds: Double = 0) -> ServedRequest {
        let client = ClientAddress(peer: [127, 0, 0, 1], at: .tcp(host: "127.0.0.1", port: 1))
        var served = ServedRequest(client: client, method: "GET", url: "/users/1", upstream: "github")
        (served.route, served.outcome, served.status, served.seconds) = (route, outcome, status, seconds)
        return served
    }
}
