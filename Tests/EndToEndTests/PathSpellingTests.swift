import Foundation
import TestSupport
import Testing

/// Paths of clients, paths of the upstream and URLs: commands and the admin side take each, and show the client's path.
@Suite(.scripts) struct PathSpellingTests {
    /// A daemon at `/shop` in front of an origin's `/v2`, with one stored order.
    private static func shop() throws -> (larder: Larder, origin: Origin) {
        let origin = try Origin { _ in .json(#"{"id":5}"#, Fresh.hour) }
        let config = """
            upstreams: { shop: { url: "\(origin.url)/v2", prefix: /shop, lag: 0s } }
            store: { withhold: 10s }
            models: { Order: { identity: id } }
            routes: [{ path: "orders/{id}", model: Order, object: { id: id } }]
            """
        let larder = try Larder(origin, config: config)
        #expect(try larder.get("/shop/orders/5").status == 200)
        #expect(try larder.waitForDocuments(1))
        return (larder, origin)
    }

    private static let spellings = ["/shop/orders/5", "/v2/orders/5"]

    @Test func `every list of requests and responses shows the client's path`() throws {
        let (larder, _) = try Self.shop()
        for _ in 0..<2 {
            let requests = try larder.admin("GET", "/requests").object["requests"] as? [[String: Any]] ?? []
            #expect(!requests.isEmpty && requests.allSatisfy { $0["url"] as? String == "/shop/orders/5" })
            // Now a hit from memory, which is noted because somebody watches.
            #expect(try larder.get("/shop/orders/5").isHit)
        }
        let documents = try larder.admin("GET", "/documents").object["documents"] as? [[String: Any]] ?? []
        #expect(documents.map { $0["url"] as? String } == ["/shop/orders/5"])
        let id = documents[0]["id"] as? Int ?? 0
        #expect(try larder.admin("GET", "/documents/\(id)").object["url"] as? String == "/shop/orders/5")
        let why = try larder.admin("GET", "/objects/Order/5/why").text
        #expect(why.contains(#""url":"/shop/orders/5""#) && !why.contains("/v2/"), "\(why)")
        #expect(try larder.command("documents").output.contains("/shop/orders/5"))
    }

    @Test(arguments: spellings)
    func `explain, documents and clean accept a client's and an upstream's path, and say which it is`(path: String)
        throws
    {
        let (larder, origin) = try Self.shop()
        let read = path == "/v2/orders/5" ? "the upstream's path" : "a client's path"
        let note = "read as \(read): clients ask for /shop/orders/5, which is /v2/orders/5 upstream"
        for url in [path, "\(origin.url)/v2/orders/5", "http://127.0.0.1:\(larder.port)/shop/orders/5"] {
            let explained = try larder.command("explain", url).output
            #expect(explained.contains("One response is stored"), "\(explained)")
            #expect(
                explained.contains(url == path ? note : "read as a URL: clients ask for /shop/orders/5"),
                "\(explained)"
            )
        }
        let documents = try larder.command("documents", "--url", path)
        #expect(documents.output.contains("/shop/orders/5") && documents.errors.contains(note), "\(documents)")
        let cleaned = try larder.command("clean", "--url", path)
        #expect(cleaned.output.hasPrefix("removed 1 object") && cleaned.errors.contains(note), "\(cleaned)")
        #expect(try larder.documents() == 0)
    }

    @Test func `a path that belongs to no upstream is refused with the known prefixes`() throws {
        let (larder, _) = try Self.shop()
        for command in [["documents", "--url", "/nowhere/5"], ["clean", "--url", "/nowhere/5"]] {
            let process = try larder.command(command[0], command[1], command[2])
            #expect(process.end == .exited(1), "\(process)")
            #expect(
                process.errors.contains("no upstream is configured for this path; prefixes are /shop"),
                "\(process)"
            )
        }
    }

    @Test(arguments: spellings) func `key and route accept a client's and an upstream's path, and say which it is`(
        path: String
    ) throws {
        let (larder, _) = try Self.shop()
        let config = larder.folder.file("larder.yaml")
        let read = path == "/v2/orders/5" ? "the upstream's path" : "a client's path"
        let note = "read as \(read): clients ask for /shop/orders/5, which is /v2/orders/5 upstream"
        let key = try Larder.run(["key", path, "--config", config])
        #expect(key.output.contains(note) && key.output.contains("key        /v2/orders/5"), "\(key)")
        let route = try Larder.run(["route", "GET", path, "--config", config])
        #expect(route.output.contains(note) && route.output.contains(#""orders/{id}" → Order"#), "\(route)")
    }
}
