import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics

@Suite struct PreconditionsTests {
    private static let stored = Validators(
        status: 200,
        entityTag: EntityTag(isWeak: false, opaque: bytes("a")),
        lastModified: exampleDate,
        date: exampleDate + 100
    )

    private func evaluate(_ lines: [(String, String)], method: String = "GET", _ stored: Validators = stored)
        -> Bool
    {
        Preconditions(fields: fields(lines), now: exampleDate).isNotModified(method: method, against: stored)
    }

    @Test(
        arguments: [
            ([], false),
            ([("If-None-Match", "\"a\"")], true),
            ([("If-None-Match", "W/\"a\"")], true),
            ([("If-None-Match", "\"b\", \"a\"")], true),
            ([("If-None-Match", "\"b\""), ("If-None-Match", "\"a\"")], true),
            ([("If-None-Match", "*")], true),
            ([("If-None-Match", "\"b\"")], false),
            ([("If-None-Match", "a")], false),
            ([("If-None-Match", "\"A\"")], false),
            ([("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")], true),
            ([("If-Modified-Since", "Sun, 06 Nov 1994 08:49:38 GMT")], true),
            ([("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT")], false),
            ([("If-Modified-Since", "Sunday, 06-Nov-94 08:49:37 GMT")], true),
            ([("If-Modified-Since", "soon")], false),
            ([("If-Modified-Since", date(exampleDate)), ("If-Modified-Since", date(exampleDate))], false),
            // The tag decides where both are given.
            ([("If-None-Match", "\"b\""), ("If-Modified-Since", date(exampleDate))], false),
            ([("If-None-Match", "\"a\""), ("If-Modified-Since", date(0))], true),
        ] as [([(String, String)], Bool)]
    )
    func `conditions are evaluated in the order of RFC 9110 §13.2.2`(
        _ lines: [(String, String)],
        _ expected: Bool
    ) {
        #expect(evaluate(lines) == expected)
        #expect(evaluate(lines, method: "HEAD") == expected)
    }

    @Test func `conditions of unsafe methods are left to the upstream`() {
        #expect(evaluate([("If-None-Match", "*")], method: "PUT") == false)
        #expect(evaluate([("If-Modified-Since", date(exampleDate))], method: "PUT") == false)
    }

    @Test func `conditions do not apply to a stored response that is not successful`() {
        var stored = Self.stored
        stored.status = 404
        #expect(evaluate([("If-None-Match", "\"a\"")], stored) == false)
    }

    @Test func `Date stands in for Last-Modified`() {
        var stored = Self.stored
        stored.lastModified = nil
        #expect(evaluate([("If-Modified-Since", date(exampleDate + 100))], stored) == true)
        #expect(evaluate([("If-Modified-Since", date(exampleDate + 99))], stored) == false)
    }

    @Test func `without a stored tag only a star matches`() {
        var stored = Self.stored
        stored.entityTag = nil
        #expect(evaluate([("If-None-Match", "\"a\"")], stored) == false)
        #expect(evaluate([("If-None-Match", "*")], stored) == true)
    }

    @Test func `conditions that only the origin can evaluate are recognised`() {
        #expect(Preconditions(fields: fields([("If-Match", "*")]), now: 0).isForOrigin)
        #expect(Preconditions(fields: fields([("If-Unmodified-Since", date(0))]), now: 0).isForOrigin)
        #expect(!Preconditions(fields: fields([("If-None-Match", "*")]), now: 0).isForOrigin)
        #expect(Preconditions(fields: fields([("If-Match", "\"larder-1\"")]), now: 0).matchesOwnTag)
    }

    @Test func `Larder's own tags do not go upstream`() {
        var request = fields([("If-None-Match", "\"larder-1\", W/\"b\""), ("X", "y")])
        Preconditions.stripOwnValidators(&request)
        #expect(request.text("if-none-match") == "W/\"b\"")
        var only = fields([("If-None-Match", "\"larder-1\""), ("X", "y")])
        Preconditions.stripOwnValidators(&only)
        #expect(only == fields([("X", "y")]))
        var part = Fields([Field("If-Range", "\"larder-1\""), Field("Range", "bytes=5-")])
        Preconditions.stripOwnValidators(&part)
        #expect(part.lines.isEmpty)
    }

    @Test func `a validation request has the validators of one or several candidates`() {
        var weak = Self.stored
        weak.entityTag = EntityTag(isWeak: true, opaque: bytes("b"))
        // What is stored came from the upstream, which may be a Larder.
        var upstreams = Self.stored
        upstreams.entityTag = EntityTag(isWeak: false, opaque: bytes("larder-1"))
        let one = Preconditions.validators(of: [Self.stored])
        #expect(one.text("if-none-match") == "\"a\"")
        #expect(one.text("if-modified-since") == date(exampleDate))
        let several = Preconditions.validators(of: [Self.stored, weak, upstreams, weak])
        #expect(several == fields([("If-None-Match", "\"a\", W/\"b\", \"larder-1\"")]))
    }
}

@Suite struct FresheningTests {
    private func candidate(_ tag: String?, modified: Int64? = nil, date: Int64 = 0) -> Validators {
        Validators(
            status: 200,
            entityTag: tag.flatMap { EntityTag(bytes($0)) },
            lastModified: modified,
            date: date
        )
    }

    @Test func `a 304 selects the stored responses that its validators name`() {
        let candidates = [
            candidate("\"a\"", date: 1), candidate("W/\"b\"", modified: exampleDate, date: 2),
            candidate("W/\"b\"", date: 3),
        ]
        func select(_ lines: [(String, String)]) -> [Int] {
            Freshening.selected(by: fields(lines), among: candidates, now: exampleDate)
        }
        #expect(select([("ETag", "\"a\"")]) == [0])
        #expect(select([("ETag", "W/\"b\"")]) == [2])
        // The strong form of a weak tag, which some servers send.
        #expect(select([("ETag", "\"b\"")]) == [2])
        #expect(select([("ETag", "\"c\"")]) == [])
        #expect(select([("Last-Modified", date(exampleDate))]) == [1])
        #expect(select([]) == [])
        #expect(Freshening.selected(by: Fields(), among: [candidates[1]], now: 0) == [0])
    }

    @Test(
        arguments: [
            ([], .refresh), ([("ETag", "\"a\"")], .refresh), ([("ETag", "\"b\"")], .invalidate),
            ([("Content-Length", "11")], .invalidate), ([("Last-Modified", "x")], .invalidate),
            ([("X-New", "1")], .refresh), ([("Content-Length", "10")], .refresh), ([("ETag", "W/\"a\"")], .invalidate),
            ([("Content-MD5", "new")], .invalidate), ([("Content-MD5", "old")], .refresh),
            ([("Repr-Digest", "added")], .refresh),
        ] as [([(String, String)], Freshening.HeadOutcome)]
    )
    func `a HEAD refreshes or invalidates`(_ lines: [(String, String)], _ expected: Freshening.HeadOutcome) {
        let stored = fields([("ETag", "\"a\""), ("Last-Modified", date(0)), ("Content-MD5", "old")])
        #expect(Freshening.outcome(ofHead: fields(lines), stored: stored, length: 10) == expected)
    }

    @Test func `a HEAD with the strong form of a stored weak tag refreshes`() {
        let (weak, strong) = (fields([("ETag", "W/\"a\"")]), fields([("ETag", "\"a\"")]))
        #expect(Freshening.outcome(ofHead: strong, stored: weak, length: nil) == .refresh)
        #expect(Freshening.outcome(ofHead: weak, stored: strong, length: nil) == .invalidate)
    }

    @Test func `a HEAD with a tag that the stored response lacks invalidates it, an unknown length does not`() {
        #expect(Freshening.outcome(ofHead: fields([("ETag", "\"a\"")]), stored: Fields(), length: nil) == .invalidate)
        #expect(
            Freshening.outcome(ofHead: fields([("Content-Length", "1")]), stored: Fields(), length: nil) == .refresh
        )
    }

    @Test func `Last-Modified selects a response if no candidate has a tag`() {
        let lines = fields([("ETag", "\"a\""), ("Last-Modified", date(exampleDate))])
        let untagged = candidate(nil, modified: exampleDate)
        #expect(Freshening.selected(by: lines, among: [untagged], now: exampleDate) == [0])
        #expect(Freshening.selected(by: lines, among: [candidate("\"b\"")], now: exampleDate) == [])
        #expect(Freshening.selected(by: fields([("ETag", "\"a\"")]), among: [untagged], now: exampleDate) == [])
    }

    @Test func `fields that must not be stored are passed on to the client that asked`() {
        let stored = fields([("Cache-Control", "max-age=60, no-cache=\"X-Once\""), ("ETag", "\"a\"")])
        let renewed = Freshening.freshened(
            stored,
            status: 200,
            by: fields([("X-Once", "1"), ("X-Ever", "2")]),
            request: request(),
            times: ExchangeTimes(request: exampleDate, response: exampleDate),
            settings: CachePolicySettings()
        )
        #expect(renewed.withheld == [Field("X-Once", "1")])
        #expect(!renewed.fields.contains("x-once") && renewed.fields.contains("x-ever"))
        #expect(renewed.fields.text("date") == date(exampleDate))
    }

    @Test func `a 304 renews fields and policy`() {
        let stored = fields([
            ("Date", date(exampleDate)), ("Cache-Control", "max-age=60"), ("Content-Length", "10"), ("ETag", "\"a\""),
            ("Link", "<a>"), ("Link", "<b>"), ("X-Kept", "1"), ("Warning", "110 x"),
        ])
        let update = fields([
            ("Date", date(exampleDate + 100)), ("Age", "7"), ("Link", "<c>"), ("Content-Length", "0"),
            ("Connection", "X-Hop"),
            ("X-Hop", "1"), ("X-RateLimit-Remaining", "9"), ("Set-Cookie", "a=b"), ("Content-Encoding", "gzip"),
        ])
        let renewed = Freshening.freshened(
            stored,
            status: 200,
            by: update,
            request: request(),
            times: ExchangeTimes(request: exampleDate + 100, response: exampleDate + 100),
            settings: CachePolicySettings()
        )
        #expect(
            renewed.fields
                == fields([
                    ("Cache-Control", "max-age=60"), ("Content-Length", "10"), ("ETag", "\"a\""), ("X-Kept", "1"),
                    ("Date", date(exampleDate + 100)), ("Link", "<c>"), ("X-RateLimit-Remaining", "9"),
                ])
        )
        #expect(renewed.policy.stored.lifetime == 60)
        #expect(renewed.policy.stored.initialAge == 7)
        #expect(renewed.policy.stored.reuse(at: exampleDate + 110, for: .none) == .fresh(age: 17, timeToLive: 43))
    }
}

@Suite struct RangeFieldTests {
    private func select(_ value: String, length: Int) -> RangeField.Selection? {
        RangeField(lines: [bytes(value)])?.select(length: length)
    }

    @Test(arguments: [
        ("bytes=0-499", [0..<500]), ("bytes=500-999", [500..<1000]), ("bytes=500-", [500..<1000]),
        ("bytes=-500", [500..<1000]),
        ("bytes=-5000", [0..<1000]), ("bytes=0-5000", [0..<1000]), ("bytes=999-", [999..<1000]), ("BYTES=0-0", [0..<1]),
        ("bytes=0-0,-1", [0..<1, 999..<1000]), ("bytes= 0-1 , 5-6 ,", [0..<2, 5..<7]), ("bytes=0-5,6-9", [0..<10]),
        ("bytes=0-5,3-4", [0..<6]), ("bytes=500-600,601-999", [500..<1000]), ("bytes=5-6,0-1", [5..<7, 0..<2]),
        ("bytes=0-1,2000-", [0..<2]), ("bytes=0-99999999999999999999", [0..<1000]), ("bytes=5-9,0-", [0..<1000]),
    ])
    func `ranges are applied to a body of 1000 bytes`(_ value: String, _ ranges: [Range<Int>]) {
        #expect(select(value, length: 1000) == .ranges(ranges))
    }

    @Test(arguments: ["bytes=1000-", "bytes=1000-1001", "bytes=-0", "bytes=5000-,6000-"])
    func `ranges beyond the end are unsatisfiable`(_ value: String) {
        #expect(select(value, length: 1000) == .unsatisfiable)
    }

    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=a-b", "bytes=5", "bytes=9-5", "bytes=-", "lines=0-1", "bytes=0-1,x",
        "bytes=1 - 2", "bytes=+1-2",
    ])
    func `a malformed Range is ignored`(_ value: String) {
        #expect(RangeField(lines: [bytes(value)]) == nil)
    }

    @Test func `an empty body has no satisfiable range`() {
        #expect(select("bytes=0-", length: 0) == .unsatisfiable)
        #expect(select("bytes=-0", length: 0) == .unsatisfiable)
        // Satisfiable by RFC 9110 §14.1.2, though no Content-Range could say what it is.
        #expect(select("bytes=-1", length: 0) == .whole)
    }

    @Test func `a Range with too many ranges, or given twice, is ignored`() {
        let many = "bytes=" + Array(repeating: "0-0", count: 33).joined(separator: ",")
        #expect(RangeField(lines: [bytes(many)]) == nil)
        #expect(RangeField(lines: [bytes("bytes=0-0"), bytes("bytes=1-1")]) == nil)
        #expect(RangeField(lines: []) == nil)
    }

    @Test(arguments: [
        ("\"a\"", true), ("W/\"a\"", false), ("\"b\"", false), ("Sun, 06 Nov 1994 08:49:37 GMT", true),
        ("Sun, 06 Nov 1994 08:49:38 GMT", false), ("x", false),
    ])
    func `If-Range needs a strong validator that matches exactly`(_ value: String, _ expected: Bool) {
        let stored = Validators(
            status: 200,
            entityTag: EntityTag(isWeak: false, opaque: bytes("a")),
            lastModified: exampleDate,
            date: exampleDate + 1
        )
        #expect(RangeField.permits(ifRange: bytes(value), stored, now: exampleDate) == expected)
    }

    @Test(
        arguments: [
            ("bytes 0-499/1000", 0, 500, 1000), ("bytes 0-499/*", 0, 500, nil), ("BYTES 5-5/6", 5, 6, 6),
            ("bytes */1000", nil, nil, 1000),
        ] as [(String, Int64?, Int64?, Int64?)]
    )
    func `Content-Range is read`(_ value: String, _ start: Int64?, _ end: Int64?, _ length: Int64?) {
        let range = ContentRange(bytes(value))
        #expect(range != nil)
        #expect(range?.range?.lowerBound == start)
        #expect(range?.range?.upperBound == end)
        #expect(range?.length == length)
    }

    @Test(arguments: [
        "", "bytes", "bytes 0-5", "bytes 5-4/10", "bytes 0-10/10", "bytes */*", "lines 0-1/2", "bytes 0-x/5",
        "bytes=0-1/5",
    ])
    func `a contradictory Content-Range is refused`(_ value: String) {
        #expect(ContentRange(bytes(value)) == nil)
    }

    @Test func `Content-Range is written`() {
        #expect(RangeField.contentRange(5..<10, length: 20) == "bytes 5-9/20")
        #expect(RangeField.unsatisfiedContentRange(length: 20) == "bytes */20")
    }
}
