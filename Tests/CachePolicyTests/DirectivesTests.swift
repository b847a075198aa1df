import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics

@Suite struct ResponseDirectivesTests {
    private func read(_ lines: String...) -> ResponseDirectives {
        ResponseDirectives(Fields(lines.map { Field("Cache-Control", $0) }))
    }

    @Test(arguments: [
        ("max-age=60", 60),
        ("MAX-AGE=60", 60),
        ("Max-Age=\"60\"", 60),
        ("max-age=\"6\\0\"", 60),
        ("max-age=0060", 60),
        ("public, max-age=60", 60),
        ("\tpublic ,max-age=60 ,", 60),
        (",,max-age=60", 60),
        ("max-age=2147483647", 2_147_483_647),
        ("max-age=2147483648", 2_147_483_648),
        ("max-age=2147483649", 2_147_483_648),
        ("max-age=99999999999999999999999999", 2_147_483_648),
        // Repeated: the smallest.
        ("max-age=1800, max-age=1", 1),
        ("max-age=1, max-age=1800", 1),
        // Unreadable: stale.
        ("max-age=", 0),
        ("max-age", 0),
        ("max-age=-60", 0),
        ("max-age=+60", 0),
        ("max-age=60.0", 0),
        ("max-age=60.5", 0),
        ("max-age=abc", 0),
        ("max-age=60a", 0),
        ("max-age='60'", 0),
        ("max-age =60", 0),
        ("max-age= 60", 0),
        ("max-age=60; x", 0),
        ("max-age=\"60", 0),
        ("max-age=\"60\"0", 0),
        ("max-age=60, max-age=x", 0),
        ("max-age=0x3c", 0),
    ])
    func `a correct max-age is read, and a malformed one counts as 0`(_ value: String, _ seconds: Int64) {
        #expect(read(value).maxAge == seconds)
    }

    @Test(arguments: [
        "", "public", "xmax-age=60", "max-agex=60", "ext=\"max-age=60\"", "ext=\"a, max-age=60\"", "\"max-age=60\"",
        "=60", "max age=60", "max_age=60",
    ])
    func `a directive that resembles max-age is not taken for it`(_ value: String) {
        #expect(read(value).maxAge == nil)
    }

    @Test func `a directive after a quoted argument is read`() {
        #expect(read("ext=\"max-age=100, no-store\", max-age=1").maxAge == 1)
        #expect(!read("ext=\"max-age=100, no-store\", max-age=1").noStore)
        #expect(read("max-age=1, ext=\"max-age=100\"").maxAge == 1)
    }

    @Test(arguments: ["ext=\"abc, ", "\"abc\", ", "a\"b, ", "a=b\"c, ", "ext=\"a\\\", ", "ext=\"a\"\", ", "\", "])
    func `a stray quote hides no restrictive directive, and no directive after it permits anything`(_ quote: String) {
        #expect(read(quote + "no-store").noStore)
        #expect(read(quote + "no-cache=x").noCache)
        #expect(read(quote + "private=x").isPrivate)
        #expect(read(quote + "max-age=5").maxAge == 0)
        #expect(read(quote + "s-maxage=5").sMaxAge == 0)
        #expect(read(quote + "stale-if-error=5").staleIfError == nil)
        #expect(!read(quote + "public").isPublic)
        #expect(!read(quote + "must-understand").mustUnderstand)
        #expect(read(quote + "foo=\"a, no-store, b\"").noStore)
        #expect(read(quote, "foo=\"a, no-store, b\"").noStore)
        // The next line belongs to the same list; what stood before the quote holds.
        #expect(read(quote, "max-age=5, public").maxAge == 0)
        #expect(!read(quote, "max-age=5, public").isPublic)
        #expect(read("max-age=5, " + quote).maxAge == 5)
        #expect(asking(quote + "max-stale").maxStale == 0)
        #expect(asking(quote + "max-age=60").maxAge == 0)
        #expect(asking(quote + "min-fresh=5").minFresh == DeltaSeconds.maximum)
    }

    @Test(arguments: [
        "é, ", "\u{1}, ", "=, ", ";, ", "(a), ", ", ,, ", "foo bar, ", "foo = bar, ", "ext=\"a, b\", ", "a=b, ",
    ])
    func `an unknown or malformed directive changes nothing`(_ garbage: String) {
        let expected = read("max-age=60, public, no-cache=\"x\"")
        #expect(read(garbage + "max-age=60, public, no-cache=\"x\"") == expected)
        #expect(read("max-age=60, " + garbage + "public, no-cache=\"x\"") == expected)
        #expect(read(garbage, "max-age=60", "public, no-cache=\"x\"," + garbage) == expected)
    }

    @Test func `the most restrictive of conflicting directives holds`() {
        #expect(read("max-age=60, max-age=0").maxAge == 0)
        #expect(read("max-age=0", "max-age=60").maxAge == 0)
        #expect(read("private=\"x\", private").isPrivate)
        #expect(read("private", "private=\"x\"").isPrivate)
        #expect(read("public, private").isPrivate)
        #expect(read("stale-if-error=5, stale-if-error=x").staleIfError == 5)
    }

    @Test func `several Cache-Control lines are one list`() {
        let directives = read("max-age=60", "no-transform, s-maxage=5", "")
        #expect(directives.maxAge == 60)
        #expect(directives.sMaxAge == 5)
    }

    @Test func `restrictive directives hold with any argument`() {
        #expect(read("no-store=x").noStore)
        #expect(read("No-Store").noStore)
        #expect(read("no-store; x").noStore)
        #expect(read("must-revalidate=1").mustRevalidate)
        #expect(!read("no-storex").noStore)
        #expect(!read("xno-store").noStore)
    }

    @Test func `directives that permit hold only as they are defined`() {
        for argument in ["=1", "=", "=\"x\"", "=\"x", " x", "; x"] {
            #expect(!read("public\(argument)").isPublic)
            #expect(!read("must-understand\(argument)").mustUnderstand)
            #expect(!read("immutable\(argument)").immutable)
        }
        #expect(read("public=1, public").isPublic)
        #expect(read("s-maxage=60").permitsAuthorization && read("s-maxage=x").permitsAuthorization)
        #expect(!read("max-age=60, proxy-revalidate").permitsAuthorization)
    }

    @Test func `every flag is read`() {
        let directives = read(
            "public, must-revalidate, proxy-revalidate, must-understand, no-transform, immutable, unknown=1"
        )
        #expect(directives.isPublic && directives.mustRevalidate && directives.proxyRevalidate)
        #expect(directives.mustUnderstand && directives.immutable)
        #expect(!directives.noStore && !directives.noCache && !directives.isPrivate)
    }

    @Test func `no-cache and private can name fields`() {
        let directives = read("no-cache=\"Set-Cookie, X-A\", private=\"x-b\"", "no-cache=x-c")
        #expect(directives.noCacheFields.map { text($0) } == ["set-cookie", "x-a", "x-c"])
        #expect(directives.privateFields.map { text($0) } == ["x-b"])
        #expect(!directives.noCache && !directives.isPrivate)
    }

    @Test(arguments: [
        "no-cache", "no-cache=", "no-cache=\"\"", "no-cache=\"a b\"", "no-cache=\"a", "no-cache=\"x\", no-cache",
    ])
    func `no-cache without a field name means the whole response`(_ value: String) {
        #expect(read(value).noCache)
    }

    @Test func `stale responses are allowed only by numbers that can be read`() {
        #expect(read("stale-while-revalidate=60").staleWhileRevalidate == 60)
        #expect(read("stale-while-revalidate=60, stale-while-revalidate=6").staleWhileRevalidate == 6)
        #expect(read("stale-if-error=x").staleIfError == nil)
        #expect(read("stale-if-error").staleIfError == nil)
        #expect(read("stale-if-error=\"7\"").staleIfError == 7)
    }
}

@Suite struct TargetedDirectivesTests {
    @Test func `the first targeted field that is present counts`() throws {
        let answer = fields([
            ("CDN-Cache-Control", "max-age=60"), ("larder-cache-control", "max-age=5, no-transform"),
        ])
        let found = try #require(
            TargetedDirectives.find(in: answer, targets: ["Larder-Cache-Control", "CDN-Cache-Control"])
        )
        #expect(found.field == "Larder-Cache-Control")
        #expect(found.directives.maxAge == 5)
        #expect(TargetedDirectives.find(in: answer, targets: ["Other-Cache-Control"]) == nil)
    }

    @Test(arguments: [
        "", "   ", "max-age=60,", "max-age = 60", "MAX-AGE=60", "max-age=60 no-store", "a=\"open", ",max-age=5",
        "max-age=60, &", "max-age==60", "max-age=\"é\"", "max-age='60'", "max-age=1234567890123456", "no-store;",
        "no-store=?2",
        "max-age=(1", "1a", "é", "max-age=60,,no-store", "max-age=60\u{1}", "max-age=+5",
        "a=:b",
    ])
    func `an empty or malformed targeted field counts as absent`(_ value: String) {
        let answer = fields([("A-Cache-Control", value), ("B-Cache-Control", "max-age=7")])
        let found = TargetedDirectives.find(in: answer, targets: ["A-Cache-Control", "B-Cache-Control"])
        #expect(found?.field == "B-Cache-Control")
    }

    @Test func `directives of a targeted field have the types of structured fields`() throws {
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=60;x=1, no-store")])).maxAge == 60)
        #expect(try #require(TargetedDirectives.parse([bytes("no-store")])).noStore)
        #expect(try #require(TargetedDirectives.parse([bytes("no-store=?0, max-age=1")])).noStore == false)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=\"60\"")])).maxAge == 0)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=60.5")])).maxAge == 0)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=-60")])).maxAge == 0)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=(60 61)")])).maxAge == 0)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=60"), bytes("max-age=7")])).maxAge == 7)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=60, max-age=\"7\"")])).maxAge == 0)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=?0")])).maxAge == 0)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age")])).maxAge == 0)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=a60")])).maxAge == 0)
        #expect(try #require(TargetedDirectives.parse([bytes("stale-if-error=\"5\"")])).staleIfError == nil)
        #expect(try #require(TargetedDirectives.parse([bytes("stale-while-revalidate=5")])).staleWhileRevalidate == 5)
        #expect(try #require(TargetedDirectives.parse([bytes("public=1")])).isPublic == false)
        #expect(try #require(TargetedDirectives.parse([bytes("public;a=1")])).isPublic)
        #expect(try #require(TargetedDirectives.parse([bytes("must-revalidate, private")])).mustRevalidate)
        #expect(try #require(TargetedDirectives.parse([bytes("no-cache=(\"a\")")])).noCache)
        #expect(try #require(TargetedDirectives.parse([bytes("none")])) == ResponseDirectives())
        #expect(try #require(TargetedDirectives.parse([bytes("no-cache=\"a, b\"")])).noCacheFields.count == 2)
        #expect(try #require(TargetedDirectives.parse([bytes("max-age=999999999999999")])).maxAge == 2_147_483_648)
    }
}

@Suite struct RequestDirectivesTests {
    @Test(
        arguments: [
            ("max-age=60", 60), ("MAX-AGE=\"60\"", 60), ("max-age=60, max-age=5", 5), ("max-age=x", 0), ("max-age", 0),
            ("no-transform", -1), ("max-agee=5", -1),
        ] as [(String, Int64)]
    )
    func `of several max-age directives of a request the smallest counts, and a malformed one as 0`(
        _ value: String,
        _ seconds: Int64
    ) {
        #expect(asking(value).maxAge == seconds)
    }

    @Test(
        arguments: [
            ("max-stale", Int64.max), ("max-stale=10", 10), ("max-stale, max-stale=10", 10), ("max-stale=x", 0),
            ("max-stale=", 0), ("", -1),
        ] as [(String, Int64)]
    )
    func `a max-stale that cannot be read allows nothing`(_ value: String, _ seconds: Int64) {
        #expect(asking(value).maxStale == seconds)
    }

    @Test func `the other request directives are read`() {
        let directives = asking("no-cache, No-Store,only-if-cached , no-transform, min-fresh=5, stale-if-error=9, x=y")
        #expect(directives.noCache && directives.noStore && directives.onlyIfCached)
        #expect(directives.minFresh == 5)
        #expect(directives.staleIfError == 9)
        #expect(asking("min-fresh=x").minFresh == 2_147_483_648)
        #expect(asking("stale-if-error=x").staleIfError == -1)
    }

    @Test func `Pragma counts only without Cache-Control`() {
        #expect(RequestDirectives(fields: fields([("Pragma", "x, No-Cache")])).noCache)
        #expect(!RequestDirectives(fields: fields([("Pragma", "no-cache"), ("Cache-Control", "max-age=1")])).noCache)
        #expect(!RequestDirectives(fields: fields([("Pragma", "no-cachee")])).noCache)
    }

    @Test func `a request is plain unless one of its directives affects reuse`() {
        #expect(RequestDirectives.none.isPlain)
        #expect(asking("no-transform, no-store").isPlain)
        for value in ["no-cache", "max-age=0", "min-fresh=0", "max-stale", "only-if-cached", "stale-if-error=1"] {
            #expect(!asking(value).isPlain)
        }
    }
}
