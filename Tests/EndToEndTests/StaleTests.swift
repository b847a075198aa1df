import Foundation
import TestSupport
import Testing

/// Serving stale (RFC 5861, RFC 9111 §4.2.4), and sparing an upstream that asks for it (RFC 9110 §10.2.3).
@Suite(.scripts) struct StaleTests {
    private static let revalidating: FieldLines = ["Cache-Control": "max-age=0, stale-while-revalidate=600"]

    @Test(arguments: [false, true])
    func `100 clients of a stale document cause one refresh`(isValidated: Bool) throws {
        let gate = Gate()
        let tag: FieldLines = isValidated ? ["ETag": "\"one\""] : [:]
        let origin = try Origin { _ in .json("1", Self.revalidating + tag) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        origin.behave { _ in
            (isValidated ? OriginResponse.notModified(Fresh.hour + tag) : .json("2", Fresh.hour)).after(gate)
        }
        let answers = try together(100) { _ in try larder.get("/x") }
        #expect(answers.allSatisfy { $0.text == "1" && $0.cacheStatus.contains("detail=stale") })
        #expect(origin.waitForRequests(2))
        gate.open()
        #expect(try eventually { try !larder.get("/x").cacheStatus.contains("detail=stale") })
        #expect(try larder.get("/x").text == (isValidated ? "1" : "2"))
        #expect(origin.count() == 2)
    }

    @Test(arguments: ["500", "closed", "refused"])
    func `a refresh that fails is not repeated for each request`(failure: String) throws {
        let origin = try Origin { _ in .json("1", Self.revalidating) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        origin.always(failure == "500" ? .json("no", status: 500) : OriginResponse(steps: [.close]))
        if failure == "refused" { origin.stop() }
        let began = ContinuousClock.now
        for _ in 0..<30 { #expect(try larder.get("/x").text == "1") }
        // Once at first, and once more for each second that has passed since.
        let seconds = Int((ContinuousClock.now - began).components.seconds)
        #expect(origin.count() <= 3 + seconds)
        // It goes on as soon as it may.
        if failure == "refused" { try origin.restart() }
        origin.always(.json("2", Fresh.hour))
        #expect(try eventually { try larder.get("/x").text == "2" })
    }

    @Test func `a refresh whose response may not be stored removes the stale one`() throws {
        let origin = try Origin { _ in .json("1", Self.revalidating) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        origin.always(.json("2", ["Cache-Control": "no-store"]))
        #expect(try larder.get("/x").text == "1")
        #expect(try eventually { try larder.get("/x").text == "2" })
        #expect(try larder.get("/x").text == "2")
    }

    @Test(arguments: [("HEAD", [:]), ("GET", ["Range": "bytes=0-0"]), ("GET", ["If-None-Match": "\"x\""])])
    func `a HEAD, a range or a conditional request refreshes the whole`(method: String, fields: [String: String]) throws
    {
        let origin = try Origin { _ in .json("1", Self.revalidating) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        origin.always(.json("2", Fresh.hour))
        let lines = FieldLines(fields.map { FieldLines.Line(name: $0.key, value: $0.value) })
        #expect(try larder.request(method, "/x", lines).cacheStatus.contains("detail=stale"))
        #expect(origin.waitForRequests(2))
        #expect(origin.requests[1].method == "GET")
        #expect(origin.requests[1]["Range"] == nil)
        #expect(try eventually { try larder.get("/x").text == "2" })
        #expect(origin.count() == 2)
    }

    @Test(arguments: ["\"other\"", nil])
    func `a refresh is repeated without conditions if its 304 does not apply`(tag: String?) throws {
        let origin = try Origin { _ in .json("1", Self.revalidating + ["ETag": "\"one\"", "Vary": "X-A"]) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        // Of two that are known by tags, one without a tag says nothing.
        _ = try larder.get("/x", ["X-A": "1"])
        #expect(try larder.waitForDocuments(2))
        origin.behave { request in
            request["If-None-Match"] == nil ? .json("2", Fresh.hour) : .notModified(["ETag": tag ?? "W/\"none\""])
        }
        #expect(try larder.get("/x").text == "1")
        #expect(try eventually { try larder.get("/x").text == "2" })
    }

    /// Ways in which an upstream fails.
    private static let failures: [String] = [
        "500", "502", "503", "504", "429", "403 limited", "closed", "reset", "no HTTP", "refused", "silence",
    ]

    private static func fail(_ origin: Origin, _ failure: String) {
        switch failure {
        case "closed": origin.always(OriginResponse(steps: [.close]))
        case "reset": origin.always(.reset)
        case "no HTTP": origin.always(.raw("SSH-2.0-x\r\n\r\n"))
        case "refused": origin.stop()
        case "silence": origin.always(.hang(Gate()))
        case "403 limited": origin.always(.json("no", ["X-RateLimit-Remaining": "0"], status: 403))
        default: origin.always(.json("no", status: Int(failure) ?? 500))
        }
    }

    @Test(arguments: failures)
    func `stale-if-error applies to every kind of failure`(failure: String) throws {
        let origin = try Origin { _ in .json("1", ["Cache-Control": "max-age=0, stale-if-error=600"]) }
        // Who is not silent has all the time it takes.
        let limits = failure == "silence" ? ["timeouts: { first_byte: 2s }", "patience: forever"] : []
        let larder = try Larder(config: Configs.plain(origin, upstream: limits))
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        Self.fail(origin, failure)
        let answer = try larder.get("/x")
        #expect(answer.status == 200)
        #expect(answer.text == "1")
        #expect(answer.cacheStatus.contains("detail=stale"))
        #expect(try larder.get("/x").text == "1")
    }

    @Test(arguments: [
        ("max-age=0, must-revalidate, stale-if-error=600", false), ("no-cache, stale-if-error=600", false),
        ("max-age=0, proxy-revalidate, stale-if-error=600", true), ("s-maxage=0, stale-if-error=600", true),
        ("max-age=0, must-revalidate, stale-while-revalidate=600", false),
        ("no-cache, stale-while-revalidate=600", false), ("s-maxage=0, stale-while-revalidate=600", true),
    ])
    func `no stale response is served where the upstream forbids it`(directives: String, isShared: Bool) throws {
        let origin = try Origin { _ in .json("1", ["Cache-Control": directives, "ETag": "\"one\""]) }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["shared: \(isShared)"]))
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        Self.fail(origin, "503")
        #expect(try larder.get("/x").status == 503)
        Self.fail(origin, "closed")
        #expect(try larder.get("/x").status == 504)
        Self.fail(origin, "refused")
        #expect(try larder.get("/x").status == 504)
    }

    @Test func `a route's stale applies to refreshes and failures, whatever the upstream says`() throws {
        let origin = try Origin { _ in .json("1", ["Cache-Control": "max-age=0, must-revalidate"]) }
        let larder = try Larder(config: Configs.plain(origin, top: ["routes: [{ path: x, stale: 1h }]"]))
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        Self.fail(origin, "503")
        #expect(try larder.get("/x").text == "1")
        #expect(origin.waitForRequests(2))
        #expect(try larder.get("/x", ["Cache-Control": "max-age=0"]).text == "1")
        origin.always(.json("2", Fresh.hour))
        #expect(try eventually { try larder.get("/x").text == "2" })
    }

    @Test func `a client that requires the upstream does not get the stale response that others get`() throws {
        let gate = Gate()
        let origin = try Origin { _ in .json("1", Fresh.never) }
        let larder = try Larder.patient(origin)
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        origin.behave { _ in OriginResponse.json("no", status: 503).after(gate) }
        let leader = Background { try larder.get("/x") }
        origin.waitForRequests(2)
        let follower = Background { try larder.get("/x", ["Cache-Control": "no-cache"]) }
        #expect(try larder.waitForFollowers(1))
        gate.open()
        #expect(try leader.value().text == "1")
        #expect(try follower.value().status == 503)
    }

    // MARK: Retry-After

    @Test(arguments: [429, 403, 503])
    func `while an upstream asks for a pause, it gets no request, and stale responses are served`(status: Int) throws {
        let origin = try Origin { _ in .json("1", Fresh.never) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        origin.always(.json("no", ["Retry-After": "600"], status: status))
        let first = try larder.get("/x")
        #expect(first.text == "1")
        #expect(first.cacheStatus.contains("fwd-status=\(status)"))
        let count = origin.count()
        for _ in 1...3 {
            let answer = try larder.get("/x")
            #expect(answer.text == "1")
            #expect(answer.cacheStatus.contains("detail=retry-after"))
        }
        // Who will not have it stale gets the refusal, with what is left of the time.
        let refusal = try larder.get("/x", ["Cache-Control": "no-cache"])
        #expect(refusal.status == status)
        #expect(refusal.isProblem)
        #expect((1...600).contains(Int(refusal["Retry-After"] ?? "") ?? 0))
        #expect(refusal.cacheStatus.contains("detail=retry-after"))
        #expect(origin.count() == count)
    }

    @Test func `a rate limit holds back a credential's resource, an outage one document; other requests go on`()
        throws
    {
        let origin = try Origin { request in
            switch request.path {
            case "/limited/1": .json("no", ["Retry-After": "600"], status: 429)
            case "/down": .json("no", ["Retry-After": "600"], status: 503)
            default: .json("1", Fresh.never)
            }
        }
        let larder = try Larder(origin)
        let (ann, bob): (FieldLines, FieldLines) = (["Authorization": "ann"], ["Authorization": "bob"])
        for _ in 1...2 { #expect(try larder.get("/down", ann).status == 503) }
        #expect(try larder.get("/other", ann).status == 200)
        #expect(try larder.get("/limited/1", ann).status == 429)
        #expect(origin.count() == 3)

        #expect(try larder.get("/limited/2", ann).status == 429)
        #expect(try larder.get("/limited/1", ann).status == 429)
        #expect(origin.count() == 3)

        #expect(try larder.get("/new", ann).status == 200)
        #expect(try larder.get("/limited/2", bob).status == 200)
        #expect(try larder.request("PUT", "/limited/2", ann, body: "{}").status == 200)
        #expect(try larder.request("POST", "/down", ann, body: "{}").status == 503)
        #expect(origin.count() == 7)
        #expect(try larder.total("larder_back_offs_total") == 2)
        #expect(try larder.total("larder_held_back_requests_total") == 3)
    }

    @Test(arguments: [false, true])
    func `a used-up rate limit holds back requests that would be refused, and serves stored responses`(isNamed: Bool)
        throws
    {
        let origin = try Origin { request in
            let left = request.path == "/repos/last" ? 0 : 1
            let limit: FieldLines =
                isNamed
                ? ["RateLimit": "\"default\";r=\(left);t=600"]
                : ["X-RateLimit-Remaining": "\(left)", "X-RateLimit-Reset": "600"]
            return .json("1", Fresh.never + limit)
        }
        let larder = try Larder(origin)
        let (ann, bob): (FieldLines, FieldLines) = (["Authorization": "ann"], ["Authorization": "bob"])
        for path in ["/repos/first", "/repos/last"] { #expect(try larder.get(path, ann).status == 200) }
        #expect(try larder.waitForDocuments(2))

        let stale = try larder.get("/repos/first", ann)
        #expect(stale.text == "1" && stale.cacheStatus.contains("detail=budget"))
        let refusal = try larder.get("/repos/new", ann)
        #expect(refusal.status == 429 && refusal.isProblem)
        #expect((1...600).contains(Int(refusal["Retry-After"] ?? "") ?? 0))
        #expect(refusal.cacheStatus.contains("detail=budget"))
        let explained = try larder.command("explain", larder.url + "/repos/new", "-H", "Authorization: ann")
        #expect(explained.output.contains("used up"))
        let note = "- a credential's rate limit at upstream upstream is used up; requests that count against it"
        #expect(try larder.command("status").output.contains(note))
        #expect(origin.count() == 2)

        #expect(try larder.get("/repos/new", bob).status == 200)
        // Only a limit with a name is known to concern writes to these paths.
        let put = try larder.request("PUT", "/repos/new", ann, body: "{}")
        #expect(put.status == (isNamed ? 429 : 200) && put.cacheStatus.contains("detail=budget") == isNamed)
        #expect(origin.count() == (isNamed ? 3 : 4))
        #expect(larder.log.contains("backing off: the rate limit is used up"))
    }

    @Test func `a 403 without Retry-After holds back until the limit's reset, by the upstream's clock`() throws {
        let isRefused = Monitor(true)
        let origin = try Origin { _ in
            guard isRefused.current else { return .json("1") }
            let clock = Int(Date().timeIntervalSince1970) + 3_600
            return .json(
                "no",
                [
                    "Date": CacheTests.date(in: 3_600), "X-RateLimit-Remaining": "0", "X-RateLimit-Limit": "60",
                    "X-RateLimit-Reset": "\(clock + 8)",
                ],
                status: 403
            )
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x").text == "no")
        isRefused.withLock { $0 = false }
        let refusal = try larder.get("/x")
        #expect(refusal.status == 429 && refusal.isProblem && ["7", "8", "9"].contains(refusal["Retry-After"]))
        #expect(origin.count() == 1)
        #expect(try eventually { try larder.get("/x").text == "1" })
        #expect(origin.count() == 2)
    }

    @Test func `a refused search holds back only searches, and explain says so`() throws {
        let origin = try Origin { request in
            guard request.path == "/search/code" else {
                return .json("1", Fresh.never + ["X-RateLimit-Resource": "core", "X-RateLimit-Remaining": "4999"])
            }
            let fields: FieldLines = [
                "Retry-After": "600", "X-RateLimit-Resource": "code_search", "X-RateLimit-Remaining": "3",
            ]
            return .json("no", fields, status: 403)
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/search/code?q=1").status == 403)
        for path in ["/repos/a", "/user", "/search/issues"] { #expect(try larder.get(path).status == 200) }
        let refusal = try larder.get("/search/code?q=2")
        #expect(refusal.status == 403)
        #expect(refusal.isProblem)
        #expect(refusal.text.contains("code_search"))
        #expect(refusal.cacheStatus.contains("detail=retry-after"))
        #expect(origin.count("/search/code") == 1)
        let explanation = try larder.command("explain", larder.url + "/search/code?q=2", "--json").output
        #expect(explanation.contains("code_search"))
        #expect(try !larder.command("explain", larder.url + "/user", "--json").output.contains("code_search"))
        #expect(larder.log.contains("code_search"))
    }

    @Test func `in a shared cache, too, a rate limit is separate for each Authorization`() throws {
        let origin = try Origin { request in
            request["Authorization"] == "ann"
                ? .json("no", ["Retry-After": "600"], status: 429) : .json("1", ["Cache-Control": "public, max-age=60"])
        }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["shared: true"]))
        #expect(try larder.get("/x/1", ["Authorization": "ann"]).status == 429)
        #expect(try larder.get("/x/2", ["Authorization": "ann"]).status == 429)
        #expect(origin.count() == 1)
        #expect(try larder.get("/x/2", ["Authorization": "bob"]).status == 200)
        #expect(try larder.get("/z").status == 200)
        // What is for all is for her as well.
        #expect(try larder.get("/z", ["Authorization": "ann"]).isHit)
    }

    @Test func `clients that waited for a refused request get the refusal, and are not sent upstream`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json("no", ["Retry-After": "600"], status: 429).after(gate) }
        let larder = try Larder.patient(origin)
        let leader = Background { try larder.get("/x") }
        origin.waitForRequests(1)
        let others = Background { try together(30) { _ in try larder.get("/x") } }
        #expect(try larder.waitForFollowers(30))
        gate.open()
        let answers = try [leader.value()] + others.value()
        #expect(answers.allSatisfy { $0.status == 429 && $0["Retry-After"] != nil })
        #expect(origin.count() == 1)
    }

    @Test func `a pause ends at its announced time`() throws {
        let origin = try Origin { _ in .json("no", ["Retry-After": "1"], status: 503) }
        let larder = try Larder(origin)
        #expect(try larder.get("/x").status == 503)
        origin.always(.json("1", Fresh.hour))
        #expect(try eventually { try larder.get("/x").status == 200 })
    }

    @Test func `the log has one line for the beginning of a back-off, with whose it is, and one for its end`() throws {
        let gate = Gate()
        let origin = try Origin { _ in OriginResponse.json("no", ["Retry-After": "3"], status: 429).after(gate) }
        let larder = try Larder.patient(origin)
        let clients = Background {
            try together(34) { try larder.get("/search/\($0)", ["Authorization": "Bearer secret-word"]) }
        }
        #expect(origin.waitForRequests(34))
        gate.open()
        #expect(try clients.value().allSatisfy { $0.status == 429 })
        #expect(try larder.get("/search/more", ["Authorization": "Bearer secret-word"]).status == 429)
        #expect(larder.process.waitForErrors { $0.contains("no longer backing off") })
        let lines = larder.log.split(separator: "\n").filter { $0.contains("backing off") }
        #expect(lines.count == 2, "\(lines)")
        #expect(lines.allSatisfy { $0.contains("credential=p-") && $0.contains("paths below /search") })
        #expect(lines.last?.contains("times=34") == true && lines.last?.contains("held_back=1") == true, "\(lines)")
        #expect(!larder.log.contains("secret-word"))
    }
}
