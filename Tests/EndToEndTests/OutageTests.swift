import TestSupport
import Testing

/// Upstreams that cannot be reached, and the mode `auto`.
@Suite(.scripts) struct OutageTests {
    /// A daemon that has stored responses to `/stale` and `/strict`, neither of which is fresh.
    private static func stored(_ origin: Origin, _ top: String...) throws -> Larder {
        let larder = try Larder(config: Configs.plain(origin, upstream: ["patience: 100ms"], top: top))
        for path in ["/stale", "/strict"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(2))
        return larder
    }

    private static func origin() throws -> Origin {
        try Origin { request in
            .json("1", ["Cache-Control": request.path == "/strict" ? "max-age=0, must-revalidate" : "max-age=0"])
        }
    }

    private func isHeldBack(_ larder: Larder) throws -> Bool {
        let list = try larder.admin("GET", "/upstreams").object["upstreams"] as? [[String: Any]]
        return list?.first?["is_held_back"] as? Bool ?? false
    }

    /// Asks until the circuit is open.
    private func open(_ larder: Larder) throws {
        #expect(
            try eventually {
                _ = try larder.get("/none")
                return try isHeldBack(larder)
            }
        )
    }

    @Test func `while an upstream refuses connections, requests get a stale response or 504 at once`() throws {
        let origin = try Self.origin()
        let larder = try Self.stored(origin)
        origin.stop()
        try open(larder)
        let stale = try larder.get("/stale")
        #expect(stale.text == "1" && stale.cacheStatus.contains("hit;ttl="))
        #expect(stale.cacheStatus.contains("detail=unreachable"))
        // The client has its response a moment before it is in the list.
        #expect(
            try eventually {
                let served = try larder.admin("GET", "/requests").object["requests"] as? [[String: Any]]
                return served?.contains { $0["outcome"] as? String == "stale-if-error" } == true
            }
        )
        for (method, path) in [("GET", "/strict"), ("GET", "/none"), ("OPTIONS", "/x"), ("PUT", "/x")] {
            let answer = try larder.request(method, path)
            #expect(answer.status == 504 && answer.isProblem, "\(method)")
            #expect(answer["Retry-After"].flatMap(Int.init).map { 1...2 ~= $0 } == true, "\(method)")
            #expect(answer.text.contains("urn:larder:unreachable") && answer.text.contains("\(method) was not sent"))
            #expect(answer.cacheStatus == "larder;detail=unreachable")
        }
        #expect(try larder.get("/stale", ["Cache-Control": "no-cache"]).status == 504)
        let explanation = try larder.command("explain", larder.url + "/none", "--json").output
        #expect(explanation.contains("GET was not sent"))
        #expect(try larder.command("explain", larder.url + "/stale").output.contains("the upstream cannot be reached"))
        #expect(try larder.total("larder_unreachable_requests_total") > 5)
        try origin.restart()
        #expect(try eventually { try larder.get("/strict").status == 200 })
        #expect(try !isHeldBack(larder))
        #expect(larder.process.waitForErrors { $0.contains("the upstream is reachable again") })
        #expect(larder.log.ranges(of: "the upstream cannot be reached").count == 1)
    }

    @Test func `a write that is held back is not sent, and invalidates nothing`() throws {
        let origin = try Self.origin()
        let larder = try Self.stored(origin)
        origin.stop()
        try open(larder)
        #expect(try larder.request("PUT", "/stale", body: "2").status == 504)
        #expect(try larder.get("/stale").text == "1")
        try origin.restart()
        #expect(try eventually { try larder.get("/strict").status == 200 })
        #expect(origin.count(method: "PUT") == 0)
        #expect(try larder.request("PUT", "/stale", body: "2").status == 200)
        #expect(origin.count(method: "PUT") == 1)
    }

    @Test func `a probe opens a connection, and sends no request`() throws {
        let origin = try Self.origin()
        let larder = try Self.stored(origin)
        origin.stop()
        try open(larder)
        let count = origin.count()
        let connections = origin.connections
        try origin.restart()
        #expect(eventually { origin.connections > connections })
        #expect(eventually { (try? larder.get("/stale").cacheStatus.contains("fwd=stale")) == true })
        // Only what the client asked for has come.
        #expect(origin.count() == count + 1)
    }

    @Test func `while a server hangs stale responses come within the patience, and new ones once it responds`() throws {
        let gate = Gate()
        let origin = try Self.origin()
        let larder = try Self.stored(origin, "timeouts: { first_byte: 1s }")
        origin.behave { request in OriginResponse.json("2", Fresh.never).after(gate) }
        #expect(try larder.get("/stale").cacheStatus.contains("detail=patience"))
        // Once the first request has timed out, most requests are not sent any more.
        #expect(try eventually { try larder.get("/stale").cacheStatus.contains("detail=unreachable") })
        #expect(try eventually { try larder.get("/strict").text.contains("urn:larder:unreachable") })
        for _ in 0..<20 { #expect(try larder.get("/stale").text == "1") }
        gate.open()
        #expect(try eventually { try larder.get("/stale").text == "2" })
        #expect(try eventually { try larder.get("/strict").text == "2" })
    }

    @Test func `a server that hangs counts as slow before its first timeout, and stale responses come at once`() throws
    {
        let gate = Gate()
        let origin = try Self.origin()
        let routes = "routes: [{ path: strict, patience: 1h }, { path: waits, patience: 1h }]"
        let larder = try Larder(config: Configs.plain(origin, upstream: ["patience: 100ms", routes]))
        for path in ["/stale", "/waits", "/strict"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(3))
        origin.behave { request in OriginResponse.json("2", Fresh.never).after(gate) }
        func state() throws -> String? {
            let list = try larder.admin("GET", "/upstreams").object["upstreams"] as? [[String: Any]]
            return list?.first?["state"] as? String
        }
        #expect(
            try eventually {
                try larder.get("/stale").cacheStatus.contains("detail=patience") && state() == "slow"
            }
        )
        #expect(try larder.get("/waits").cacheStatus.contains("detail=patience"))
        let status = try larder.admin("GET", "/status")
        #expect(status.object["ok"] as? Bool == false && status.text.contains("does not respond in time"))
        #expect(try !isHeldBack(larder))
        // What may not be stale is sent, and waits.
        let (strict, missing) = (Background { try larder.get("/strict") }, Background { try larder.get("/none") })
        #expect(origin.waitForRequests(7))
        gate.open()
        #expect(try strict.value().text == "2" && missing.value().text == "2")
        #expect(try state() == "reachable")
        #expect(larder.process.waitForErrors { $0.contains("the upstream responds again") })
        #expect(larder.log.ranges(of: "the upstream does not respond in time").count == 1)
    }

    @Test func `a timeout on one path does not hold back requests for other paths`() throws {
        let gate = Gate()
        defer { gate.open() }
        let origin = try Origin { request in
            request.path == "/slow" ? .hang(gate) : .json("1", Fresh.never)
        }
        let larder = try Larder(config: Configs.plain(origin, top: ["timeouts: { first_byte: 3s }"]))
        let slow = Background { try larder.get("/slow") }
        var statuses: Set<Int> = []
        while !slow.isOver { statuses.insert(try larder.get("/quick").status) }
        #expect(try slow.value().text.contains("first_byte_timeout"))
        statuses.insert(try larder.get("/quick").status)
        #expect(statuses == [200])
    }

    @Test func `in the mode online every request is sent`() throws {
        let origin = try Self.origin()
        let larder = try Self.stored(origin, "mode: online")
        origin.stop()
        for _ in 0..<6 { #expect(try larder.get("/none").status == 502) }
        #expect(try larder.get("/stale").cacheStatus.contains("fwd=stale"))
        #expect(try !isHeldBack(larder))
        try origin.restart()
        #expect(try larder.get("/strict").status == 200)
        // auto goes by what it has seen itself.
        #expect(try larder.command("mode", "auto").output.contains("auto"))
        #expect(try larder.get("/none").status == 200)
    }

    @Test func `an upstream that comes and goes is asked again each time it is back`() throws {
        let origin = try Self.origin()
        let larder = try Self.stored(origin)
        for _ in 0..<4 {
            origin.stop()
            try open(larder)
            #expect(try larder.get("/stale").text == "1")
            try origin.restart()
            #expect(try eventually { try larder.get("/strict").status == 200 })
            #expect(try !larder.get("/strict").isHit)
        }
        #expect(try !isHeldBack(larder))
        // Two warnings at the most in ten seconds, however often it changes.
        #expect(larder.log.ranges(of: "the upstream cannot be reached").count <= 4)
    }

    @Test func `errors in whose place stored responses are served make an upstream failing, and that is seen`() throws {
        let status = Monitor(200)
        let origin = try Origin { _ in .json("1", ["Cache-Control": "max-age=0"], status: status.current) }
        let larder = try Self.stored(origin)
        status.withLock { $0 = 500 }
        for _ in 0..<6 {
            let answer = try larder.get("/stale")
            #expect(answer.status == 200 && answer.cacheStatus.contains("fwd-status=500"))
        }
        func state() throws -> String? {
            let list = try larder.admin("GET", "/upstreams").object["upstreams"] as? [[String: Any]]
            return list?.first?["state"] as? String
        }
        #expect(try eventually { try state() == "failing" })
        #expect(larder.process.waitForErrors { $0.contains("the upstream's responses fail") })
        status.withLock { $0 = 200 }
        #expect(try eventually { try larder.get("/stale").status == 200 && state() == "reachable" })
        #expect(larder.process.waitForErrors { $0.contains("the upstream's responses succeed again") })
        #expect(larder.log.ranges(of: "the upstream's responses").count == 2)
    }

    @Test func `while the upstream is unreachable, the mapped view of an object never requested is assembled`() throws {
        let user = #"{"id":1,"login":"ada","name":"x","company":null}"#
        let origin = try Origin { _ in .json("[\(user)]", Fresh.hour) }
        let bound = #"routes: [{ path: "people/{login}", model: User, object: { login: login } }]"#
        let larder = try Larder(config: Configs.blog(origin, upstream: [bound]))
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        origin.stop()
        try open(larder)
        let assembled = try larder.get("/people/ada", ["Larder-View": "mapped"])
        #expect(assembled.status == 200 && assembled.text.contains("ada"))
        #expect(assembled.cacheStatus.contains("detail=assembled"))
        #expect(try larder.get("/people/ada").text.contains("Larder-View: mapped"))
    }
}
