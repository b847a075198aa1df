import TestSupport
import Testing

@Suite("RFC 9111 §5.2.2 Response Directives", .scripts) struct ResponseDirectiveTests {
    @Test func `§5.2.2.1 max-age: a response is reused until its age reaches it`() throws {
        try Readings().check([
            .reused(.control("max-age=3600") + ["Age": "3000"]), .asked(.control("max-age=3600") + ["Age": "3600"]),
            .asked(.control("max-age=3600") + ["Age": "3601"]), .asked(.control("max-age=0")),
        ])
    }

    @Test func `§5.2.2.2 must-revalidate: a response is reused while fresh, and not when stale`() throws {
        try Readings().check([
            .reused(.control("max-age=3600, must-revalidate")),
            .asked(.control("max-age=3600, must-revalidate, stale-while-revalidate=9000") + ["Age": "3700"]),
            .asked(.control("max-age=3600, must-revalidate=x") + ["Age": "3700"], second: .control("max-stale")),
        ])
        // Where the origin cannot be asked, the response is 504.
        let readings = try Readings()
        for reading in Reading.allCases {
            let path = readings.path(reading) { _, number in
                number == 1 ? .text("x", .control("max-age=0, must-revalidate")) : .reset
            }
            _ = try readings.larder.get(path)
            let second = try readings.larder.get(path)
            #expect(second.status == 504 && second.isProblem)
        }
    }

    @Test func `§5.2.2.3 must-understand: only known statuses are stored, and then despite no-store`() throws {
        try Readings().check([
            .reused(.control("max-age=3600, must-understand")),
            .reused(.control("no-store, max-age=3600, must-understand")),
            .reused(.control("no-store, max-age=3600, must-understand"), status: 404),
            .asked(.control("max-age=3600, must-understand"), status: 299),
            .asked(.control("no-store, max-age=3600, must-understand"), status: 599),
            .asked(.control("no-store, max-age=3600, must-understand=1")),
        ])
    }

    @Test func `§5.2.2.4 no-cache: validated before reuse; if it names fields, only those are left out`() throws {
        try Readings().check([
            .asked(.control("no-cache, max-age=3600")), .asked(.control("No-Cache=, max-age=3600")),
            .asked(.control("no-cache=\"\", max-age=3600")), .asked(.control("no-cache=\"a b\", max-age=3600")),
            .asked(.control("no-cache=\"x-a\", no-cache, max-age=3600")),
            .reused(.control("no-cache=\"x-a\", max-age=3600")),
        ])
        let readings = try Readings()
        for reading in Reading.allCases {
            let path = readings.path(reading) { _, _ in
                .text("x", .control("max-age=3600, no-cache=\"X-A, x-b\"") + ["x-a": "1", "X-B": "2", "X-C": "3"])
            }
            #expect(try readings.larder.get(path)["X-A"] == "1")
            let second = try readings.larder.get(path)
            #expect(second.isHit && second["X-A"] == nil && second["X-B"] == nil && second["X-C"] == "3")
        }
    }

    @Test func `§5.2.2.7 private: stored by a private cache only; if it names fields, a shared one drops only those`()
        throws
    {
        try Readings().check([
            .reused(by: .private, .control("private, max-age=3600")),
            .reused(by: .private, .control("Private=, max-age=3600")),
            .reused(by: .private, .control("private=\"a b\", max-age=3600")),
            .reused(by: .private, .control("private, public, max-age=3600")),
            .reused(by: .private, .control("private, s-maxage=3600, max-age=3600")),
            .reused(.control("private=\"x-a\", max-age=3600")),
        ])
        let readings = try Readings()
        for reading in Reading.allCases {
            let path = readings.path(reading) { _, _ in
                .text("x", .control("max-age=3600, private=\"X-A\"") + ["x-a": "1", "X-C": "3"])
            }
            #expect(try readings.larder.get(path)["X-A"] == "1")
            let second = try readings.larder.get(path)
            #expect(second.isHit && second["X-C"] == "3")
            #expect(second["X-A"] == (reading == .private ? "1" : nil))
        }
    }

    @Test func `§5.2.2.8 proxy-revalidate is must-revalidate for a shared cache`() throws {
        let fields: FieldLines = .control("max-age=3600, proxy-revalidate")
        try Readings().check([
            .reused(fields), .reused(by: .private, fields + ["Age": "3700"], second: .control("max-stale")),
        ])
    }

    @Test func `§5.2.2.9 public: a response is not reused without a lifetime`() throws {
        try Readings().check([
            .asked(.control("public")), .asked(.control("public"), status: 302),
            .reused(.control("public, max-age=3600"), status: 302),
        ])
    }

    @Test func `§5.2.2.10 s-maxage overrides all others in a shared cache, and nothing in a private one`() throws {
        try Readings().check([
            .reused(by: .shared, .control("s-maxage=3600")),
            .reused(by: .shared, .control("s-maxage=\"3600\", max-age=0")),
            .reused(by: .private, .control("s-maxage=0, max-age=3600")),
            .reused(by: .private, .control("s-maxage=x, max-age=3600")),
            .reused(by: .private, .control("s-maxage=3600, s-maxage=0, max-age=3600")),
            .asked(.control("s-maxage=3600") + ["Age": "3700"], second: .control("max-age=9000")),
        ])
    }

    @Test func `§5.2.3 unknown directives change nothing`() throws {
        try Readings().check([
            .reused(.control("foo, max-age=3600, bar=baz, qux=\"a, b\"")), .asked(.control("foo=3600, bar")),
            .reused(.control("no-stor, max-age=3600")), .reused(.control("private-ish, max-age=3600")),
        ])
    }
}

@Suite("RFC 9111 §5.1 Age, §5.3 Expires, §5.5 Warning", .scripts) struct ResponseFieldTests {
    @Test func `§5.1 Age: the first of a list counts, and a value that is no number is ignored`() throws {
        let fresh = FieldLines.control("max-age=3600")
        try Readings().check(
            ["3700", "3700, 0", " 3700 , x", "003700", "99999999999999999999", ", 3700"].map {
                .asked(fresh + ["Age": $0])
            }
                + [
                    "0", "0, 3700", "3599x", "-3700", "+3700", "3700.0", "3700;a=1", "\"3700\"", "abc", "3700 3700",
                    "0x3700",
                ]
                .map { .reused(fresh + ["Age": $0]) } + [
                    .asked(fresh + ["Age": "3700", "age": "0"]), .reused(fresh + ["Age": "0", "age": "3700"]),
                ]
        )
    }

    @Test func `§5.3 Expires: each of the three forms of a date is read`() throws {
        let forms = ["EEE, dd MMM yyyy HH:mm:ss 'GMT'", "EEEE, dd-MMM-yy HH:mm:ss 'GMT'", "EEE MMM d HH:mm:ss yyyy"]
        try Readings().check(
            forms.flatMap { form -> [Row] in
                // `asctime` puts a space where a day has one digit.
                let later = Self.date(in: 3600, form), past = Self.date(in: -3600, form)
                return [
                    .reused(.dated() + ["Expires": later]), .asked(.dated() + ["Expires": past]),
                    .reused(.dated() + ["Expires": later.uppercased()]), .reused(["Expires": later.lowercased()]),
                ]
            } + [.reused(.dated() + ["Expires": "Fri, 31 Dec 9999 23:59:59 GMT"])]
        )
    }

    @Test func `§5.3 Expires: a value that is no date counts as expired`() throws {
        let later = CacheTests.date(in: 7200)
        let time = String(later.dropLast(4))
        var values = [
            "0", "-1", "", "tomorrow", "3600", "Fri, 31 Dec 10000 23:59:59 GMT", "2099-01-01T00:00:00Z", "4102444800",
        ]
        values += [
            time, time + " UTC", time + " CET", time + " +0000", time + " Z", later + ", " + later, later + " x",
        ]
        values += [
            later.replacing(",", with: ""), later.replacing(", ", with: ","), later.replacing(" ", with: "  "),
            later.replacing(":", with: "."), "\"\(later)\"", "Xyz" + later.dropFirst(3),
            later.replacing(" ", with: "-"),
        ]
        values += ["Fri, 1 Jan 2099 00:00:00 GMT", "Fri, 01 Jan 99 00:00:00 GMT", "Fri, 01 January 2099 00:00:00 GMT"]
        values += ["Thu, 01 Jan 2099 24:00:00 GMT", "Thu, 31 Nov 2099 00:00:00 GMT", "Thu, 01 Jan 2099 0:00:00 GMT"]
        try Readings().check(values.map { .asked(.dated() + ["Expires": $0]) })
    }

    @Test func `§5.3 Expires counts from Date, or without one from the arrival`() throws {
        let expires: FieldLines = ["Expires": CacheTests.date(in: 3600)]
        try Readings().check([
            .reused(expires), .reused(expires + ["Date": "yesterday"]), .reused(expires + .dated(-1000)),
            .asked(expires + .dated(3700)), .asked(expires + .dated(3600)),
        ])
    }

    @Test func `§5.5 Warning and ETags of any spelling change nothing about freshness`() throws {
        let fresh = FieldLines.control("max-age=3600")
        try Readings().check(
            [
                ["Warning": "110 - \"Response is Stale\""], ["Warning": "x"], ["ETag": "unquoted"], ["ETag": "w/\"a\""],
                ["ETag": "\"a"], ["ETag": ""], ["Last-Modified": "x"], ["Last-Modified": "0"], ["Vary": ""],
                ["Vary": ", ,"],
                ["Date": "x"],
            ].map { .reused(fresh + $0) } + [
                .asked(fresh + ["Vary": "*"]), .asked(fresh + ["Vary": "Accept, *"]),
                .asked(fresh + ["Vary": "*, Accept"]),
                .asked(fresh + ["Vary": "X-A", "vary": "*"]), .asked(fresh + ["Vary": "X A"]),
            ]
        )
    }

    private static func date(in seconds: Double, _ form: String) -> String {
        let text = CacheTests.date(in: seconds, form)
        guard form.hasPrefix("EEE MMM d "), text.dropFirst(9).first == " " else { return text }
        return text.prefix(8) + " " + text.dropFirst(8)
    }
}
