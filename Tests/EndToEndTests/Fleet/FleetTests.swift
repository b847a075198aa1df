import Foundation
import TestSupport
import Testing

/// Several daemons with one server: what one of them knows, the others obey.
@Suite(.scripts, .enabled(if: RedisServer.isAvailable, "redis-server is not installed")) struct FleetTests {
    /// An upstream of items whose texts the test changes.
    private final class Items: Sendable {
        let texts = Monitor<[Int: String]>([1: "a", 2: "b"])
        let etag = Monitor(0)

        func json(_ id: Int) -> String { #"{"id":\#(id),"text":"\#(texts.current[id] ?? "")"}"# }

        func origin(_ fields: FieldLines = Fresh.hour) throws -> Origin {
            try Origin { [self] request in
                let id = Int(request.path.split(separator: "/").last ?? "") ?? 0
                switch request.method {
                case "PATCH":
                    texts.withLock { $0[id] = String(decoding: request.body, as: UTF8.self) }
                    return .empty(204)
                case _ where request.path == "/items":
                    return .json("[\(texts.current.keys.sorted().map(json).joined(separator: ","))]", fields)
                case _ where request.path == "/plain": return .text(texts.current[1] ?? "", fields)
                case _ where request.path == "/whose":
                    return .json(#"{"who":"\#(request["Authorization"] ?? "")"}"#, fields)
                case _ where request.path == "/nothing": return .empty(404, ["Cache-Control": "no-store"])
                default: return .json(json(id), fields)
                }
            }
        }
    }

    /// Asks until the response contains a text.
    private func eventuallyShows(_ text: String, _ machine: Larder, _ path: String) throws -> Bool {
        try eventually(within: .seconds(20)) { try machine.get(path).text.contains(text) }
    }

    @Test func `what one machine has fetched, another serves without the upstream, byte by byte`() throws {
        let items = Items()
        let fleet = try TestFleet(2, try items.origin(Fresh.tagged("one")))
        for path in ["/items/1", "/items", "/plain"] {
            let first = try fleet[0].get(path)
            #expect(try fleet[0].waitForQuiet())
            let explanation = try fleet[1].admin("GET", "/explain?url=\(path)").text
            #expect(explanation.contains("if another machine of the fleet has shared it, that is served"))
            var second = try fleet[1].get(path)
            #expect(
                try eventually(within: .seconds(20)) {
                    if !second.isHit { second = try fleet[1].get(path) }
                    return second.isHit
                }
            )
            #expect(second.body == first.body && second["ETag"] == first["ETag"], "\(path): \(second.cacheStatus)")
            #expect(fleet.origin.count(path) == 1, "\(path)")
        }
        #expect(try fleet[1].waitForObjects(2, of: "Item"))
    }

    @Test(.enabled(if: CommitBlocker.isAvailable))
    func `a response that another machine shared begins before its commit, and ends after it`() throws {
        let folder = TemporaryFolder()
        let gate = CommitBlocker(in: folder)
        let fleet = try TestFleet(2, try Items().origin(), environment: { $0 == 1 ? gate.environment : [:] })
        let list = try fleet[0].get("/items", TestFleet.asking)
        #expect(try fleet[0].waitForQuiet())
        // It has read what the list shows, so that nothing else is committed now.
        let position = try #require(list["Larder-Position"])
        _ = try fleet[1].get("/nothing", ["Larder-Position": position])
        #expect(try fleet[1].waitForQuiet())
        pause(.milliseconds(500))
        let count = gate.count
        gate.close()
        let socket = try Socket.connect(port: fleet[1].port)
        try socket.send(Array("GET /items HTTP/1.1\r\nHost: 127.0.0.1:\(fleet[1].port)\r\n\r\n".utf8))
        var received: [UInt8] = []
        while !String(decoding: received, as: UTF8.self).contains(list.text.dropLast()) {
            let bytes = try socket.receive()
            guard !bytes.isEmpty else { break }
            received += bytes
        }
        let early = String(decoding: received, as: UTF8.self)
        #expect(gate.waitForCommit(after: count))
        #expect(early.hasSuffix("\r\n\r\n" + list.text.dropLast()), "\(early)")
        #expect(early.contains("Cache-Status: larder; hit"), "\(early)")
        // Whoever asks meanwhile waits for the commit. So does one who asks for part of it, or has a condition.
        let machine = fleet[1]
        let others = [[:], ["Range": "bytes=0-3"], ["If-None-Match": "\"x\""]].map { (fields: FieldLines) in
            Background { try machine.get("/items", fields) }
        }
        try socket.limit(.milliseconds(500))
        #expect(throws: SocketError.self) { try socket.receive() }
        gate.open()
        try socket.limit(.seconds(60))
        #expect(try socket.receive() == Array(list.text.utf8.suffix(1)))
        for other in others { #expect(try other.value().isHit) }
        #expect(fleet.origin.count("/items") == 1)
    }

    @Test func `a response that another machine shared is served with the newer values that are known here`() throws {
        let items = Items()
        let fleet = try TestFleet(2, try items.origin())
        _ = try fleet[0].get("/items")
        #expect(try fleet[0].waitForQuiet())
        // What is closer together than the clocks' error is in doubt.
        pause(.milliseconds(500))
        items.texts.withLock { $0[1] = "new" }
        #expect(try fleet[1].get("/items/1").text == items.json(1))
        let list = try fleet[1].get("/items")
        #expect(list.isHit && list.text == "[\(items.json(1)),\(items.json(2))]", "\(list.cacheStatus) \(list.text)")
        #expect(fleet.origin.count("/items") == 1)
    }

    @Test func `on no machine a principal gets a response that another principal has fetched`() throws {
        let fleet = try TestFleet(2, try Items().origin())
        func whose(_ machine: Int, _ name: String?) throws -> String {
            let fields: FieldLines = name.map { ["Authorization": "Bearer \($0)"] } ?? [:]
            return try fleet[machine].get("/whose", fields).text
        }
        for name in ["ada", "bela", nil] {
            let expected = #"{"who":"\#(name.map { "Bearer \($0)" } ?? "")"}"#
            #expect(try whose(0, name) == expected)
            #expect(try fleet[0].waitForQuiet())
            #expect(try whose(1, name) == expected)
        }
        #expect(fleet.origin.count("/whose") >= 3)
    }

    @Test func `a write through one machine is seen on the others, at once by clients that send its position`() throws {
        let items = Items()
        let fleet = try TestFleet(3, try items.origin())
        for machine in fleet.machines {
            for path in ["/items/1", "/items"] { _ = try machine.get(path) }
        }
        for (number, writer) in fleet.machines.enumerated() {
            let written = try writer.request("PATCH", "/items/1", TestFleet.asking, body: "written\(number)")
            #expect(written.status == 204)
            let position = try #require(written["Larder-Position"])
            #expect(position.hasPrefix("api="))
            for machine in fleet.machines {
                for path in ["/items/1", "/items"] {
                    let read = try machine.get(path, ["Larder-Position": position])
                    #expect(read.text.contains("written\(number)"), "\(path): \(read.cacheStatus)")
                    #expect(read["Larder-Position"] != nil)
                }
            }
            items.texts.withLock { $0[1] = "other\(number)" }
            _ = try writer.request("PATCH", "/items/1", body: "again\(number)")
            for machine in fleet.machines { #expect(try eventuallyShows("again\(number)", machine, "/items")) }
        }
    }

    @Test func `lists of another machine show the values of a write's response, without a fetch`() throws {
        let text = Monitor("a")
        let origin = try Origin { request in
            if request.method == "PATCH" { text.withLock { $0 = String(decoding: request.body, as: UTF8.self) } }
            let item = #"{"id":1,"text":"\#(text.current)"}"#
            return .json(request.path == "/items" ? "[\(item)]" : item, request.method == "GET" ? Fresh.hour : [:])
        }
        let fleet = try TestFleet(2, origin)
        for machine in fleet.machines {
            _ = try machine.get("/items")
            #expect(try machine.waitForQuiet())
        }
        let asked = origin.count("/items")
        pause(.milliseconds(500))
        for (number, machine) in fleet.machines.enumerated() {
            #expect(try machine.request("PATCH", "/items/1", body: "written\(number)").status == 200)
            for reader in fleet.machines { #expect(try eventuallyShows("written\(number)", reader, "/items")) }
            // What is closer together than the clocks' error is in doubt.
            pause(.milliseconds(500))
        }
        #expect(origin.count("/items") == asked)
    }

    @Test func `a value that one machine has observed replaces an older one on the others`() throws {
        let items = Items()
        let fleet = try TestFleet(2, try items.origin())
        _ = try fleet[1].get("/items/1")
        #expect(try fleet[1].waitForQuiet())
        items.texts.withLock { $0[1] = "new" }
        let seen = try fleet[0].get("/items", TestFleet.asking)
        #expect(seen.text.contains("new"))
        let position = try #require(seen["Larder-Position"])
        let read = try fleet[1].get("/items/1", ["Larder-Position": position])
        #expect(read.isHit && read.text == items.json(1), "\(read.cacheStatus) \(read.text)")
        #expect(fleet.origin.count("/items/1") == 1)
    }

    @Test func `a response has a position only once its values have been announced`() throws {
        let items = Items()
        let fleet = try TestFleet(2, try items.origin())
        let known = try #require(try fleet[0].get("/items/1", TestFleet.asking)["Larder-Position"])
        let holder = try LockedStoreTests.lock(fleet[0])
        items.texts.withLock { $0[1] = "new" }
        // Its end cannot wait for the commit, and nothing is announced without one.
        let seen = try fleet[0].get("/items", ["Larder-Position": known])
        #expect(seen.text.contains("new") && seen["Larder-Position"] == nil, "\(seen.fields.text)")
        holder.signal(SIGKILL)
        #expect(try eventually { try fleet[0].get("/items", TestFleet.asking)["Larder-Position"] != nil })
    }

    @Test func `two machines that are asked for one URL at once share a fetch`() throws {
        let gate = Gate()
        let items = Items()
        let json = items.json(1)
        let fleet = try TestFleet(2, try items.origin())
        fleet.origin.behave { _ in OriginResponse.json(json, Fresh.hour).after(gate) }
        let (first, second) = (fleet[0], fleet[1])
        let one = Background { try first.get("/items/1") }
        #expect(fleet.origin.waitForRequests(1, "/items/1"))
        let other = Background { try second.get("/items/1") }
        pause(.milliseconds(300))
        #expect(fleet.origin.count("/items/1") == 1)
        gate.open()
        #expect(try one.value().text == json)
        #expect(try other.value().text == json)
        #expect(fleet.origin.count("/items/1") == 1)
    }

    @Test func `a clean for the fleet removes a document from every machine of it`() throws {
        let fleet = try TestFleet(3, try Items().origin())
        for machine in fleet.machines {
            for path in ["/items/1", "/items/2"] { _ = try machine.get(path) }
            #expect(try machine.waitForDocuments(2))
        }
        let dry = try fleet[0].command("clean", "--url", "/items/1", "--fleet", "--dry-run")
        #expect(dry.end == .exited(0), "\(dry.errors)")
        let done = try fleet[0].command("clean", "--url", "/items/1", "--fleet")
        #expect(done.end == .exited(0) && done.errors.contains("api"), "\(done.errors)")
        for machine in fleet.machines { #expect(try machine.waitForDocuments(1)) }
        let alone = try Larder(fleet.origin)
        let refused = try alone.command("clean", "--all", "--fleet")
        #expect(refused.end == .exited(1) && refused.errors.contains("no fleet"), "\(refused.errors)")
    }

    @Test func `a webhook at one machine invalidates what shows its object on the others`() throws {
        let items = Items()
        let secrets = TemporaryFolder()
        let secret = try secrets.write("secret\n", to: "secret")
        _ = try TestProcess.run("chmod", ["600", secret])
        let hook =
            #", webhook_signature: gitlab, webhooks: { items: { secret: "\#(secret)", objects: { item: Item } } }"#
        let fleet = try TestFleet(2, try items.origin(), upstream: hook)
        for machine in fleet.machines { _ = try machine.get("/items") }
        items.texts.withLock { $0[1] = "elsewhere" }
        let sent = try fleet[0].request(
            "POST",
            "/.well-known/larder/webhooks/items",
            ["X-Gitlab-Token": "secret", "Content-Type": "application/json"],
            body: #"{"item":{"id":1}}"#
        )
        #expect(sent.status == 204, "\(sent.text)")
        #expect(try eventuallyShows("elsewhere", fleet[1], "/items"))
    }

    @Test func `without the server each machine works alone and says so, and catches up when the server is back`()
        throws
    {
        let items = Items()
        let fleet = try TestFleet(2, try items.origin())
        for machine in fleet.machines { _ = try machine.get("/items/1") }
        fleet.redis.kill()
        #expect(try eventually { try fleet[0].get("/items/1", TestFleet.asking)["Larder-Position"] == nil })
        let alone = try fleet[0].get("/items/1", TestFleet.asking)
        #expect(alone.isHit && alone.cacheStatus.contains("alone"), "\(alone.cacheStatus)")
        #expect(try fleet[0].get("/items/1").cacheStatus.contains("alone") == false)
        #expect(try fleet[0].request("PATCH", "/items/1", body: "written").status == 204)
        #expect(try fleet[0].get("/items/1").text.contains("written"))
        // Whoever sends a position that cannot be reached is served by the upstream.
        let asked = try fleet[1].get("/items/1", ["Larder-Position": "api=1-1-0"])
        #expect(!asked.isHit && asked.text.contains("written"))
        try fleet.redis.start()
        try fleet.waitUntilConnected()
        #expect(try fleet[1].request("PATCH", "/items/2", body: "later").status == 204)
        #expect(try eventuallyShows("later", fleet[0], "/items/2"))
    }

    @Test func `without the upstream a machine serves nothing to a client whose position it has not reached`() throws {
        let fleet = try TestFleet(1, try Items().origin())
        _ = try fleet[0].get("/plain")
        let position = try #require(try fleet[0].get("/plain", TestFleet.asking)["Larder-Position"])
        fleet.origin.stop()
        for (said, statuses) in [(position, [200]), ("api=1-1-0", [502, 504]), ("x", [502, 504]), ("", [200])] {
            let read = try fleet[0].get("/plain", ["Larder-Position": said])
            #expect(statuses.contains(read.status), "\(said): \(read.cacheStatus) \(read.text)")
        }
    }

    @Test(arguments: ["x", "api=", "api=1-2", "api=1-2-x", "api=-1-0-0", "api=99999999999999999999-0-0", "=1-1-1"])
    func `a request with an invalid position is sent to the upstream`(text: String) throws {
        let fleet = try TestFleet(1, try Items().origin())
        _ = try fleet[0].get("/plain")
        #expect(try fleet[0].get("/plain", TestFleet.asking).isHit)
        #expect(try fleet[0].get("/plain", ["Larder-Position": "other=1-1-1"]).isHit)
        let asked = try fleet[0].get("/plain", ["Larder-Position": text])
        #expect(asked.status == 200 && !asked.isHit, "\(text): \(asked.cacheStatus)")
        // It is Larder's own, and selects nothing.
        #expect(fleet.origin.requests.allSatisfy { $0["Larder-Position"] == nil })
    }
}
