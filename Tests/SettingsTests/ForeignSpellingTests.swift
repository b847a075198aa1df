import Testing

/// What `larder check` says of configs that are spelled as other languages, routers and formats have it.
struct ForeignSpellingTests {
    private static func property(_ value: String) -> String {
        one + "models: { User: { identity: id, properties: { x: \(value) } } }"
    }

    private static func route(_ keys: String) -> String {
        one + "models: { User: { identity: id } }\nroutes:\n  - { \(keys) }"
    }

    @Test(arguments: [
        ("\"items[0]\"", "\"items[]\" takes each of them"), ("{ from: \"items[0].name\" }", "\"items[]\" takes each"),
        ("\"items[-1]\"", "\"items[]\" takes each"), ("\"items[*].n\"", "are written \"items[]\""),
        ("$.x", "leave out \"$\""), ("\"$['x']\"", "leave out \"$\""), ("\"a['b']\"", "write \"a.b\""),
        ("/data/items", "write \"data.items\""), ("\"{{ user.login }}\"", "without braces"),
        (".user.login", "as in \"user.login\""), ("{ from: x, to: /a/b }", "write \"a.b\""),
        ("{ parts: { a: $.b } }", "leave out \"$\""),
    ])
    func `a path in another tool's language is refused with Larder's spelling`(_ value: String, _ words: String) throws
    {
        let found = complaints(Self.property(value))
        #expect(found.count == 1 && found[0].hasPrefix("2:"), "\(found)")
        #expect(
            found.first?.contains("is not a key path; ") == true && found.first?.contains(words) == true,
            "\(found)"
        )
    }

    @Test(arguments: ["\"\\\\$.id\"", "$ref", "application/json", "\"\\\\/users\"", "\"a\\\\[0]\"", "\"items[].n\""])
    func `a member whose name only looks like such a path can be named`(_ value: String) {
        #expect(complaints(Self.property(value)) == [])
    }

    @Test(arguments: [
        ("/data/items", "write \"data.items\""), ("$.data", "leave out \"$\""),
        ("\"data[*]\"", "are written \"data[]\""),
    ])
    func `a root in another tool's language is refused with Larder's spelling`(_ root: String, _ words: String) {
        let found = complaints(Self.route("path: a, model: [User], root: \(root)"))
        #expect(found.count == 1 && found[0].contains("4:") && found[0].contains(words), "\(found)")
    }

    @Test(arguments: [
        ("u/:id", "a capture is written {id}"), ("u/<int:id>", "a capture is written {id}, or {id:#} for digits"),
        ("u/<id>", "a capture is written {id}"), ("^/u/[0-9]+$", "it is not a regular expression"),
        ("u/\\\\d+", "it is not a regular expression"), ("u/{id:int}", "write {id:#} for digits"),
        ("u/{id:[0-9]+}", "not a regular expression"), ("u/{id?}", "no component is optional"),
        ("u(/x)", "no part of a path is optional"), ("GET /u", "the method is a key of its own"),
        ("u/*rest", "\"**\", which has no name"), ("u/{rest:**}", "\"**\", which has no name"),
        ("u/{**rest}", "\"**\", which has no name"), ("a b", "%20"),
    ])
    func `a pattern in another router's language is refused with Larder's spelling`(_ path: String, _ words: String) {
        let found = complaints(Self.route("path: \"\(path)\", model: User"))
        #expect(found.count == 1 && found[0].hasPrefix("4:13: path "), "\(found)")
        #expect(found.first?.contains(words) == true, "\(found)")
    }

    @Test(arguments: ["odata/$metadata", "Users(5)", "{id}", "a:b", "users/@me", "a%3Cb"])
    func `a path that only resembles another router's pattern is accepted`(_ path: String) {
        #expect(complaints(Self.route("path: \"\(path)\", model: User")) == [])
    }

    @Test(arguments: [
        ("{ date: { format: \"%Y-%m-%d\" } }", "write yyyy for %Y"),
        ("{ date: { format: \"YYYY-MM-dd\" } }", "write yyyy for the year"),
        ("{ date: { format: \"yyyy-MM-DD\" } }", "write dd for the day of the month"),
        ("{ date: { format: \"2006-01-02\" } }", "it has no field"),
        ("{ date: iso8601 }", "\"as: date\" reads by itself"),
        ("{ date: \"yyyy-MM-dd\" }", "a pattern is written { format: \"yyyy-MM-dd\" }"),
        ("int", "did you mean \"integer\"?"), ("bool", "did you mean \"boolean\"?"),
        ("float", "did you mean \"decimal\"?"),
        ("datetime", "did you mean \"date\"?"), ("str", "did you mean \"string\"?"),
    ])
    func `a conversion or date in another language is refused with Larder's spelling`(_ value: String, _ words: String)
    {
        let found = complaints(Self.property("{ from: x, as: \(value) }"))
        #expect(found.count == 1 && found[0].contains(words), "\(found)")
    }

    @Test(arguments: ["yyyy-DDD", "YYYY-'W'ww", "d. MMMM yyyy", "h:mm a"])
    func `a date pattern with weeks or days of the year is accepted`(_ format: String) {
        #expect(complaints(Self.property("{ from: x, as: { date: { format: \"\(format)\" } } }")) == [])
    }

    @Test(arguments: [
        ("timeouts: { connect: 5 minutes }", "write 5m"), ("timeouts: { connect: 5min }", "write 5m"),
        ("timeouts: { connect: 1.5h }", "write 1h30m"), ("timeouts: { connect: PT5M }", "write 5m"),
        ("timeouts: { connect: 10 sec }", "write 10s"), ("limits: { head: 64 KiB }", "write 64KiB"),
        ("limits: { head: 64kb }", "write 64kB"), ("limits: { head: 64K }", "write 64KiB"),
        ("limits: { head: 0.5MiB }", "write 512KiB"), ("limits: { head: 64Ki }", "write 64KiB"),
    ])
    func `a duration or size in another spelling is refused with Larder's`(_ line: String, _ words: String) {
        let found = complaints(one + line)
        #expect(found.count == 1 && found[0].hasSuffix(words), "\(found)")
    }

    @Test(arguments: ["yes", "True", "on", "y", "1"])
    func `a boolean in another spelling than true or false is refused`(_ word: String) {
        let found = complaints(Self.property("{ from: x, required: \(word) }"))
        #expect(found.count == 1 && found[0].hasSuffix("is neither true nor false; write true"), "\(found)")
    }

    @Test(arguments: [
        ("upstreams:\n\ta:\n\t\turl: https://a.example", "2:1: ", "indented by spaces, not by tabs"),
        (one + "routes:\n  - { path: u/{id:#}, model: User }", "3:", "a path with braces or \"#\" needs quotes"),
        (one + "models: { User: !model { identity: id } }", "2:17: ", "\"!model\" is a tag"),
        (
            one + "models:\n  User: { identity: id }\n  Post: { identity: id }\n  User: { identity: id }", "5:3: ",
            "first in line 3"
        ),
        ("upstreams:\n  a:\n    url: https://a.example\n    'url': https://b.example", "4:5: ", "first in line 3"),
        (one + "---\nworkers: 1", "2:1: ", "another document begins here"),
        (one + "log: { level: @x }", "2:15: ", "needs quotes"),
        ("upstreams:\n  a:\n    url: https://a.example\n   prefix: /a", "4:4: ", "begin in the same column"),
    ])
    func `a typical slip in YAML is reported at its line`(_ yaml: String, _ place: String, _ words: String) {
        let found = complaints(yaml)
        #expect(found.count == 1 && found[0].hasPrefix(place) && found[0].contains(words), "\(found)")
    }

    @Test func `a setting without effect gives a warning`() {
        let yaml = """
            models:
              Place: { identity: [], version: 1, migrations: [{ to: 1, rename: { a: b } }] }
              Item: { identity: id }
            routes:
              - { path: a, model: [Item], envelope: Place }
            """
        let found = complaints(one + yaml)
        #expect(found.count == 2 && found.allSatisfy { $0.contains(": warning: ") }, "\(found)")
        #expect(found.first?.hasPrefix("3:50: ") == true && found.last?.hasPrefix("6:41: ") == true, "\(found)")
    }
}
