import Testing

@testable import Settings

/// Configs with thousands of upstreams, and how their prefixes are compared.
@Suite struct ManyUpstreamsTests {
    private static func config(_ prefixes: [String?], listen: String = "") -> String {
        let upstreams = prefixes.enumerated().map { index, prefix in
            "  u\(index): { url: \"https://a.example/\(index)\"\(prefix.map { ", prefix: \($0)" } ?? "") }\n"
        }
        return listen + "upstreams:\n" + upstreams.joined()
    }

    @Test func `four thousand upstreams are read and found again in a recording's config`() throws {
        let settings = try settings(Self.config((0..<4_000).map { "/p/\($0)" }))
        #expect(settings.upstreams.count == 4_000)
        #expect(settings.upstreams[3_999].prefix == "/p/3999")
    }

    @Test(arguments: [
        (["/a", "/a"], 1), (["/a/b", "/a"], 1), (["/a", "/a/b"], 1), (["/a", "/a-b", "/ab"], 0),
        (["/a/b/c", "/a/c", "/b", "/a/b"], 1), (["/a/b", "/x", "/a/b/c/d"], 1), (["/a", "/a.b/c", "/a/b/c"], 1),
    ])
    func `a prefix within another is found in either order`(prefixes: [String], count: Int) {
        let found = complaints(Self.config(prefixes)).filter { $0.contains("overlap at 127.0.0.1:8787") }
        #expect(found.count == count, "\(found)")
    }

    @Test func `upstreams at other addresses do not collide`() {
        let yaml = """
            upstreams:
              a: { url: "https://a.example", listen: "127.0.0.1:1" }
              b: { url: "https://b.example", listen: "127.0.0.1:2" }
              c: { url: "https://c.example", listen: ["127.0.0.1:3", "127.0.0.1:2"], prefix: /c }
              d: { url: "https://d.example", listen: "127.0.0.1:0" }
              e: { url: "https://e.example", listen: "127.0.0.1:0" }
              A: { url: "https://a.example", listen: "127.0.0.1:4" }
            """
        let complaints = complaints(yaml)
        #expect(complaints.count == 2, "\(complaints)")
        #expect(complaints[0].contains("\"c\" and \"b\" are both served at 127.0.0.1:2"))
        #expect(complaints[1].contains("\"A\" and \"a\" are the same name but for capitals"))
    }
}
