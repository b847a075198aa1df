import DaemonTestSupport
import Testing

@testable import HTTPSemantics
@testable import Proxy
@testable import Settings
@testable import Store

@Suite struct RecipeTagsTests {
    private static func request(_ fields: [(String, String)], _ recipe: String = "[Accept, Authorization, Cookie, body]")
        throws -> ProxyRequest
    {
        let yaml = """
            upstreams: { a: { url: "https://a.example", validate_across: computed, etag: { sha256: \(recipe) } } }
            """
        let settings = ConfigFile.parse(yaml, file: "x", environment: [:]).configuration?.upstreams.first
        let upstream = ProxiedUpstream(try CompiledUpstream(try #require(settings)))
        return ProxyFixture.request("GET", "/x", fields, of: upstream)
    }

    @Test func `a tag is the SHA-256 of the fields that are present, each followed by a colon, and of the body`() throws {
        // printf 'a/b:Bearer t:{}' | sha256sum
        let request = try Self.request([("Accept", "a/b"), ("Authorization", "Bearer t"), ("User-Agent", "x")])
        let tags = try #require(RecipeTags(request))
        #expect(
            text(tags.opaque(of: bytes("{}"), .received))
                == "6fbe1d61e946c34927661c60b095af37fd335e9f174bc48dd7710b148e17d6ac"
        )
        #expect(tags.opaque(of: bytes("{ }\n"), .minified) == tags.opaque(of: bytes("{}"), .received))
    }

    @Test(arguments: [
        ("{}", TagCoverage.received), ("{ }\n", .minified), ("{\"a\": 1}", nil),
    ] as [(String, TagCoverage?)])
    func `a response follows the recipe with its body as received, or minified`(body: String, coverage: TagCoverage?) throws
    {
        let tags = try #require(RecipeTags(try Self.request([])))
        for prefix in ["", "W/"] {
            let tag = EntityTag(bytes("\(prefix)\"") + tags.opaque(of: bytes("{}"), .received) + bytes("\""))
            #expect(tags.coverage(of: bytes(body), by: try #require(tag)) == coverage)
        }
        #expect(tags.coverage(of: bytes("{}"), by: try #require(EntityTag(bytes("\"\"")))) == nil)
    }

    @Test func `a request with two lines of a field has no tag of the recipe`() throws {
        #expect(RecipeTags(try Self.request([("Cookie", "a=1"), ("Cookie", "b=2")])) == nil)
        #expect(RecipeTags(try Self.request([("Cookie", "a=1"), ("Cookie", "b=2")], "[Accept, body]")) != nil)
    }

    @Test func `minified JSON has no white space between its tokens, and all of it within strings`() {
        let text = "{ \"a \\\" b\" :\t[1 , \"\\\\\" , \" \" ]\r\n}\n"
        #expect(RecipeTags.minified(bytes(text)) == bytes(#"{"a \" b":[1,"\\"," "]}"#))
    }

    @Test func `an upstream is trusted for an hour, and no more after a 304 to a wrong tag or three misfits in a row`() throws {
        let upstream = try ProxyFixture.upstream()
        var trust = AcrossTrust(of: upstream)
        #expect(!trust.isProved(at: 0))
        #expect(!trust.tried(isNotModified: false, now: 5))
        #expect(trust.isProved(at: 3_600_000_000_004) && !trust.isProved(at: 3_600_000_000_005))
        #expect(!trust.noted(fits: false) && !trust.noted(fits: false) && !trust.noted(fits: true))
        #expect(!trust.noted(fits: false) && !trust.noted(fits: false) && trust.isUsed)
        #expect(trust.noted(fits: false) && !trust.isUsed)
        // It ends once.
        #expect(!trust.noted(fits: false) && !trust.tried(isNotModified: true, now: 9))
        trust = AcrossTrust(of: upstream)
        #expect(trust.tried(isNotModified: true, now: 9) && !trust.isUsed && !trust.isProved(at: 10))
    }
}
