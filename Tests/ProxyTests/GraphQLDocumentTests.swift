import Testing

@testable import Proxy

@Suite struct GraphQLDocumentTests {
    private static func kinds(_ text: String) -> Set<GraphQLDocument.Kind>? { GraphQLDocument(text.utf8)?.kinds }

    @Test(arguments: [
        "{ viewer { login } }", "query { viewer { login } }", "query Q { a }",
        "query Q($a: Int = 1, $b: [In!]! = [{x: 1}]) { a }",
        "query Q @d(a: {b: \"}\"}) @e { a }", "query mutation { a }", "query Q { mutation }",
        "{ mutation { subscription } }",
        "# mutation M { a }\n{ a }", "{ a(text: \"mutation { b }\") }", "{ a(text: \"\"\"\nmutation { b }\n\"\"\") }",
        "{ a(text: \"\\\"} mutation { b }\") }", "{ a(text: \"\"\"\\\"\"\" mutation { b }\"\"\") }",
        "{ a(text: \"\") }",
        "{ a(text: \"\"\"\"\"\") }", "{ a ...F }\nfragment F on mutation { mutation }",
        "fragment mutation on T { b } { a ...mutation }",
        "\u{FEFF}{ a }", "{a,b,,c}", "query A { a } query B { b }", "{ a } { b }", "\"mutation\" query Q { a }",
        "\"\"\"mutation\"\"\" query Q { a }", "{ a(n: -1.5e+3) ... on mutation { b } ... @include(if: $x) { c } }",
        "{ a # mutation }\r b }", "query Q { a(x: $mutation, y: mutation) }", "{ a(text: \"#\") } # }",
    ])
    func `a document whose operations are queries only reads`(_ text: String) {
        #expect(GraphQLDocument(text.utf8)?.onlyReads == true)
    }

    @Test(
        arguments: [
            ("mutation { a }", [.mutation]), ("mutation M($a: Int) @d { a }", [.mutation]),
            ("subscription { a }", [.subscription]),
            ("query A { a } mutation B { b }", [.query, .mutation]), ("{ a }\n#\nmutation{b}", [.query, .mutation]),
            ("{ a(text: \"\"\"\\\"\"\") { b } mutation M { c } # \"\"\") }", [.query]),
            ("{ a(t: \"\") } mutation { b }", [.query, .mutation]),
            ("{ a(t: \"\\\\\") } mutation { b } # \") }", [.query, .mutation]),
            ("# comment \r mutation { a }", [.mutation]),
            ("fragment F on T { a } mutation { ...F }", [.mutation]), (",,mutation,{,a,}", [.mutation]),
            ("\"text\" mutation M { a }", [.mutation]), ("fragment F on T { a }", []), ("# nothing", []), ("", []),
        ] as [(String, Set<GraphQLDocument.Kind>)]
    )
    func `every operation of a document is found`(_ text: String, _ kinds: Set<GraphQLDocument.Kind>) {
        #expect(Self.kinds(text) == kinds)
    }

    @Test(arguments: [
        "{", "{ a", "{ a }}", "}", "{ a ) }", "{ a(b: [1) ] }", "query", "query Q", "query Q(", "query Q($a: Int)",
        "query Q @ { a }",
        "query A B { a }", "{ a(t: \"x) }", "{ a(t: \"x\ny\") }", "{ a(t: \"\"\"x) }", "{ a(t: \"\"\"x\\\"\"\") }",
        "{ a .. F }",
        "{ a } type T { b: Int }", "schema { query: Q }", "extend type T { a: Int }", "fragment on on T { a } { b }",
        "fragment F T { a } { b }", "fragment F on { a } { b }", "Mutation { a }", "MUTATION { a }",
        "query { a } \"x\" { b }",
        "\"x\"", "{ a ? b }", "{ a } 7", "{ a }\u{0}", "{ é }", "\u{A0}{ a }", "{ a(t: \"\\\n\") }",
    ])
    func `text that the grammar does not allow is no document`(_ text: String) { #expect(Self.kinds(text) == nil) }

    @Test func `no prefix of a document is read as a document with other operations`() {
        let text = Array(
            "query A($a: I = {b: \"{\"}) @d(x: [1]) { a(t: \"\"\"x\"\"\") { b } } mutation B { c } # end".utf8
        )
        for count in 0...text.count {
            guard let document = GraphQLDocument(text[..<count]) else { continue }
            #expect([[], [.query], [.query, .mutation]].contains(document.kinds))
        }
    }

    @Test func `nesting has a bound, and a document of one megabyte is read`() {
        func nested(_ depth: Int) -> String {
            String(repeating: "{a", count: depth) + String(repeating: "}", count: depth)
        }
        #expect(Self.kinds(nested(512)) == [.query])
        #expect(Self.kinds(nested(513)) == nil)
        #expect(Self.kinds(nested(200_000)) == nil)
        let selections = String(repeating: "a(t: \"mutation\") # mutation\n", count: 36_000)
        #expect(selections.utf8.count > 1_000_000)
        #expect(Self.kinds("{ \(selections) }") == [.query])
        #expect(Self.kinds("{ \(selections) } mutation { a }") == [.query, .mutation])
    }
}
