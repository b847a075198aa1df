import Foundation
import TestSupport
import Testing

/// What is kept, in memory and on disk, has bounds, whatever clients and upstreams do.
@Suite(.scripts) struct BoundsTests {
    @Test func `responses to clients that never read do not pile up`() throws {
        let body = [UInt8](repeating: UInt8(ascii: "x"), count: 4_000_000)
        let origin = try Origin { _ in .body(body, Fresh.hour) }
        let limits = ["limits: { document: 4MiB }", "memory: { maximum_size: 8MiB }", "store: { maximum_size: 16MiB }"]
        let larder = try Larder(config: Configs.plain(origin, top: limits))
        let before = larder.residentMemory
        let clients = try (0..<60).map { number in
            let client = try larder.client()
            try client.send("GET /x\(number) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return client
        }
        // Some wait for one of the upstream's connections, which the others occupy.
        origin.waitForRequests(40, limit: .seconds(3))
        pause(.milliseconds(500))
        // 60 of 4 MB would be 240; flights hold 8 × 4, and what is on its way to the store as much again.
        #expect(larder.residentMemory - before < 160 << 20)
        _ = clients
    }

    @Test func `pipelined requests wait until their client reads`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            let response = OriginResponse.text(String(repeating: "x", count: 2_000), Fresh.hour)
            return request.path == "/slow" ? response.after(gate) : response
        }
        let larder = try Larder(config: Configs.plain(origin))
        _ = try larder.get("/x")
        let request = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let ahead = String(repeating: request, count: 2_500)
        let before = larder.residentMemory
        let clients = try (0..<300).map { number in
            let client = try larder.client()
            // The first response of some is slow; the others do not take theirs.
            let first = number % 2 == 0 ? "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n" : request
            let socket = client.socket
            startThread { try? socket.send((first + ahead).utf8) }
            return client
        }
        // Each has been read from.
        #expect(try larder.waitForConnections(300))
        #expect(eventually { (try? larder.get("/x").status) == 200 })
        pause(.seconds(1))
        // They have sent 30 MB, and are to get 300 times 5 MB.
        #expect(larder.residentMemory - before < 25 << 20, "\((larder.residentMemory - before) >> 10) KiB")
        gate.open()
        for client in clients.prefix(4) {
            for _ in 0...2_500 { #expect(try client.response().status == 200) }
        }
    }

    @Test func `of a response that varies by an ever-changing field only the 64 latest variants are kept`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour + ["Vary": "X-Request-Id"]) }
        let larder = try Larder(origin)
        let client = try larder.client()
        for number in 1...200 { #expect(try client.get("/x", ["X-Request-Id": "\(number)"]).status == 200) }
        #expect(try eventually { try larder.documents() == 64 })
        try larder.restart()
        #expect(try larder.get("/x", ["X-Request-Id": "200"]).isHit)
        #expect(try larder.get("/x", ["X-Request-Id": "1"]).isHit == false)
    }

    @Test func `idle clients leave file descriptors for the upstream and the store`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            arguments: ["--upstream", origin.url],
            folder: TemporaryFolder(),
            startedBy: ["bash", "-c", #"ulimit -n 128; exec "$0" "$@""#]
        )
        let first = try larder.client()
        #expect(try first.get("/x").status == 200)
        let idle = (0..<200).compactMap { _ in try? larder.client() }
        // A new connection to the upstream, and a look at the disk.
        origin.closeConnections()
        for number in 0..<5 { #expect(eventually { (try? larder.get("/\(number)"))?.status == 200 }) }
        #expect(!larder.log.contains("no connections accepted"))
        _ = idle
    }

    @Test func `responses to writes share the bound of all bodies, and one beyond it counts as without a body`()
        throws
    {
        let gate = Gate()
        let count = 24
        let padding = String(repeating: "x", count: 60_000)
        let origin = try Origin { request in
            guard request.method == "PATCH" else {
                let users = (1...count).map { #"{"id":\#($0),"name":"old"}"# }.joined(separator: ",")
                return .json("[\(users)]", Fresh.hour)
            }
            let id = request.path.split(separator: "/").last ?? ""
            return OriginResponse.json(#"{"id":\#(id),"name":"new","padding":"\#(padding)"}"#).split(
                before: 1,
                by: gate
            )
        }
        // Eight documents are the bound.
        let larder = try Larder(config: Configs.blog(origin, top: ["limits: { document: 64KiB }"]))
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(count, of: "User"))
        let writes = Background {
            try together(count) { number in try larder.request("PATCH", "/users/\(number + 1)", body: "{}") }
        }
        #expect(origin.waitForRequests(1 + count))
        gate.open()
        let answers = try writes.value()
        #expect(answers.allSatisfy { $0.status == 200 && $0.body.count > 60_000 })
        // Somebody's new state was not held, and nobody was told of it: the list is asked for.
        #expect(try !larder.get("/users").isHit)
        // One at a time there is room for each: what is held is given back.
        #expect(try larder.waitForQuiet())
        for id in 1...count {
            #expect(try larder.request("PATCH", "/users/\(id)", body: "{}").status == 200)
        }
        let list = try larder.get("/users")
        #expect(list.isHit && !list.text.contains("old"))
    }
}
