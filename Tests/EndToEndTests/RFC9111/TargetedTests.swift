import TestSupport
import Testing

@Suite("RFC 9213 Targeted HTTP Cache Control", .scripts) struct TargetedTests {
    private static let forbidden: FieldLines = .control("no-store")
    private static let hour = "max-age=3600"

    @Test func `§2.2 the first targeted field that is present replaces Cache-Control and Expires`() throws {
        let past: FieldLines = ["Expires": CacheTests.date(in: -3600)]
        try Readings().check([
            .reused(Self.forbidden + ["CDN-Cache-Control": Self.hour]),
            .reused(Self.forbidden + past + ["Larder-Cache-Control": Self.hour]),
            .asked(.control(Self.hour) + ["CDN-Cache-Control": "no-store"]),
            .asked(.control(Self.hour) + ["CDN-Cache-Control": "max-age=0"]),
            .asked(["Expires": CacheTests.date(in: 3600), "CDN-Cache-Control": "none"]),
            // The order is the list's, not the response's.
            .reused(["CDN-Cache-Control": "no-store", "Larder-Cache-Control": Self.hour]),
            .asked(["CDN-Cache-Control": Self.hour, "Larder-Cache-Control": "no-store"]),
            .asked(Self.forbidden + ["Other-Cache-Control": Self.hour]),
            .reused(["cdn-cache-control": "max-age=60", "CDN-CACHE-CONTROL": Self.hour]),
        ])
    }

    @Test func `§2.1 an empty or malformed targeted field counts as absent`() throws {
        let broken = [
            "", "max-age=60,", "max-age = 60", "MAX-AGE=60", "max-age=60 no-store", "no-store, &", "no-store, a=\"",
            "no-store=?2",
            "no-store, max-age='60'", "no-store, max-age=1234567890123456", "no-store;", "no-store, é",
        ]
        try Readings().check(
            broken.flatMap { value -> [Row] in
                [
                    .reused(.control(Self.hour) + ["CDN-Cache-Control": value]),
                    .asked(Self.forbidden + ["CDN-Cache-Control": value]),
                    .reused(["Larder-Cache-Control": value, "CDN-Cache-Control": Self.hour]),
                ]
            }
        )
    }

    @Test func `§2.1 a directive with a value of the wrong type is ignored`() throws {
        let values = [
            "max-age=\"3600\"", "max-age=3600.0", "max-age=?1", "max-age", "max-age=(3600)", "max-age=-3600",
            "max-age=a",
        ]
        try Readings().check(
            values.map { .asked(.control(Self.hour) + ["CDN-Cache-Control": $0]) } + [
                .reused(["CDN-Cache-Control": "max-age=3600;a=1;b"]),
                .reused(["CDN-Cache-Control": "foo, max-age=3600, bar=(1 2)"]),
                .reused(["CDN-Cache-Control": "max-age=0, max-age=3600"]),
                .reused(["CDN-Cache-Control": "no-store=?0, max-age=3600"]),
            ]
        )
    }

    @Test func `§2.2 each directive means what it means in Cache-Control`() throws {
        func targeted(_ value: String) -> FieldLines { .control(Self.hour) + ["CDN-Cache-Control": value] }
        let one: FieldLines = ["Authorization": "Bearer one"]
        try Readings().check([
            .asked(targeted("no-cache, max-age=3600")), .reused(by: .private, targeted("private, max-age=3600")),
            .asked(targeted("max-age=3600, must-revalidate") + ["Age": "3700"], second: .control("max-stale")),
            .reused(targeted("max-age=3600") + ["Age": "3700"], second: .control("max-stale")),
            .reused(by: .shared, targeted("s-maxage=3600")), .reused(targeted("max-age=3600") + ["Age": "3000"]),
            .asked(targeted("max-age=3600") + ["Age": "3600"]), .asked(targeted("max-age=3600") + .dated(-3700)),
            .reused(by: .shared, targeted("max-age=3600, public"), first: one, second: ["Authorization": "Bearer two"]),
            .asked(targeted("max-age=3600"), first: one, second: ["Authorization": "Bearer two"]),
            .reused(targeted("max-age=3600") + ["Age": "3700"], second: .control("max-stale=900")),
        ])
    }

    @Test func `§2.2 targeted fields are passed on unchanged`() throws {
        let readings = try Readings()
        for reading in Reading.allCases {
            let path = readings.path(reading) { _, _ in
                .text(
                    "x",
                    .control("max-age=5") + [
                        "CDN-Cache-Control": "max-age=3600 ;a", "Larder-Cache-Control": " max-age=60",
                    ]
                )
            }
            for _ in 1...2 {
                let answer = try readings.larder.get(path)
                #expect(answer["CDN-Cache-Control"] == "max-age=3600 ;a")
                #expect(answer["Larder-Cache-Control"] == "max-age=60")
                #expect(answer["Cache-Control"] == "max-age=5")
            }
            #expect(readings.requests(path) == 1)
        }
    }
}
