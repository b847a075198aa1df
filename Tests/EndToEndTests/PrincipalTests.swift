import Foundation
import TestSupport
import Testing

/// Nobody sees another's data, and credentials are stored nowhere.
@Suite(.scripts) struct PrincipalTests {
    /// An origin whose responses say whose they are.
    static func personal() throws -> Origin {
        try Origin { request in
            let whose = request["Authorization"] ?? request["Private-Token"] ?? request["Cookie"] ?? "nobody"
            return .json(#"[{"id":1,"login":"\#(whose.suffix(3))","name":"n"}]"#, Fresh.hour)
        }
    }

    @Test(
        arguments: [
            (["Authorization": "Bearer secret-aaa"], ["Authorization": "Bearer secret-bbb"]),
            (["Private-Token": "secret-aaa"], ["Private-Token": "secret-bbb"]),
            (["Cookie": "s=secret-aaa"], ["Cookie": "s=secret-bbb"]),
            (["Authorization": "Bearer secret-aaa"], [:]),
        ] as [(FieldLines, FieldLines)]
    )
    func `responses belong to the principal that asked`(one: FieldLines, other: FieldLines) throws {
        let origin = try Self.personal()
        let larder = try Larder(config: Configs.blog(origin))
        let first = try larder.get("/users", one)
        let second = try larder.get("/users", other)
        #expect(first.body != second.body)
        #expect(!second.isHit)
        #expect(try larder.waitForDocuments(2))
        // The objects are not mixed up either, although they have one identity.
        #expect(try larder.get("/users", one).body == first.body)
        #expect(try larder.get("/users", other).body == second.body)
        #expect(origin.count() == 2)
    }

    @Test func `requests with different tokens in the query have different principals`() throws {
        let origin = try Origin { .json(#""\#($0.target)""#, Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x?access_token=secret-aaa&page=1")
        #expect(origin.requests[0].target == "/x?access_token=secret-aaa&page=1")
        #expect(try !larder.get("/x?access_token=secret-bbb&page=1").isHit)
        #expect(try larder.get("/x?access_token=secret-aaa&page=1").isHit)
    }

    @Test func `no credential reaches the disk, the log or the admin side`() throws {
        let origin = try Origin { request in
            request.path == "/broken" ? .reset : .json(#"[{"id":1,"login":"ada"}]"#, Fresh.hour)
        }
        let config = Configs.blog(origin, top: ["log: { level: debug }"])
        let larder = try Larder(config: config)
        for path in ["/users", "/users?access_token=hidden-query&page=1", "/broken?access_token=hidden-query"] {
            _ = try larder.get(
                path,
                ["Authorization": "Bearer hidden-bearer", "Cookie": "s=hidden-cookie", "X-Api-Key": "hidden-key"]
            )
        }
        #expect(try larder.waitForDocuments(2))
        let documents = try larder.admin("GET", "/documents").body
        let warnings = try larder.admin("GET", "/warnings").body
        let metrics = try larder.admin("GET", "/metrics").body
        #expect(larder.terminate() == .exited(0))
        for secret in ["hidden-bearer", "hidden-query", "hidden-cookie", "hidden-key"] {
            for name in larder.folder.names where name != "larder.yaml" {
                #expect(!larder.folder.bytes(name).contains(secret), "\(secret) in \(name)")
            }
            for text in [documents, warnings, metrics, Array(larder.log.utf8)] { #expect(!text.contains(secret)) }
        }
    }

    @Test func `the principal key is readable by its owner only, and survives a restart`() throws {
        let origin = try Self.personal()
        let larder = try Larder(origin)
        _ = try larder.get("/users", ["Authorization": "Bearer secret-aaa"])
        #expect(try larder.waitForDocuments(1))
        for name in larder.folder.names where name.hasPrefix("larder.db") == false && name != "larder.yaml" {
            var status = stat()
            #expect(stat(larder.folder.file(name), &status) == 0)
            if name.contains("key") || name.contains("token") { #expect(status.st_mode & 0o777 == 0o600, "\(name)") }
        }
        try larder.restart()
        origin.stop()
        #expect(try larder.get("/users", ["Authorization": "Bearer secret-aaa"]).status == 200)
        #expect(try larder.get("/users", ["Authorization": "Bearer secret-bbb"]).status != 200)
    }

    @Test func `a credential from the config is used for reads, and for writes only where configured`() throws {
        let origin = try Origin { .json(#"{"as":"\#($0["Authorization"] ?? "nobody")"}"#, Fresh.hour) }
        let folder = TemporaryFolder()
        try folder.write("secret-own\n", to: "credential")
        chmod(folder.file("credential"), 0o600)
        func config(writes: Bool) -> String {
            """
            upstreams:
              api:
                url: \(origin.url)
                credential: { header: Authorization, from: "\(folder.file("credential"))", writes: \(writes) }
            """
        }
        let reading = try Larder(config: config(writes: false))
        #expect(try reading.get("/x").text.contains("secret-own"))
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let answer = try reading.request(method, "/x", body: "{}")
            #expect(answer.status == 403, "\(method)")
            #expect(answer.isProblem)
        }
        #expect(origin.count() == 1)

        let writing = try Larder(config: config(writes: true))
        #expect(try writing.request("POST", "/x", body: "{}").text.contains("secret-own"))
        #expect(!writing.log.contains("secret-own"))
        // Clients then may send none of their own.
        let own = try writing.get("/y", ["Authorization": "Bearer of-the-client"])
        #expect(own.status == 403 || own.text.contains("secret-own"))
        #expect(origin.requests.allSatisfy { $0["Authorization"]?.contains("of-the-client") != true })
    }
}
