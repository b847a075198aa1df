import Foundation
import Testing

@testable import Admin
@testable import HTTPSemantics

/// What the tests of the admin side's answers have in common: a daemon, its service, and questions to it.
protocol AdminServiceFixtures {
    var daemon: AdminFixture { get }
}

extension AdminServiceFixtures {
    var service: AdminService { AdminService(daemon.core) }

    func ask(
        _ method: String,
        _ target: String,
        body: String = "",
        token: String? = "correct-horse-battery",
        accept: String? = nil,
        isTrusted: Bool = false
    ) async throws -> AdminResponse {
        var fields = Fields()
        if let token { fields.append("Authorization", "Bearer \(token)") }
        if let accept { fields.append("Accept", accept) }
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        let request = AdminRequest(
            method: method,
            path: parts[0],
            query: parts.count == 2 ? parts[1] : nil,
            fields: fields,
            body: Array(body.utf8)
        )
        return await service.respond(try #require(request), isTrusted: isTrusted)
    }

    func json(_ response: AdminResponse) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
    }

    func rows(_ target: String) async throws -> Int {
        (try json(await ask("GET", target))["objects"] as? [[String: Any]])?.count ?? -1
    }
}
