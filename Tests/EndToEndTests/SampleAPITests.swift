import Foundation
import TestSupport
import Testing

/// The bundled sample API with its models and routes, as `make run` puts them together.
@Suite(.scripts) struct SampleAPITests {
    /// The sample API on a port of its own.
    final class SampleAPI: Sendable {
        let process: TestProcess
        let url: String

        init() throws {
            process = try TestProcess("python3", ["\(Repository.root)/config/sample-api.py", "--port", "0"])
            let process = process
            let hasStarted = eventually { process.output.contains("\n") }
            guard hasStarted, let address = process.output.split(separator: " ").last else {
                throw Larder.DidNotStart(description: "the sample API did not start: \(process.errors)")
            }
            url = address.trimmingCharacters(in: .newlines)
        }

        var port: UInt16 { UInt16(url.split(separator: ":").last ?? "") ?? 0 }
    }

    static func daemon(_ api: SampleAPI) throws -> Larder {
        let config = try String(contentsOfFile: "\(Repository.root)/config/sample.yaml", encoding: .utf8)
        return try Larder(config: config, environment: ["SAMPLE_API": api.url])
    }

    @Test func `the sample API sends correct validators and statuses`() throws {
        let api = try SampleAPI()
        let client = try Client(port: api.port)
        let list = try client.get("/posts?per_page=2")
        #expect(list.status == 200)
        #expect(list["Link"]?.contains("rel=\"next\"") == true)
        let etag = try #require(list["ETag"])
        #expect(try client.get("/posts?per_page=2", ["If-None-Match": etag]).status == 304)
        #expect(try client.get("/nothing").isProblem)
        #expect(try client.request("POST", "/posts", body: "{}").status == 422)
        let made = try client.request("POST", "/posts", body: #"{"title":"t","body":"b","author":1,"tags":["maps"]}"#)
        #expect(made.status == 201)
        let path = URL(string: made["Location"] ?? "")?.path ?? ""
        #expect(try client.get(path).object["title"] as? String == "t")
        #expect(try client.request("PATCH", path, ["If-Match": "\"x\""], body: #"{"title":"u"}"#).status == 412)
        #expect(try client.request("PATCH", path, body: #"{"title":"u"}"#).object["title"] as? String == "u")
        #expect(try client.request("DELETE", path).status == 204)
        #expect(try client.get(path).status == 404)
    }

    @Test func `every page comes back byte for byte, then as a hit`() throws {
        let api = try SampleAPI()
        let larder = try Self.daemon(api)
        let direct = try Client(port: api.port)
        let paths =
            ["/users", "/users?page=2", "/tags", "/tags/maps", "/search/posts?q=cache"]
            + (1...6).map { "/posts?page=\($0)" } + (1...30).map { "/posts/\($0)" } + (1...24).map { "/users/\($0)" }
            + (1...30).map { "/posts/\($0)/comments" }
        for path in paths { #expect(try larder.get(path).body == direct.get(path).body, "\(path)") }
        #expect(try larder.waitForDocuments(paths.count))
        for path in paths {
            let answer = try larder.get(path)
            #expect(answer.isHit, "\(path)")
            #expect(answer.body == (try direct.get(path).body), "\(path)")
        }
        let models = try larder.count()["models"] as? [String: Int]
        #expect(models?["User"] == 24)
        #expect(models?["Post"] == 120)
        #expect(models?["Tag"] == 12)
        #expect(try larder.sql("SELECT count(*) FROM User WHERE email LIKE '%@example.org'") == ["24"])
    }

    @Test func `a change made through Larder is visible everywhere at once`() throws {
        let api = try SampleAPI()
        let larder = try Self.daemon(api)
        let list = try larder.get("/posts?per_page=5")
        let posts = try #require(list.json as? [[String: Any]])
        let author = try #require(posts[0]["author"] as? [String: Any])
        let path = "/users/\(try #require(author["id"] as? Int))"
        #expect(try larder.waitForDocuments(1))
        let answer = try larder.request("PATCH", path, body: #"{"name":"Somebody Else"}"#)
        #expect(answer.status == 200)
        let after = try larder.get("/posts?per_page=5")
        #expect(after.isHit)
        #expect(
            ((after.json as? [[String: Any]])?[0]["author"] as? [String: Any])?["name"] as? String == "Somebody Else"
        )
        #expect(try larder.get(path).object["name"] as? String == "Somebody Else")
    }

    @Test func `paging by links stays with Larder`() throws {
        let api = try SampleAPI()
        let larder = try Self.daemon(api)
        var target: String? = "/users?per_page=7"
        var seen = Set<Int>()
        while let page = target {
            let answer = try larder.get(page)
            for user in answer.json as? [[String: Any]] ?? [] { seen.insert(user["id"] as? Int ?? 0) }
            let next = answer["Link"]?.components(separatedBy: ", ").first { $0.contains(#"rel="next""#) }
            target = next.map { String($0.dropFirst().prefix { $0 != ">" }) }
            if let link = target { #expect(link.hasPrefix(larder.url)) }
        }
        #expect(seen == Set(1...24))
    }
}
