import Testing

@testable import Admin
@testable import HTTPSemantics

@Suite struct CleanRequestTests {
    @Test func `conditions come from the query, the body or both`() throws {
        #expect(try read(query: "model=User&id=12") == CleanRequest(model: "User", id: "12"))
        #expect(try read(#"{"model": "User", "id": 12}"#) == CleanRequest(model: "User", id: "12"))
        #expect(
            try read(#"{"model": "User", "dry_run": true}"#, query: "older_than=7d&upstream=github&principal=anonymous")
                == CleanRequest(
                    model: "User",
                    upstream: "github",
                    principal: "anonymous",
                    olderThan: 604_800_000_000,
                    isDryRun: true
                )
        )
        #expect(try read(query: "route=users/*&dry_run") == CleanRequest(route: "users/*", isDryRun: true))
        #expect(try read(#"{"all": true, "model": null}"#) == CleanRequest(all: true))
    }

    @Test(arguments: [
        ("", nil), ("{}", nil), (#"{"dry_run": true}"#, nil), (#"{"all": false}"#, nil), (#"{"model": null}"#, nil),
        (#"{"model": ""}"#, nil), (#"{"all": true, "model": "User"}"#, nil), (#"{"id": "12"}"#, nil),
        (#"{"modle": "User"}"#, nil), (#"{"model": "User", "older": "1d"}"#, nil), (#"{"model": true}"#, nil),
        (#"{"all": "perhaps"}"#, nil), (#"{"older_than": "soon"}"#, nil), (#"{"older_than": 7}"#, nil),
        (#"{"older_than": "-1d"}"#, nil), (#"{"model": "User"}"#, "model=Repository"), ("", "model="),
        ("[]", "all=true"),
    ])
    func `an empty, contradictory or misspelled clean removes nothing`(body: String, query: String?) {
        #expect(throws: ProblemDocument.self) { try read(body, query: query) }
    }

    private func read(_ body: String = "", query: String? = nil) throws -> CleanRequest {
        let request = AdminRequest(method: "POST", path: "/clean", query: query, body: Array(body.utf8))
        return try CleanRequest(try #require(request))
    }
}
