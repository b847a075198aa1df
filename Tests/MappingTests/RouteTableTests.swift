import Mapping
import Testing

/// A table whose rules are known by their path in the tests.
private struct Table {
    let declarations: [RouteDeclaration]
    let table: RouteTable

    init(_ paths: String...) throws {
        self = try Table(paths.map { RouteDeclaration(path: $0) })
    }

    init(_ declarations: [RouteDeclaration]) throws {
        self.declarations = declarations
        table = try RouteTable(declarations)
    }

    func pattern(for path: String) -> String? {
        table.match(RouteSubject(method: "GET", path: path, status: 200)).map { declarations[$0.index].path }
    }

    func index(_ method: String, _ status: Int?, _ path: String = "x", query: String? = nil) -> Int? {
        table.match(RouteSubject(method: method, path: path, query: query, status: status))?.index
    }
}

struct RouteTableTests {
    @Test(
        arguments: [
            ("OV-01", "statuses/*", "statuses/user_timeline", true),
            ("OV-02", "statuses/#", "statuses/user_timeline", false),
            ("OV-03", "statuses/*", "statuses/retweets/12345", false),
            ("OV-04", "statuses/*/*", "statuses/retweets/12345", true),
            ("OV-05", "statuses/**", "statuses/retweets/12345", true),
            ("OV-06", "statuses/**", "statuses/retweets/12345/extra", true),
            ("OV-07", "statuses/retweets/*", "statuses/retweets/12345", true),
            ("OV-08", "statuses/retweets/#", "statuses/retweets/12345", true),
            ("OV-10", "test/things", "test", false),
            ("OV-10", "test/things", "things", false),
            ("OV-10", "test/things", "test/things/thingys", false),
            ("OV-10", "test/things", "test/things", true),
            ("OV-11", "test/#", "test/42", true),
            ("OV-11", "test/#", "test/things", false),
            ("OV-16", "a/**", "a", false),
            ("OV-18", "x/#/y", "x//y", false),
            ("OV-18", "x/*/y", "x//y", false),
            ("OV-18", "**", "x//y", false),
            ("OV-19", "a/b", "/a/b/", true),
            ("OV-19", "/a/b/", "a/b", true),
            ("OV-23", "a/*", "a/b%2Fc", true),
            ("OV-23", "a/*/*", "a/b%2Fc", false),
            ("OV-24", "Users", "users", false),
            ("RK-37", "api/{version}/organizations", "/api/1/organizations/", true),
            ("decoded literal", "a/b%20c", "a/b c", true),
            ("decoded path", "a/b%20c", "a/b%20c", true),
            ("escaped wildcard", "a/%2A", "a/b", false),
            ("escaped wildcard", "a/%2A", "a/*", true),
            ("not ASCII digits", "a/#", "a/%D9%A1", false),
            ("malformed escape", "a/*", "a/%zz", true),
            ("the root", "/", "/", true),
            ("the root", "/", "a", false),
            ("suffix", "a/{id}.json", "a/7.json", true),
            ("suffix", "a/{id}.json", "a/7", false),
            ("suffix", "a/{id}.json", "a/.json", false),
            ("suffix", "a/{id}.json", "a/7.JSON", false),
            ("suffix", "a/{id}.json/b", "a/7.json/b", true),
            ("suffix of digits", "a/{id:#}.json", "a/7.json", true),
            ("suffix of digits", "a/{id:#}.json", "a/x.json", false),
            ("suffix of wildcards", "*.json", "x.json", true),
            ("suffix of wildcards", "#.json", "x.json", false),
            ("escaped suffix", "{id}%20c", "b c", true),
            ("escaped wildcard in a suffix", "{id}.%2A", "b.*", true),
        ] as [(String, String, String, Bool)]
    )
    func `a pattern matches whole components`(_ row: String, _ pattern: String, _ path: String, _ matches: Bool) throws
    {
        #expect(try (Table(pattern).pattern(for: path) != nil) == matches, "\(row)")
    }

    @Test func `OV-12: the more specific pattern wins, in any order of declaration`() throws {
        let patterns = ["test/apple", "test/#", "test/*", "test/**", "**"]
        for patterns in [patterns, patterns.reversed(), Array(patterns[2...] + patterns[..<2])] {
            let table = try Table(patterns.map { RouteDeclaration(path: $0) })
            #expect(table.pattern(for: "test/apple") == "test/apple")
            #expect(table.pattern(for: "test/42") == "test/#")
            #expect(table.pattern(for: "test/pear") == "test/*")
            #expect(table.pattern(for: "test/apple/seed") == "test/**")
            #expect(table.pattern(for: "models") == "**")
        }
    }

    @Test func `OV-13, OV-14: a literal without a rule of its own backtracks`() throws {
        let table = try Table("test", "test/*", "test/path/sub", "test/path/under")
        #expect(table.pattern(for: "test/path/sub") == "test/path/sub")
        #expect(table.pattern(for: "test/apple") == "test/*")
        #expect(table.pattern(for: "test/apple/osx") == nil)
        #expect(table.pattern(for: "test") == "test")
        #expect(table.pattern(for: "test/path") == "test/*")
    }

    @Test func `backtracking goes back more than one component`() throws {
        let table = try Table("a/b/c/d", "a/*/c/e", "a/**", "*/b/c/f")
        #expect(table.pattern(for: "a/b/c/e") == "a/*/c/e")
        #expect(table.pattern(for: "a/b/c/g") == "a/**")
        #expect(table.pattern(for: "a/b/c/f") == "a/**")
        #expect(table.pattern(for: "x/b/c/f") == "*/b/c/f")
    }

    @Test func `OV-15: only ** matches the root`() throws {
        #expect(try Table("a").pattern(for: "/") == nil)
        #expect(try Table("*").pattern(for: "/") == nil)
        #expect(try Table("**").pattern(for: "/") == "**")
    }

    @Test func `OV-25: an exact status matches only itself`() throws {
        let table = try Table([
            RouteDeclaration(path: "x", status: .exact(200)), RouteDeclaration(path: "x", status: .exact(201)),
        ])
        #expect(table.index("GET", 200) == 0)
        #expect(table.index("GET", 201) == 1)
        #expect(table.index("GET", 404) == nil)
        #expect(table.index("GET", nil) == nil)
    }

    @Test func `OV-26: a method matches only itself, but GET also matches HEAD`() throws {
        let table = try Table([
            RouteDeclaration(path: "x", method: "GET"), RouteDeclaration(path: "x", method: "POST"),
        ])
        #expect(table.index("GET", 200) == 0)
        #expect(table.index("HEAD", 200) == 0)
        #expect(table.index("POST", 200) == 1)
        #expect(table.index("PUT", 200) == nil)
    }

    @Test func `OV-27: a rule with a method precedes one with a status, which precedes one with neither`() throws {
        let table = try Table([
            RouteDeclaration(path: "x", method: "POST", status: .any),
            RouteDeclaration(path: "x", status: .exact(201)),
            RouteDeclaration(path: "x", status: .any),
            RouteDeclaration(path: "x", method: "POST", status: .exact(202)),
        ])
        #expect(table.index("POST", 201) == 0)
        #expect(table.index("GET", 201) == 1)
        #expect(table.index("GET", 500) == 2)
        #expect(table.index("POST", 202) == 3)
    }

    @Test func `OV-28: an exact status precedes any other`() throws {
        let table = try Table([
            RouteDeclaration(path: "x", status: .exact(201)), RouteDeclaration(path: "x", status: .any),
            RouteDeclaration(path: "x", status: .class(2)),
        ])
        #expect(table.index("POST", 201) == 0)
        #expect(table.index("POST", 200) == 2)
        #expect(table.index("POST", 404) == 1)
    }

    @Test func `OV-30: a request does not fall through from the chosen pattern to a more general one`() throws {
        let table = try Table([
            RouteDeclaration(path: "test/**", status: .exact(200)), RouteDeclaration(path: "**", status: .any),
        ])
        #expect(table.index("GET", 200, "test/a") == 0)
        #expect(table.index("GET", 404, "test/a") == nil)
        #expect(table.index("GET", 404, "other") == 1)
    }

    @Test func `by default a route matches only 2xx`() throws {
        let table = try Table("x")
        #expect(table.index("GET", 204) == 0)
        #expect(table.index("GET", nil) == 0)
        #expect(table.index("GET", 304) == nil)
        #expect(table.index("GET", 404) == nil)
    }

    @Test func `RK-38: captures are decoded after splitting`() throws {
        let table = try RouteTable([RouteDeclaration(path: "/bills/{state}/{session:#}/{bill}")])
        let subject = RouteSubject(method: "GET", path: "/bills/tx/82/SB%2014%2fa", status: 200)
        let match = try #require(table.match(subject))
        #expect(match.captures == ["state": "tx", "session": "82", "bill": "SB 14/a"])
    }

    @Test func `each rule of a node has its own capture names`() throws {
        let table = try RouteTable([
            RouteDeclaration(path: "users/{login}", method: "GET"),
            RouteDeclaration(path: "users/{name}", method: "PUT"),
        ])
        for (method, name) in [("GET", "login"), ("PUT", "name")] {
            let match = table.match(RouteSubject(method: method, path: "users/a", status: 200))
            #expect(match?.captures == [name: "a"])
        }
    }

    @Test func `the value of a capture excludes the text that follows it`() throws {
        let table = try RouteTable([RouteDeclaration(path: "/{owner}/{id:#}.json")])
        let match = try #require(table.match(RouteSubject(method: "GET", path: "/a.b/7%2Ejson", status: 200)))
        #expect(match.captures == ["owner": "a.b", "id": "7"])
    }

    @Test func `a capture with a suffix precedes one without, and a longer suffix a shorter one`() throws {
        let patterns = ["a/b.json", "a/#.tar.gz", "a/#.gz", "a/*.tar.gz", "a/*.gz", "a/#", "a/*", "a/**"]
        for patterns in [patterns, patterns.reversed()] {
            let table = try Table(patterns.map { RouteDeclaration(path: $0) })
            for (path, pattern) in [
                ("a/b.json", "a/b.json"), ("a/7.tar.gz", "a/#.tar.gz"), ("a/7.gz", "a/#.gz"), ("a/7.x.gz", "a/*.gz"),
                ("a/x.tar.gz", "a/*.tar.gz"), ("a/x.gz", "a/*.gz"), ("a/7", "a/#"), ("a/x.zip", "a/*"),
                ("a/.gz", "a/*"),
            ] {
                #expect(table.pattern(for: path) == pattern, "\(path)")
            }
        }
    }

    @Test(arguments: ["/", "a/*/b", "a/#.json", "*%20x%2A/**", "a%2Fb", "*%78y"])
    func `a pattern is read back from its text`(_ text: String) throws {
        #expect(try RoutePattern(text).text == text)
    }

    @Test func `a filled pattern keeps the text after a capture`() throws {
        let pattern = try RoutePattern("items/{id:#}.json/*").filled(with: ["id": "7"])
        #expect(pattern.text == "items/7.json/*")
    }

    @Test func `a parameter with one value precedes the same with any, and more parameters precede fewer`() throws {
        func declaration(_ query: [String: String?]) -> RouteDeclaration {
            var declaration = RouteDeclaration(path: "x")
            declaration.query = query
            return declaration
        }
        let rules: [[String: String?]] = [
            [:], ["state": nil], ["state": "open"], ["state": nil, "sort": nil], ["state": "open", "sort": nil],
        ]
        for order in [Array(rules.indices), rules.indices.reversed()] {
            let table = try Table(order.map { declaration(rules[$0]) })
            for (query, rule) in [
                (nil, 0), ("page=2", 0), ("state=all", 1), ("state=open", 2), ("sort=a&state=all", 3),
                ("sort=a&state=open", 4),
            ] as [(String?, Int)] {
                #expect(table.index("GET", 200, query: query).map { order[$0] } == rule, "\(query ?? "none")")
            }
        }
        let unclear = RouteTable.mistakes(in: [
            declaration(["a": "1", "b": nil]), declaration(["a": nil, "b": "1"]), declaration(["a": "2", "b": nil]),
        ])
        #expect(unclear.map(\.index) == [1])
    }

    @Test(arguments: [
        ("", "it is empty; write \"/\" for the root itself or \"**\" for every path"),
        ("a/**/b", "\"**\" must be the last component; nothing after it would be looked at"),
        ("a//b", "it has two slashes in a row, and an empty component matches nothing"),
        ("a?b=c", "a pattern matches the path only; leave out what follows \"?\""),
        ("{a}/{a}", "it captures \"a\" twice; give each capture its own name"),
        (
            "a*",
            "\"a*\" has \"*\" after other text; a component has one wildcard or capture, at its beginning"
        ),
        (
            "x/{a}...{b}",
            "\"{a}...{b}\" has \"{\" after other text; a component has one wildcard or capture, at its beginning"
        ),
        (
            "x/{a}#",
            "\"#\" (digits) must be at the beginning of a component; one that is part of a name is written %23"
        ),
        ("u/*rest", "\"*rest\" is not a wildcard; what follows as a whole is \"**\", which has no name"),
        ("**.json", "\"**.json\" is not a wildcard; what follows as a whole is \"**\", which has no name"),
        ("x/{a:#", "\"{a:#\" has \"{\" without \"}\"; write {name} or {name:#}"),
        ("{a-b}", "\"{a-b}\" is not a capture; write {name} or {name:#}, the name being letters, digits and \"_\""),
        (
            "{a:id}",
            "\"{a:id}\" is not a capture; after the colon only \"#\" (digits) is allowed; write {a:#} for digits, {a} for anything"
        ),
        ("a/b c", "it has a blank; in a path that is %20"),
        ("a/%ff", "\"%ff\" is not valid percent-encoded UTF-8"),
    ])
    func `OV-17: a wrong pattern says what to write instead`(_ pattern: String, _ reason: String) {
        #expect(throws: MappingError.invalidPattern(pattern, reason: reason)) { try RoutePattern(pattern) }
        #expect(throws: MappingError.self) { try RouteTable([RouteDeclaration(path: pattern)]) }
    }

    @Test func `OV-33: the same pattern twice is an error, also under other names`() {
        let mistakes = RouteTable.mistakes(in: [
            RouteDeclaration(path: "users/{login}"),
            RouteDeclaration(path: "users/#"),
            RouteDeclaration(path: "/users/{name}/"),
            RouteDeclaration(path: "users/*", method: "POST"),
            RouteDeclaration(path: "**"),
            RouteDeclaration(path: "**"),
            RouteDeclaration(path: "a//b"),
        ])
        #expect(mistakes.map(\.index) == [2, 5, 6])
        #expect(mistakes.first?.error == .duplicateRoute("/users/{name}/", first: 0, second: 2))
    }

    @Test func `every rule has a verdict: the one that applies first, then the nearest ones`() throws {
        var declarations = [
            RouteDeclaration(path: "repos/*/issues"), RouteDeclaration(path: "repos/octo/**"),
            RouteDeclaration(path: "repos/octo/issues", method: "POST"),
            RouteDeclaration(path: "repos/octo/issues"), RouteDeclaration(path: "users/*"),
            RouteDeclaration(path: "repos/octo/issues", status: .exact(201)),
        ]
        declarations[3].query = ["state": "open"]
        func verdicts(_ query: String?, _ path: String = "repos/octo/issues") throws -> [String] {
            let subject = RouteSubject(method: "GET", path: path, query: query, status: 200)
            return try RouteTable(declarations).verdicts(on: subject).map { verdict in
                "\(verdict.index) " + (verdict.misfit.map { "\($0)" } ?? "applies")
            }
        }
        let others = ["5 status(Mapping.StatusPattern.exact(201))", "2 method(\"POST\")", "4 path(matching: 0)"]
        #expect(
            try verdicts("state=open") == ["3 applies", "0 lessSpecific(than: 3)", "1 lessSpecific(than: 3)"] + others
        )
        // None of the rules of the most specific pattern fits, and none falls through.
        let missed = "3 query(name: \"state\", value: Optional(\"open\"))"
        #expect(try verdicts(nil) == ["0 shadowed(by: 2)", "1 shadowed(by: 2)", missed] + others)
        declarations[3].fallsThrough = true
        #expect(try verdicts(nil) == ["1 applies", "0 lessSpecific(than: 1)", missed] + others)
        #expect(try verdicts(nil, "%ff").allSatisfy { $0.hasSuffix("path(matching: 0)") })
    }
}
