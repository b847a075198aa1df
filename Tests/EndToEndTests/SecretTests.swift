import Foundation
import TestSupport
import Testing

/// `secret` members: shown to whoever asked, kept from everything that stays.
@Suite(.scripts) struct SecretTests {
    private static let value = "sEcReT-5c1f"
    private static let body =
        #"{"id":1,"name":"n","auth":{"token":"\#(value)"},"owner":{"id":2,"auth":{"token":"\#(value)"}}}"#

    private static func config(_ origin: Origin, secret: String = "secret: [auth.token]") -> String {
        """
        upstreams: { api: { url: "\(origin.url)" } }
        models:
          Thing:
            identity: id
            \(secret)
            properties: { name: { from: name, length: [2, 9] }, owner: { from: owner, model: Thing } }
        routes:
          - { path: "things/{id:#}", model: Thing }
        """
    }

    /// Whether any file of the store, its log included, holds the secret.
    private static func isOnDisk(_ larder: Larder) -> Bool {
        larder.folder.names.filter { $0 != "larder.yaml" }.contains { larder.folder.bytes($0).contains(value) }
    }

    @Test func `a secret member reaches the client, but no file, list or log`() throws {
        let origin = try Origin { _ in .json(Self.body, Fresh.tagged("a")) }
        let larder = try Larder(origin, config: Self.config(origin))
        for _ in 0..<2 { #expect(try larder.get("/things/1").text == Self.body) }
        #expect(try larder.waitForObjects(2, of: "Thing"))
        // From memory the second time, and the mapped view without it.
        #expect(origin.count() == 1)
        #expect(try larder.get("/things/1", ["Larder-View": "mapped"]).text == #"{"id":1,"owner":{"id":2}}"#)
        for path in [
            "/objects/Thing", "/objects/Thing/1?view=mapped", "/documents", "/warnings", "/explain?url=/things/1",
        ] {
            #expect(try !larder.admin("GET", path).text.contains(Self.value), "\(path)")
        }
        #expect(try !larder.sql("SELECT * FROM Thing").joined().contains(Self.value))
        #expect(!Self.isOnDisk(larder))
        // A body that cannot be read may hold one; it is passed on and not kept either.
        origin.behave { _ in .json(String(Self.body.dropLast()), Fresh.hour) }
        #expect(try larder.get("/things/3").text == String(Self.body.dropLast()))
        larder.kill()
        #expect(!Self.isOnDisk(larder))
        #expect(!larder.log.contains(Self.value))
    }

    @Test func `a member that becomes secret is erased from the file at the next start`() throws {
        let origin = try Origin { _ in .json(Self.body, Fresh.hour) }
        let larder = try Larder(origin, config: Self.config(origin, secret: "local: [score]"))
        _ = try larder.get("/things/1")
        #expect(try larder.waitForObjects(2, of: "Thing"))
        #expect(Self.isOnDisk(larder))
        _ = try larder.folder.write(Self.config(origin), to: "larder.yaml")
        try larder.restart()
        #expect(try eventually { try larder.count()["objects"] as? Int == 0 })
        #expect(eventually { !Self.isOnDisk(larder) })
        #expect(larder.log.contains("are now declared secret"))
        _ = try larder.get("/things/1")
        #expect(try larder.waitForObjects(2, of: "Thing"))
        // Once is enough: what is known without it stays.
        try larder.restart()
        #expect(try larder.count()["objects"] as? Int == 2)
        #expect(!Self.isOnDisk(larder))
    }

    @Test func `a response that repeats its request's token in any spelling is in no file, and served from memory`()
        throws
    {
        let token = "tok+5ecret/value"
        let spellings = [
            token, #"tok\u002B5ecret\/value"#, "tok%2b5ecret%2Fvalue", "tok&#43;5ecret/value",
            Data("user:\(token)".utf8).base64EncodedString(),
        ]
        let origin = try Origin { request in
            let number = Int(request.path.dropFirst()) ?? 0
            return .json(#"{"mark":"repeats-it","token":"\#(spellings[number])"}"#, Fresh.hour)
        }
        let larder = try Larder(origin)
        for _ in 0..<2 {
            for number in spellings.indices {
                let response = try larder.get("/\(number)", ["Authorization": "Bearer \(token)"])
                #expect(response.text.contains(spellings[number]))
            }
        }
        #expect(origin.count() == spellings.count)
        // The writer takes responses in their order, so that this one is stored last.
        origin.behave { _ in .json(#"{"mark":"repeats-nothing"}"#, Fresh.hour) }
        _ = try larder.get("/other", ["Authorization": "Bearer \(token)"])
        #expect(try eventually { try larder.count()["documents"] as? Int == 1 })
        larder.kill()
        let files = larder.folder.names.map { larder.folder.bytes($0) }
        #expect(files.contains { $0.contains("repeats-nothing") })
        #expect(!files.contains { $0.contains("repeats-it") })
    }
}
