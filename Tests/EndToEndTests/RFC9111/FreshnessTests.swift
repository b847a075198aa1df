import TestSupport
import Testing

@Suite("RFC 9111 §4.2.1 Calculating Freshness Lifetime", .scripts) struct LifetimeTests {
    private static let later: FieldLines = .dated() + ["Expires": CacheTests.date(in: 3600)]
    private static let past: FieldLines = .dated() + ["Expires": CacheTests.date(in: -3600)]

    @Test func `the first of s-maxage, max-age and Expires that applies gives the lifetime`() throws {
        try Readings().check([
            .reused(.control("max-age=3600")),
            .asked(.control("max-age=0")),
            .reused(Self.later),
            .asked(Self.past),
            .reused(.control("max-age=3600") + Self.past),
            .asked(.control("max-age=0") + Self.later),
            .reused(by: .shared, .control("max-age=0, s-maxage=3600")),
            .reused(by: .private, .control("max-age=3600, s-maxage=0")),
            .reused(by: .shared, .control("s-maxage=3600") + Self.past),
            .reused(by: .private, .control("s-maxage=0") + Self.later),
        ])
    }

    @Test func `the most restrictive of repeated directives counts`() throws {
        try Readings().check([
            .asked(.control("max-age=0, max-age=3600")), .asked(.control("max-age=3600, max-age=0")),
            .asked(["Cache-Control": "max-age=3600", "cache-control": "max-age=0"]),
            .reused(.control("max-age=3600, max-age=7200")),
            .asked(.control("max-age=3600, no-cache")), .asked(.control("no-cache, max-age=3600")),
            .asked(Self.later + ["Expires": "0"]), .asked(["Expires": "0"] + Self.later),
        ])
    }

    @Test func `a response whose lifetime cannot be read counts as stale`() throws {
        let values = [
            "max-age=-1", "max-age=3600.0", "max-age='3600'", "max-age=a", "max-age=", "max-age", "max-age =3600",
            "max-age= 3600",
            "max-age=\"3600", "max-age=3600; x", "max-age=0x3600", "max-age=+3600", "max-age=3 600", "max-age=3600é",
            "xmax-age=3600", "max-age: 3600", "ext=\"a, max-age=3600\"", "ext=\"a, max-age=3600",
            "max-age=3600, max-age=a",
        ]
        try Readings().check(values.map { .asked(.control($0)) })
        // What says nothing readable does not fall back on Expires either.
        try Readings().check(["max-age=-1", "max-age=a", "max-age"].map { .asked(.control($0) + Self.later) })
    }

    @Test func `capitals, quotes, zeros and unknown directives do not change a lifetime`() throws {
        let values = [
            "MAX-AGE=3600", "Max-Age=\"3600\"", "max-age=003600", "max-age=99999999999999999999", "\tmax-age=3600 ,",
            ",,max-age=3600",
            "foo, max-age=3600", "foo=bar, max-age=3600, baz", "ext=\"a, max-age=0\", max-age=3600", "max-age=3600,é",
            "max-age=2147483648", "ext=\"a, no-store\", max-age=3600", "max-age=3600, foo=\"x\\\"y, no-store\"",
        ]
        try Readings().check(values.map { .reused(.control($0)) })
    }
}

@Suite("RFC 9111 §4.2.2 Calculating Heuristic Freshness", .scripts) struct HeuristicTests {
    /// Changed long ago.
    private static let old: FieldLines = .dated() + ["Last-Modified": CacheTests.date(in: -100_000)]

    @Test func `the heuristic lifetime is a tenth of the time since Last-Modified, where the status allows it`() throws
    {
        try Readings().check(
            [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].map { .reused(Self.old, status: $0) } + [
                .asked(.dated()),
                .asked(.dated() + ["Last-Modified": CacheTests.date(in: 0)]),
                .asked(.dated() + ["Last-Modified": CacheTests.date(in: 100_000)]),
                .asked(.dated() + ["Last-Modified": "long ago"]),
                // 10,000 s of lifetime.
                .reused(Self.old + ["Age": "9000"]), .asked(Self.old + ["Age": "10001"]),
            ]
        )
    }

    @Test func `public allows the heuristic lifetime for other statuses, too`() throws {
        try Readings().check(
            [201, 302, 307, 403, 422, 500].flatMap { status -> [Row] in
                [.reused(.control("public") + Self.old, status: status), .asked(Self.old, status: status)]
            }
        )
    }

    @Test func `an explicit lifetime excludes the heuristic one`() throws {
        try Readings().check([
            .asked(.control("max-age=0") + Self.old), .asked(Self.old + ["Expires": "0"]),
            .asked(.control("no-cache") + Self.old),
            .asked(.control("max-age=x") + Self.old),
        ])
    }

    @Test func `a query does not affect freshness`() throws {
        try Readings().check([.reused(Self.old), .asked(.dated())], query: "?a=1&b")
    }
}

@Suite("RFC 9111 §4.2.3 Calculating Age", .scripts) struct AgeTests {
    @Test func `the age that a response comes with, and the time since its Date, count`() throws {
        try Readings().check([
            .reused(.control("max-age=3600") + ["Age": "3000"]),
            .asked(.control("max-age=3600") + ["Age": "3600"]),
            .asked(.control("max-age=3600") + .dated(-3601)),
            .reused(.control("max-age=3600") + .dated(-3000)),
            .reused(.control("max-age=3600") + .dated(3000)),
            .asked(.control("max-age=3600") + .dated(-3601) + ["Age": "1"]),
            .asked(.control("max-age=3600") + .dated() + ["Age": "4000"]),
            .asked(.dated(-7200) + ["Expires": CacheTests.date(in: -3600)]),
            .reused(.dated(-7200) + ["Expires": CacheTests.date(in: 3600)]),
            .asked(.dated() + ["Expires": CacheTests.date(in: 3600), "Age": "3601"]),
        ])
    }

    @Test func `a response from the cache has an Age field`() throws {
        let readings = try Readings()
        for reading in Reading.allCases {
            let aged = readings.path(reading) { _, _ in .text("x", .control("max-age=3600") + ["Age": "100"]) }
            let dated = readings.path(reading) { _, _ in .text("x", .control("max-age=3600") + .dated(-200)) }
            for (path, least) in [(aged, 100), (dated, 200)] {
                _ = try readings.larder.get(path)
                let age = try #require(Int(try readings.larder.get(path)["Age"] ?? ""))
                #expect(age >= least && age < least + 60)
            }
        }
    }
}

@Suite("RFC 9111 §4.2.4 Serving Stale Responses", .scripts) struct ServingStaleTests {
    @Test(arguments: [
        ("max-age=0", true, true), ("max-age=0, must-revalidate", false, false), ("no-cache", false, false),
        ("max-age=0, proxy-revalidate", true, false), ("max-age=0, s-maxage=0", true, false),
        ("max-age=0, no-cache=\"x\"", true, true),
    ])
    func `while the upstream fails a stale response is served, unless it forbids that`(
        control: String,
        isPrivateAllowed: Bool,
        isSharedAllowed: Bool
    ) throws {
        let readings = try Readings()
        let allowed: [Reading: Bool] = [.private: isPrivateAllowed, .shared: isSharedAllowed]
        for reading in Reading.allCases {
            let path = readings.path(reading) { _, number in
                number == 1 ? .text("good", .control(control)) : .text("bad", status: 503)
            }
            _ = try readings.larder.get(path)
            let second = try readings.larder.get(path)
            #expect((second.status == 200) == allowed[reading], "\(reading) \(control)")
            #expect(readings.requests(path) == 2)
        }
    }
}
