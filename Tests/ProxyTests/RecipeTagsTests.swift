import DaemonTestSupport
import Mapping
import Testing

@testable import HTTPSemantics
@testable import Proxy
@testable import Settings
@testable import Store

@Suite struct RecipeTagsTests {
    private static func request(_ fields: [(String, String)], _ recipe: String...) throws -> ProxyRequest {
        let upstream = try ProxyFixture.upstream { settings in
            settings.validateAcross = .computed
            settings.etag.sha256 = recipe.isEmpty ? ["Accept", "Authorization", "Cookie", "body"] : recipe
        }
        return ProxyFixture.request("GET", "/x", fields, of: upstream)
    }

    @Test func `a tag is the SHA-256 of the fields that are present, each followed by a colon, and of the body`() throws
    {
        // printf 'a/b:Bearer t:{}' | sha256sum
        let request = try Self.request([("Accept", "a/b"), ("Authorization", "Bearer t"), ("User-Agent", "x")])
        let tags = try #require(RecipeTags(request))
        #expect(
            text(tags.opaque(of: bytes("{}"), .received))
                == "6fbe1d61e946c34927661c60b095af37fd335e9f174bc48dd7710b148e17d6ac"
        )
        #expect(tags.opaque(of: bytes("{ }\n"), .minified) == tags.opaque(of: bytes("{}"), .received))
    }

    @Test(
        arguments: [
            ("{}", TagCoverage.received), ("{ }\n", .minified), ("{\"a\": 1}", nil),
        ] as [(String, TagCoverage?)]
    )
    func `a response follows the recipe with its body as received, or minified`(body: String, coverage: TagCoverage?)
        throws
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
        #expect(RecipeTags(try Self.request([("Cookie", "a=1"), ("Cookie", "b=2")], "Accept", "body")) != nil)
    }

    @Test func `minified JSON has no white space between its tokens, and all of it within strings`() {
        let text = "{ \"a \\\" b\" :\t[1 , \"\\\\\" , \" \" ]\r\n}\n"
        #expect(JSONLayout.compact(bytes(text)) == bytes(#"{"a \" b":[1,"\\"," "]}"#))
    }

    @Test func `an upstream is trusted for an hour, and no more after a 304 to a wrong tag or three misfits in a row`()
        throws
    {
        let upstream = try ProxyFixture.upstream()
        var trust = TrustAcrossPrincipals(of: upstream)
        #expect(!trust.isProved(at: 0))
        var isEnd = trust.tried(isNotModified: false, now: 5)
        #expect(!isEnd && trust.isProved(at: 3_600_000_000_004) && !trust.isProved(at: 3_600_000_000_005))
        let ends = [false, false, true, false, false, false, false].map { trust.noted(fits: $0) }
        // It ends once.
        #expect(ends == [false, false, false, false, false, true, false] && !trust.isUsed)
        isEnd = trust.tried(isNotModified: true, now: 9)
        #expect(!isEnd)
        trust = TrustAcrossPrincipals(of: upstream)
        isEnd = trust.tried(isNotModified: true, now: 9)
        #expect(isEnd && !trust.isUsed && !trust.isProved(at: 10))
    }
}
