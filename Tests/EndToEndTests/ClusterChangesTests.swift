import Foundation
import TestSupport
import Testing

/// Clusters on the admin side: their base means all of their objects, a concrete model those that are of it.
@Suite(.scripts) struct ClusterChangesTests {
    @Test func `changes, objects and why for a concrete model cover only its own objects`() throws {
        let origin = try Origin { request in
            if request.method == "DELETE" { return .empty(204) }
            return .json(
                #"[{"id":1,"type":"User","login":"u"},{"id":2,"type":"Bot","login":"b"},{"id":3,"type":"Org","login":"o"}]"#,
                Fresh.hour
            )
        }
        let config = """
            upstreams: { blog: { url: "\(origin.url)" } }
            models:
              Account:
                identity: id
                properties: { login: login }
                cluster: [{ model: Bot, if: { member: type, is: Bot } }, { model: Org, if: { member: type, is: Org } }]
              Bot: { base: Account, properties: { kind: type } }
              Org: { base: Account }
            routes:
              - { path: "accounts", model: [Account] }
              - { path: "accounts/{id}", model: Account, object: { id: id } }
            """
        let larder = try Larder(origin, config: config)
        _ = try larder.get("/accounts")
        #expect(try larder.waitForObjects(3, of: "Account"))
        func told(_ query: String) throws -> [String] {
            let answer = try larder.admin("GET", "/changes?since=0&\(query)", ["Accept": "application/json"])
            let rows = try #require(answer.object["changes"] as? [[String: Any]], "\(answer.text)")
            return rows.map { "\($0["kind"] ?? "") \($0["id"] ?? "")" }
        }
        #expect(try told("model=Account") == ["created 1", "created 2", "created 3"])
        #expect(try told("model=Bot") == ["created 2"])
        #expect(try told("model=Bot&model=Org") == ["created 2", "created 3"])
        let listener = try ChangeListener(larder, "model=Bot")
        _ = try larder.request("DELETE", "/accounts/3")
        _ = try larder.request("DELETE", "/accounts/2")
        #expect(try listener.next()?.text == "deleted Account 2")
        #expect(try told("model=Org") == ["created 3", "deleted 3"])
        let line = try larder.command("changes", "--model", "Bot").output
        #expect(line.contains("Account 2") && !line.contains("Account 3"), "\(line)")
        let bots = try larder.admin("GET", "/objects/Bot").object["objects"] as? [Any]
        #expect(bots?.isEmpty == true)
        // Of what nothing is known any more nobody can say what it was: whoever asks for any of them is told.
        #expect(try larder.admin("GET", "/objects/Bot/2/why").status == 200)
    }
}
