import DaemonTestSupport
import Testing

@testable import Proxy
@testable import Settings

@Suite struct TargetNormaliserTests {
    private func normalise(_ target: String, prefix: String = "", basePath: String = "") throws(TargetNormaliser
        .Refusal)
        -> [UInt8]
    {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        return try TargetNormaliser(prefix: prefix, basePath: basePath)
            .normalise(path: bytes(String(parts[0])), query: parts.count > 1 ? bytes(String(parts[1])) : nil)
    }

    @Test(arguments: [
        ("/", "/"), ("/a/b", "/a/b"), ("/a/", "/a/"), ("/a//b", "/a//b"), ("/a?x=1&y=%7e", "/a?x=1&y=%7e"),
        ("/a?", "/a?"),
        ("/a?q=../..", "/a?q=../.."), ("/./a", "/a"), ("/a/./b", "/a/b"), ("/a/.", "/a/"), ("/a/../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/a/%2e%2E/b", "/b"), ("/a/.%2e/b", "/b"), ("/%2e/a", "/a"), ("/a/b/../../c", "/c"), ("/a//../b", "/a/b"),
        ("/a/...", "/a/..."), ("/a/.b", "/a/.b"), ("/a/..b", "/a/..b"), ("/a%2fb", "/a%2fb"), ("/a%20b", "/a%20b"),
        ("/é", "/é"),
        ("/.well-known/x", "/.well-known/x"), ("/a%2f.git", "/a%2f.git"),
    ])
    func `dot segments are resolved, the rest is kept as it is`(_ target: String, _ upstream: String) throws {
        #expect(text(try normalise(target)) == upstream)
    }

    @Test(arguments: [
        ("/p/api/v3", "/base"), ("/p/api/v3/", "/base/"), ("/p/api/v3/users?a=1", "/base/users?a=1"),
        ("/p/api/graphql", "/base/graphql"), ("/p/api/v3/old/x", "/base/new/x"), ("/p/api/v33", "/base/api/v33"),
        ("/p/users/api/v3/x", "/base/users/api/v3/x"), ("/p/x/../api/v3/a", "/base/a"), ("/p/api", "/base/api"),
        ("/p/api/v3/api/v3/x", "/base/api/v3/x"),
    ])
    func `an alias stands for its path, and so does what is below it`(_ target: String, _ upstream: String) throws {
        let aliases = [("/api/v3", ""), ("/api/graphql", "/graphql"), ("/api/v3/old", "/new")]
            .map { PathAlias(path: $0.0, target: $0.1) }
        let targetNormaliser = TargetNormaliser(prefix: "/p", aliases: aliases, basePath: "/base")
        let parts = target.split(separator: "?", maxSplits: 1)
        let query = parts.count > 1 ? bytes(String(parts[1])) : nil
        #expect(text(try targetNormaliser.normalise(path: bytes(String(parts[0])), query: query)) == upstream)
    }

    @Test(arguments: [
        "/..", "/../a", "/a/../../b", "/%2e%2e/a", "/%2E%2E", "/./../a",
    ])
    func `no target leads above the base path`(_ target: String) {
        #expect(throws: TargetNormaliser.Refusal.aboveBasePath) { try normalise(target) }
        #expect(throws: TargetNormaliser.Refusal.aboveBasePath) {
            try normalise("/p" + target, prefix: "/p", basePath: "/v3")
        }
    }

    @Test(arguments: [
        "/..%2fa", "/a/..%2f..%2fb", "/a%2f..%2f..%2fb", "/..%5ca", "/a/%2e%2e%2f%2e%2e/b", "/a/%2f../b",
        // Parameters, which some servers take off first.
        "/..;/a", "/a/..;x=1/b", "/a/.;x/b", "/a/%2e;/b", "/a/%2e%2e;/b", "/a/..%3b/b", "/a/..%3Bx", "/a/%2e%2e%3b",
        // Decoded once more, and again.
        "/%252e%252e/a", "/a/%252e%252e%252fb", "/a/.%252e", "/a/%25252e%25252e/b", "/a/%2525252e./b", "/a/%25%32%65.",
        "/a/..%252fb", "/a/..%255cb", "/a/%252e/b",
        // Overlong UTF-8.
        "/a/%c0%ae%c0%ae/b", "/a/%C0%AE./b", "/a/..%c0%afb", "/a/%e0%80%ae%e0%80%ae/b", "/a/%f0%80%80%ae./b",
        "/a/%25c0%25ae%25c0%25ae/b", "/a/..%c1%9cb", "/a/%fc%80%80%80%80%ae./b",
        // What is dropped at the end of a name.
        "/a/..%20/b", "/a/..%09", "/a/..%3f/b", "/a/..%23/b",
    ])
    func `a segment that some servers read as a dot segment is refused`(_ target: String) {
        #expect(throws: TargetNormaliser.Refusal.hiddenDotSegment) { try normalise(target) }
        #expect(throws: TargetNormaliser.Refusal.hiddenDotSegment) {
            try normalise("/p" + target, prefix: "/p", basePath: "/v3")
        }
    }

    @Test(arguments: ["/a%00", "/..%00/a", "/a/%2500b", "/%00", "/a/%c0%80"])
    func `a NUL in a path is refused, however it is spelled`(_ target: String) {
        #expect(throws: TargetNormaliser.Refusal.nul) { try normalise(target) }
    }

    @Test(arguments: [
        "/a;v=1/b", "/a..;x/b", "/%252e%252ex/b", "/a%252e%252eb", "/group%2Fproject", "/group%252Fproject",
        "/x/...;y", "/%E3%81%82/%C3%A9", "/a/%5B..%5D", "/a?q=%252e%252e/..;/", "/100%25", "/a;..", "/%25",
        "/a%2f.git;x",
    ])
    func `names that only resemble dot segments stay as they are`(_ target: String) throws {
        #expect(text(try normalise(target)) == target)
    }

    @Test func `a path of nothing but escapes is read in one pass`() throws {
        let path = "/a" + String(repeating: "%25", count: 20_000) + "2e"
        #expect(text(try normalise(path)) == path)
    }

    @Test(
        arguments: [
            ("/a#b", .invalidCharacter(0x23)), ("/a?b#c", .invalidCharacter(0x23)), ("/a b", .invalidCharacter(0x20)),
            ("/a\\..\\b", .invalidCharacter(0x5C)), ("/a\u{1}", .invalidCharacter(1)),
            ("/a?\u{7F}", .invalidCharacter(0x7F)),
            ("/a%", .invalidEscape), ("/a%2", .invalidEscape), ("/a%zz", .invalidEscape),
        ] as [(String, TargetNormaliser.Refusal)]
    )
    func `bytes that no URL may contain are refused`(_ target: String, _ refusal: TargetNormaliser.Refusal) {
        #expect(throws: refusal) { try normalise(target) }
        #expect(!refusal.message.isEmpty)
    }

    @Test func `a query may contain the bytes that servers accept`() throws {
        #expect(text(try normalise("/a?b=100%&c=[x]|\\")) == "/a?b=100%&c=[x]|\\")
    }

    @Test(arguments: [
        ("/github/users", "/api/v3/users"), ("/github", "/api/v3"), ("/github/", "/api/v3/"),
        ("/github?a", "/api/v3?a"), ("/github/a/../b", "/api/v3/b"),
    ])
    func `the prefix is replaced by the base path`(_ target: String, _ upstream: String) throws {
        let result = try normalise(target, prefix: "/github/", basePath: "api/v3/")
        #expect(text(result) == upstream)
    }

    @Test(arguments: ["/", "/githubx", "/gitlab/x", "/x/../github/y"])
    func `a target without the upstream's prefix is refused`(_ target: String) {
        #expect(throws: TargetNormaliser.Refusal.otherPrefix) { try normalise(target, prefix: "/github") }
    }

    @Test func `without a base path an empty path is the root`() throws {
        #expect(text(try normalise("/github", prefix: "/github")) == "/")
        #expect(text(try normalise("/github?x", prefix: "/github")) == "/?x")
    }

    @Test func `the key has escapes in upper case`() throws {
        let target = try normalise("/a%2fb%c3%A9?q=%3a%zz%3")
        #expect(text(target) == "/a%2fb%c3%A9?q=%3a%zz%3")
        #expect(text(TargetNormaliser.normalisingEscapes(target)) == "/a%2Fb%C3%A9?q=%3A%zz%3")
    }

    @Test(arguments: [
        ("/%7euser/%61%2D%2e%5F?q=%41%26%3d%2b", "/~user/a-._?q=A%26%3D%2B"), ("/a%25%34%31", "/a%2541"),
        ("/a?100%&x=%41", "/a?100%&x=%41"), ("/a?%2%35", "/a?%2%35"), ("/a?%%37%45", "/a?%%37%45"),
    ])
    func `the key has unreserved characters decoded, but never makes a new escape`(_ target: String, _ key: String)
        throws
    {
        #expect(text(TargetNormaliser.normalisingEscapes(try normalise(target))) == key)
        // What has its final spelling keeps it.
        #expect(text(TargetNormaliser.normalisingEscapes(bytes(key))) == key)
    }

    @Test(arguments: [
        ("/a/b.c", true), ("/a/.b", false), ("/a%20", false), ("/a#", false), ("/a b", false), ("/a\\", false),
        ("/é", true),
    ])
    func `a path that needs no normalising is recognised`(_ path: String, _ isPlain: Bool) {
        #expect(bytes(path).withUnsafeBytes { TargetNormaliser.isPlain($0) } == isPlain)
    }
}
