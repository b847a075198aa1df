import TestSupport
import Testing

/// RFC 9211: what each way of coming to a response says of itself.
@Suite(.scripts) struct ServedCacheStatusTests {
    /// What the origin answers, what the client asks in turn, and what each of the responses says.
    struct Scenario: Sendable, CustomTestStringConvertible {
        var name: String
        var origin: Origin.Handler
        var asks: [(String, String, FieldLines)]
        var expected: String
        var testDescription: String { name }
    }

    private static let fresh: FieldLines = ["Cache-Control": "max-age=60", "ETag": "\"a\""]
    private static let stale: FieldLines = ["Cache-Control": "max-age=60", "ETag": "\"a\"", "Age": "100"]
    private static func get(_ fields: FieldLines = [:]) -> (String, String, FieldLines) { ("GET", "/x", fields) }

    // One scenario a line of the RFC; the response to the last request is looked at.
    static let scenarios: [Scenario] = [
        Scenario(
            name: "2.1 hit, with what is left of its lifetime",
            origin: { _ in .json("{}", fresh + ["Age": "10"]) },
            asks: [get(), get()],
            expected: "larder;hit;ttl=50"
        ),
        Scenario(
            name: "2.2 fwd=uri-miss, stored",
            origin: { _ in .json("{}", fresh) },
            asks: [get()],
            expected: "larder;fwd=uri-miss;ttl=60;stored"
        ),
        Scenario(
            name: "2.2 fwd=uri-miss, not stored",
            origin: { _ in .json("{}", ["Cache-Control": "no-store"]) },
            asks: [get()],
            expected: "larder;fwd=uri-miss"
        ),
        Scenario(
            name: "2.2 fwd=vary-miss",
            origin: { _ in .json("{}", fresh + ["Vary": "X-A"]) },
            asks: [get(["X-A": "1"]), get(["X-A": "2"])],
            expected: "larder;fwd=vary-miss;ttl=60;stored"
        ),
        Scenario(
            name: "2.2 fwd=request",
            origin: { _ in .json("{}", ["Cache-Control": "max-age=60"]) },
            asks: [get(), get(["Cache-Control": "no-cache"])],
            expected: "larder;fwd=request;ttl=60;stored;detail=request-no-cache"
        ),
        Scenario(
            name: "2.2 fwd=stale, 2.3 fwd-status where the status is another",
            origin: { $0["If-None-Match"] == nil ? .json("{}", stale) : .notModified(fresh) },
            asks: [get(), get()],
            expected: "larder;fwd=stale;fwd-status=304;ttl=60;stored"
        ),
        Scenario(
            name: "2.2 fwd=stale, and the answer is new",
            origin: { _ in .json("{}", ["Cache-Control": "max-age=60", "Age": "100"]) },
            asks: [get(), get()],
            expected: "larder;fwd=stale;ttl=-40;stored"
        ),
        Scenario(
            name: "2.2 fwd=method",
            origin: { _ in .json("{}", fresh) },
            asks: [("POST", "/x", [:])],
            expected: "larder;fwd=method"
        ),
        Scenario(
            name: "2.3 fwd-status of an error that something stale stands in for",
            origin: { $0.number == 0 ? .json("{}", stale) : .json("{}", status: 503) },
            asks: [get(), get()],
            expected: "larder;fwd=stale;fwd-status=503;ttl=-40;detail=stale"
        ),
        Scenario(
            name: "2.3 no fwd-status where there was no answer",
            origin: { $0.number == 0 ? .json("{}", stale) : .reset },
            asks: [get(), get()],
            expected: "larder;fwd=stale;ttl=-40;detail=stale"
        ),
        Scenario(
            name: "2.3 fwd-status where the client has it already",
            origin: { _ in .json("{}", fresh) },
            asks: [get(["If-None-Match": "\"a\""])],
            expected: "larder;fwd=uri-miss;fwd-status=200;ttl=60;stored"
        ),
        Scenario(
            name: "2.4 a negative ttl",
            origin: { _ in .json("{}", stale) },
            asks: [get(), get(["Cache-Control": "max-stale"])],
            expected: "larder;hit;ttl=-40;detail=stale"
        ),
        Scenario(
            name: "2.8 the reason of an error",
            origin: { _ in .reset },
            asks: [get()],
            expected: "larder;fwd=uri-miss;detail="
        ),
        Scenario(
            name: "2.8 what was never asked for",
            origin: { _ in .reset },
            asks: [get(["Cache-Control": "only-if-cached"])],
            expected: "larder;detail=only-if-cached"
        ),
        Scenario(
            name: "2 the list of those before comes first",
            origin: { _ in .json("{}", fresh + ["Cache-Status": "cdn; hit", "Cache-Status": "shield; fwd=miss"]) },
            asks: [get()],
            expected: "cdn;hit,shield;fwd=miss,larder;fwd=uri-miss;ttl=60;stored"
        ),
    ]

    @Test(arguments: scenarios)
    func `Cache-Status says how each response came about`(_ scenario: Scenario) throws {
        let origin = try Origin(scenario.origin)
        let larder = try Larder(origin)
        var last: Response?
        for (method, target, fields) in scenario.asks { last = try larder.request(method, target, fields) }
        let answer = try #require(last)
        if scenario.expected.hasSuffix("=") {
            #expect(answer.cacheStatus.hasPrefix(scenario.expected))
        } else {
            #expect(answer.says(scenario.expected), "\(answer.cacheStatus)")
        }
    }

    @Test func `a hit is named in Cache-Status also if the stored response has that field`() throws {
        let origin = try Origin { _ in .json("{}", Self.fresh + ["Cache-Status": "cdn; fwd=miss"]) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let hit = try larder.get("/x")
        let lines = hit.fields.all("Cache-Status").joined(separator: ",").filter { $0 != " " }
        #expect(lines.hasPrefix("cdn;fwd=miss,larder;hit;ttl="), "\(lines)")
    }

    @Test func `Cache-Status says that a request was collapsed into another`() throws {
        let gate = Gate()
        let origin = try Origin { _ in .json("{}", Self.fresh).after(gate) }
        let larder = try Larder.patient(origin)
        let first = Background { try larder.get("/x") }
        #expect(origin.waitForRequests(1))
        let second = Background { try larder.get("/x") }
        #expect(try larder.waitForFollowers(1))
        gate.open()
        #expect(try first.value().says("larder;fwd=uri-miss;ttl=60;stored"))
        #expect(try second.value().says("larder;fwd=uri-miss;ttl=60;stored;collapsed"))
        #expect(origin.count() == 1)
    }

    @Test func `Cache-Status says that the daemon is offline`() throws {
        let origin = try Origin { _ in .json("{}", Self.stale) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        _ = try larder.admin("PUT", "/mode?mode=offline")
        #expect(try larder.get("/x").cacheStatus.hasSuffix(";detail=offline"))
        #expect(try larder.get("/y").cacheStatus == "larder;detail=offline")
    }
}

extension Response {
    /// Whether `Cache-Status` is this, blanks aside; its `ttl` may have lost a few seconds to a busy machine.
    func says(_ expected: String) -> Bool {
        guard let wanted = expected.firstMatch(of: /ttl=(-?[0-9]+)/),
            let found = cacheStatus.firstMatch(of: /ttl=(-?[0-9]+)/), let most = Int(wanted.1), let ttl = Int(found.1)
        else { return cacheStatus == expected }
        return cacheStatus.replacing(found.0, with: wanted.0) == expected && (most - 60...most).contains(ttl)
    }
}
