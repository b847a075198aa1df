import Testing
import Yams

@testable import Settings

/// YAML that stands for more than it says.
@Suite struct YAMLBoundsTests {
    /// Levels of lists, each of several aliases of the one before.
    private static func bomb(levels: Int, width: Int = 9) -> String {
        (1...levels).reduce("b0: &b0 [x]\n") { text, level in
            text
                + "b\(level): &b\(level) [\(Array(repeating: "*b\(level - 1)", count: width).joined(separator: ","))]\n"
        }
    }

    @Test(arguments: [
        bomb(levels: 40), bomb(levels: 40) + "upstreams: *b40\n", bomb(levels: 40) + "? *b40\n: 1\n",
        bomb(levels: 40, width: 2) + "? { a: *b40 }\n: 1\n", "a: &a { k: &k [1] }\n" + bomb(levels: 9),
    ])
    func `aliases of aliases that stand for too much are refused`(yaml: String) {
        let complaints = complaints(yaml)
        #expect(complaints.count == 1, "\(complaints)")
        #expect(complaints[0].contains("the aliases up to here stand for too much"), "\(complaints)")
    }

    @Test func `a long text that is repeated is refused`() {
        let text = "a: &a \"\(String(repeating: "x", count: 1 << 20))\"\n"
        let complaints = complaints(text + "b: [\(Array(repeating: "*a", count: 100).joined(separator: ","))]\n")
        #expect(complaints.first?.contains("the aliases up to here stand for too much") == true)
    }

    @Test(arguments: [
        String(repeating: "[", count: 100_000), String(repeating: "{a: ", count: 100_000),
        (0..<300).map { String(repeating: " ", count: $0) + "a:\n" }.joined(),
        "- " + String(repeating: "- ", count: 300) + "a",
    ])
    func `deep nesting is refused`(yaml: String) {
        let complaints = complaints(yaml)
        #expect(complaints.count == 1, "\(complaints)")
        #expect(complaints[0].contains("nested more than 200 deep"), "\(complaints)")
    }

    @Test func `a key of very many parts is refused`() {
        let key = "? [\(Array(repeating: "a", count: 1_000).joined(separator: ","))]\n: 1\n"
        #expect(complaints(key).first?.contains("a key is plain text") == true)
    }

    @Test func `ordinary aliases are read`() throws {
        let settings = try settings(
            """
            upstreams:
              a: { url: "https://a.example", prefix: /a, principal: &fields [Authorization, X-Tenant], context: *fields }
              b: { url: "https://b.example", prefix: /b, principal: *fields }
            """
        )
        #expect(settings.upstreams[1].principal == ["Authorization", "X-Tenant"])
        #expect(settings.upstreams[0].context == ["Authorization", "X-Tenant"])
    }

    @Test func `an included file has the same bounds`() throws {
        #expect(throws: YAMLFailure.self) { try BoundedYAML.compose(Self.bomb(levels: 30)) }
        #expect(try BoundedYAML.compose("") == nil)
        #expect(try BoundedYAML.compose("a: &a [1]\nb: *a")?["b"]?.sequence?.count == 1)
    }
}
