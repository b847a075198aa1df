import TestSupport
import Testing

@Suite("RFC 9111 §5.2.1 Request Directives", .scripts) struct RequestDirectiveTests {
    /// Fresh for an hour, ten minutes of which are over.
    private static let fresh: FieldLines = .control("max-age=3600") + ["Age": "600"]
    /// Stale for ten minutes.
    private static let stale: FieldLines = .control("max-age=3600") + ["Age": "4200"]

    @Test func `§5.2.1.1 max-age: an older response is fetched again`() throws {
        try Readings().check([
            .reused(Self.fresh, second: .control("max-age=900")),
            .reused(Self.fresh, second: .control("MAX-AGE=\"900\"")),
            .asked(Self.fresh, second: .control("max-age=500")), .asked(Self.fresh, second: .control("max-age=0")),
            .asked(Self.fresh, second: .control("max-age=x")), .asked(Self.fresh, second: .control("max-age=-1")),
            .asked(Self.fresh, second: .control("max-age=900, max-age=500")),
            .asked(.control("max-age=3600"), second: .control("max-age=0")),
            // A lifetime that it grants beyond the response's own is none.
            .asked(Self.stale, second: .control("max-age=9000")),
            .reused(Self.stale, second: .control("max-age=9000, max-stale=900")),
            .asked(Self.stale, second: .control("max-age=500, max-stale=900")),
        ])
    }

    @Test func `RFC 8246 §2: immutable does not outweigh a request that asks for validation`() throws {
        try Readings().check([
            .reused(.control("max-age=3600, immutable")),
            .asked(.control("max-age=3600, immutable"), second: .control("max-age=0")),
            .asked(.control("max-age=3600, immutable"), second: .control("no-cache")),
            .asked(.control("max-age=0, immutable")),
        ])
    }

    @Test func `§5.2.1.2 max-stale: a stale response is served unless it forbids that`() throws {
        try Readings().check([
            .asked(Self.stale),
            .reused(Self.stale, second: .control("max-stale")), .reused(Self.stale, second: .control("max-stale=900")),
            .asked(Self.stale, second: .control("max-stale=300")), .asked(Self.stale, second: .control("max-stale=x")),
            .asked(Self.stale, second: .control("max-stale, max-stale=300")),
            .asked(.control("max-age=3600, must-revalidate") + ["Age": "4200"], second: .control("max-stale")),
            .asked(.control("no-cache"), second: .control("max-stale")),
            .reused(
                by: .private,
                .control("max-age=3600, proxy-revalidate") + ["Age": "4200"],
                second: .control("max-stale")
            ),
            .reused(
                by: .private,
                .control("max-age=3600, s-maxage=3600") + ["Age": "4200"],
                second: .control("max-stale=900")
            ),
        ])
    }

    @Test func `§5.2.1.3 min-fresh: a response that will not stay fresh so long is fetched again`() throws {
        try Readings().check([
            .reused(Self.fresh, second: .control("min-fresh=2000")),
            .asked(Self.fresh, second: .control("min-fresh=3100")),
            .asked(Self.fresh, second: .control("min-fresh=x")), .asked(Self.fresh, second: .control("min-fresh")),
        ])
    }

    @Test func `§5.2.1.4 no-cache: nothing is reused without validation`() throws {
        try Readings().check([
            .asked(Self.fresh, second: .control("no-cache")),
            .asked(Self.fresh, second: .control("No-Cache, max-stale")),
            .asked(Self.fresh, second: .control("foo=\"a, b\", no-cache")),
            .asked(Self.fresh, second: ["Cache-Control": "max-age=900", "cache-control": "no-cache"]),
            .reused(Self.fresh, second: .control("foo=\"no-cache\"")),
            .reused(Self.fresh, second: .control("no-cachee")),
        ])
    }

    @Test func `§5.2.1.4 no-cache: the no-cache that a browser's fetch adds to conditions is ignored`() throws {
        let fresh = Self.fresh + ["ETag": "\"a\"", "Last-Modified": "Mon, 01 Jan 2018 00:00:00 GMT"]
        let added: FieldLines = ["Pragma": "no-cache", "Cache-Control": "no-cache"]
        let other: FieldLines = ["If-None-Match": "\"b\""]
        try Readings().check([
            .reused(fresh, second: other + added),
            .reused(fresh, second: ["If-Modified-Since": "Sun, 31 Dec 2017 00:00:00 GMT"] + added),
            .reused(fresh, second: ["If-Range": "\"a\""] + added),
            // A reload, and what a program writes itself.
            .asked(fresh, second: added), .asked(fresh, second: other + .control("no-cache")),
            .asked(fresh, second: other + ["Pragma": "no-cache"]),
            .asked(fresh, second: other + ["Pragma": "no-cache", "Cache-Control": "max-age=0"]),
            .asked(fresh, second: other + ["Pragma": "no-cache", "Cache-Control": "no-cache, max-age=0"]),
            .asked(Self.stale, second: other + added),
            .asked(.control("no-cache") + ["ETag": "\"a\""], second: other + added),
        ])
        let origin = try Origin { _ in .text("body", fresh) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.get("/x", ["If-None-Match": "\"a\""] + added).status == 304)
        #expect(try larder.get("/x", ["Range": "bytes=0-1", "If-Range": "\"a\""] + added).text == "bo")
        #expect(origin.count() == 1)
    }

    @Test func `§5.4 Pragma: no-cache counts in a request without Cache-Control, and in no response`() throws {
        try Readings().check([
            .asked(Self.fresh, second: ["Pragma": "no-cache"]), .asked(Self.fresh, second: ["Pragma": "foo, No-Cache"]),
            .reused(Self.fresh, second: ["Pragma": "no-cache", "Cache-Control": "max-age=900"]),
            .reused(Self.fresh, second: ["Pragma": "foo"]),
            .reused(Self.fresh + ["Pragma": "no-cache"]),
        ])
    }

    @Test func `§5.2.1.6 no-transform does not change which response is served`() throws {
        try Readings().check([
            .reused(Self.fresh, first: .control("no-transform"), second: .control("no-transform")),
            .reused(.control("max-age=3600, no-transform")),
        ])
    }

    @Test func `§5.2.1.7 only-if-cached: without a usable stored response the client gets 504`() throws {
        let readings = try Readings()
        for reading in Reading.allCases {
            for (fields, extra, isServed) in [
                (nil, "", false), (Self.fresh, "", true), (Self.stale, "", false), (Self.stale, ", max-stale", true),
                (.control("no-cache"), "", false), (Self.fresh, ", max-age=5", false),
                (Self.fresh, ", no-cache", false),
            ] as [(FieldLines?, String, Bool)] {
                let path = readings.path(reading) { _, _ in .text("x", fields ?? [:]) }
                if fields != nil { _ = try readings.larder.get(path) }
                let answer = try readings.larder.get(path, .control("only-if-cached" + extra))
                #expect(
                    answer.status == (isServed ? 200 : 504),
                    "\(reading) \(fields?.text ?? "nothing stored")\(extra)"
                )
                #expect(answer.isProblem == !isServed)
                #expect(readings.requests(path) == (fields == nil ? 0 : 1))
            }
        }
    }
}
