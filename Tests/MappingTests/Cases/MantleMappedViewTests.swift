@testable import Mapping
import Testing

/// What Mantle's cases say of the mapped view of values.
@Suite struct MantleMappedViewTests {
    private func user() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration("User", Property("username"), Property("count"), Property("nestedName", "nested.name"))
        )
    }

    @Test func `MT-01: null is written only where null was received`() throws {
        let body = #"{"username":null,"count":"5"}"#
        #expect(try user().one(body, "User").body == body)
        #expect(try user().unmap(body, "User") == body)
    }

    @Test func `MT-02: a round trip is exact`() throws {
        let body = #"{"username":"foo","count":"0","nested":{"name":"bar"}}"#
        let shown = try user().one(body, "User")
        #expect(shown.body == #"{"username":"foo","count":"0","nestedName":"bar"}"#)
        #expect(try user().unmap(shown.body, "User") == body)
    }

    private func ranges() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                "Ranges",
                Property(
                    name: "range",
                    from: "",
                    parts: [.init(name: "location", from: "location"), .init(name: "length", from: "length")]
                ),
                Property(
                    name: "nestedRange",
                    from: "",
                    parts: [
                        .init(name: "location", from: "nested.location"), .init(name: "length", from: "nested.length"),
                    ]
                )
            )
        )
    }

    @Test func `MT-03: several members are folded into one object, and spread again`() throws {
        let body = #"{"location":20,"length":12,"nested":{"location":12,"length":34}}"#
        let shown = try ranges().one(body, "Ranges")
        #expect(shown.body == #"{"range":{"location":20,"length":12},"nestedRange":{"location":12,"length":34}}"#)
        #expect(try ranges().unmap(shown.body, "Ranges") == body)
    }

    @Test func `MT-46: of several members the present ones are folded`() throws {
        #expect(try ranges().one(#"{"location":20}"#, "Ranges").body == #"{"range":{"location":20}}"#)
        #expect(try ranges().one(#"{"length":null}"#, "Ranges").body == #"{"range":{"length":null}}"#)
    }

    @Test func `MT-47: a folded member behind a value without members is absent, with a warning`() throws {
        let shown = try ranges().one(#"{"location":20,"nested":"x"}"#, "Ranges")
        #expect(shown.body == #"{"range":{"location":20}}"#)
        #expect(shown.kinds == [.pathBlocked] && shown.pointers == ["/nested"])
    }

    @Test func `MT-04: a key path through a string is reported, and the object survives`() throws {
        let shown = try user().one(#"{"username":"foo","nested":"bar"}"#, "User")
        #expect(shown.body == #"{"username":"foo"}"#)
        #expect(shown.kinds == [.pathBlocked] && shown.pointers == ["/nested"])
    }

    @Test func `MT-05: only a path with brackets crosses arrays`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Plain", Property("names", "users.name")),
            ModelDeclaration("Each", Property("names", "users[].name"), Property("deep", "groups[].users[].name"))
        )
        let body = #"{"users":[{"name":"a"},{"name":"b"}]}"#
        #expect(fixture.one(body, "Plain").kinds.first == .pathBlocked)
        #expect(fixture.one(body, "Each").body == #"{"names":["a","b"]}"#)
        // Positions are kept.
        let gaps = fixture.one(#"{"users":[{"name":"a"},{},null,7]}"#, "Each")
        #expect(gaps.body == #"{"names":["a",null,null,null]}"#)
        #expect(gaps.kinds == [.pathBlocked] && gaps.pointers == ["/users/3"])
        let nested = fixture.one(#"{"groups":[{"users":[{"name":"a"}]},{"users":[]}]}"#, "Each")
        #expect(nested.body == #"{"deep":[["a"],[]]}"#)
        #expect(try fixture.unmap(nested.body, "Each") == #"{"groups":[{"users":[{"name":"a"}]},{"users":[]}]}"#)
        #expect(fixture.one(#"{"users":null}"#, "Each").body == #"{"names":null}"#)
        #expect(fixture.one(#"{"users":"x"}"#, "Each").kinds == [.pathBlocked])
    }

    @Test func `MT-06: null on the way of a key path is null at its end`() throws {
        let shown = try user().one(#"{"username":"foo","nested":null}"#, "User")
        #expect(shown.body == #"{"username":"foo","nestedName":null}"# && shown.warnings.isEmpty)
    }

    @Test func `MT-07: undeclared and local members are not shown, also if the model shares all`() throws {
        let body = #"{"z":1,"username":"a","count":2,"nested":{"name":"b","x":1},"a":{"b":[]},"nestedName":0}"#
        let fixture = try user()
        #expect(fixture.one(body, "User").body == #"{"username":"a","count":2,"nestedName":"b"}"#)
        let sharing = try MapperFixture(
            ModelDeclaration("User", Property("username"), Property("nestedName", "nested.name")).with {
                ($0.sharesAll, $0.local) = (true, ["z"])
            }
        )
        #expect(sharing.one(body, "User").body == #"{"username":"a","nestedName":"b"}"#)
    }

    @Test func `MT-08: a value that fails its check is left out, with a warning`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "User",
                Property("name").with { $0.checks = [.length(minimum: 1, maximum: 3)] },
                Property("age")
            )
        )
        let shown = fixture.one(#"{"name":"abcd","age":1}"#, "User")
        #expect(shown.body == #"{"age":1}"#)
        #expect(shown.kinds == [.quarantined] && shown.pointers == ["/name"])
    }

    @Test func `MT-09: an absent required property is reported, a null one is not`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("User", Property("name").with { $0.isRequired = true }, Property("age"))
        )
        let shown = fixture.list(#"[{"age":1},{"name":null}]"#, "User")
        #expect(shown.body == #"[{"age":1},{"name":null}]"#)
        #expect(shown.kinds == [.requiredMissing] && shown.pointers == ["/0"])
    }

    @Test
    func `MT-10, MT-30, RK-01: a default is shown where there is no value, marked synthetic, and not written back`()
        throws
    {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "User",
                identity: ["id"],
                Property("name").with { ($0.defaultValue, $0.checks) = (json(#""foobar""#), [.notNull]) },
                Property("count")
            )
        )
        let shown = fixture.list(#"[{"id":1},{"id":2,"name":null},{"id":3,"name":"x"}]"#, "User")
        #expect(shown.body == #"[{"id":1,"name":"foobar"},{"id":2,"name":"foobar"},{"id":3,"name":"x"}]"#)
        #expect(shown.synthetic == ["/0/name", "/1/name"])
        #expect(shown.kinds == [.unexpectedNull])
        let rule = BodyRule(model: "User", arity: .many)
        #expect(try fixture.unmap(shown.body, rule) == #"[{"id":1},{"id":2},{"id":3,"name":"x"}]"#)
        // Whoever says what was synthetic gets back what only looks like it.
        let known = try fixture.mapper.unmap(json(#"[{"id":1,"name":"foobar"}]"#), as: rule, synthetic: [])
        #expect(text(known.body) == #"[{"id":1,"name":"foobar"}]"#)
    }

    @Test func `MT-11: a derived model has its base's conversions beside its own`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Page", Property("site", "url", as: .named("url"))),
            ModelDeclaration("Article", Property("otherSite", "other_url", as: .named("url"))).with { $0.base = "Page" }
        )
        let body = #"{"url":"https://a.example/1","other_url":"https://b.example/2"}"#
        let shown = fixture.one(body, "Article")
        #expect(shown.body == #"{"site":"https://a.example/1","otherSite":"https://b.example/2"}"#)
        #expect(shown.warnings.isEmpty)
        #expect(try fixture.unmap(shown.body, "Article") == body)
        let wrong = fixture.one(#"{"url":"a b","other_url":666}"#, "Article")
        #expect(wrong.body == #"{"site":"a b","otherSite":666}"#)
        #expect(wrong.kinds == [.conversionFailed, .conversionFailed] && wrong.pointers == ["/url", "/other_url"])
    }

    @Test func `MT-12: a value that its conversion cannot read stays, and the object survives`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("User", Property("site", "url", as: .named("url")), Property("name"))
        )
        let shown = fixture.one(#"{"url":666,"name":"a"}"#, "User")
        #expect(shown.body == #"{"site":666,"name":"a"}"#)
        #expect(shown.kinds == [.conversionFailed] && shown.pointers == ["/url"] && shown.warnings[0].model == "User")
    }

    @Test func `MT-16, MT-17, MT-18, MT-19: nothing is coerced where nothing says so`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "User",
                Property("flag", "flag", as: .named("boolean")),
                Property("name", "name", as: .named("string")),
                Property("any")
            )
        )
        let shown = fixture.one(#"{"flag":"Potentially","name":666,"any":[1,{"a":null}]}"#, "User")
        #expect(shown.body == #"{"flag":"Potentially","name":666,"any":[1,{"a":null}]}"#)
        #expect(shown.pointers == ["/flag", "/name"])
        #expect(fixture.one(#"{"flag":1}"#, "User").body == #"{"flag":true}"#)
        #expect(fixture.one(#"{"flag":0}"#, "User").body == #"{"flag":false}"#)
    }

    @Test func `MT-31, MT-32: null stays null, whatever conversion or check is declared`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "User",
                Property("at", "at", as: .date(.unixSeconds)),
                Property("count").with { $0.checks = [.type([.number])] }
            )
        )
        let shown = fixture.one(#"{"at":null,"count":null}"#, "User")
        #expect(shown.body == #"{"at":null,"count":null}"# && shown.warnings.isEmpty)
        #expect(try fixture.unmap(shown.body, "User") == shown.body)
    }

    @Test func `MT-33: an element that its conversion does not list becomes the fallback null, with a warning`() throws
    {
        let words = ConversionDeclaration.values(
            [.init(wire: json("1"), mapped: json(#""one""#))],
            fallback: json("null"),
            reverseFallback: nil
        )
        let fixture = try MapperFixture(ModelDeclaration("User", Property("words", "words", as: .arrayOf(words))))
        let shown = fixture.one(#"{"words":[1,2,1]}"#, "User")
        #expect(shown.body == #"{"words":["one",null,"one"]}"#)
        #expect(shown.kinds == [.conversionFailed] && shown.pointers == ["/words/1"])
    }

    @Test func `MT-34: an element that its conversion cannot read keeps its place, and the warning points to it`()
        throws
    {
        let fixture = try MapperFixture(
            ModelDeclaration("User", Property("days", "days", as: .arrayOf(.date(.unixSeconds))))
        )
        let shown = fixture.one(#"{"days":[0,null,"x",1]}"#, "User")
        #expect(shown.body == #"{"days":["1970-01-01T00:00:00Z",null,"x","1970-01-01T00:00:01Z"]}"#)
        #expect(shown.kinds == [.conversionFailed] && shown.pointers == ["/days/2"])
    }

    @Test func `MT-39: only the wanted members are mapped and written back`() throws {
        let mapped = #"{"username":"foo","count":1,"nestedName":"bar"}"#
        #expect(try user().unmap(mapped, "User", members: ["username"]) == #"{"username":"foo"}"#)
        #expect(try user().one(#"{"username":"foo","count":1}"#, "User", members: ["count"]).body == #"{"count":1}"#)
    }

    @Test func `MT-40: a value that cannot be converted back is passed through, with a warning that carries it`()
        throws
    {
        let fixture = try MapperFixture(ModelDeclaration("User", Property("at", "created", as: .date(.unixSeconds))))
        let back = try fixture.mapper.unmap(
            json(#"[{"at":"1970-01-01T00:00:00Z"},{"at":"soon"}]"#),
            as: BodyRule(model: "User", arity: .many)
        )
        #expect(text(back.body) == #"[{"created":0},{"created":"soon"}]"#)
        #expect(back.warnings.map(\.kind) == [.conversionFailed])
        let warning = try #require(back.warnings.first)
        #expect(warning.pointer == "/1/at" && warning.property == "at" && warning.model == "User")
        #expect(warning.value == json(#""soon""#))
    }

    @Test func `MT-41: a one-way conversion drops, writes or refuses its value on the way back, as declared`() throws {
        func fixture(_ back: ConversionDeclaration.Back) throws -> MapperFixture {
            try MapperFixture(
                ModelDeclaration(
                    "User",
                    Property("at", "at", as: .oneWay(.date(.unixSeconds), back: back)),
                    Property("n")
                )
            )
        }
        let mapped = #"{"at":"1970-01-01T00:00:00Z","n":1}"#
        #expect(try fixture(.drop).unmap(mapped, "User") == #"{"n":1}"#)
        #expect(try fixture(.raw).unmap(mapped, "User") == mapped)
        #expect(throws: UnmapError.self) { try fixture(.fail).unmap(mapped, "User") }
    }

    @Test func `MT-42: two properties that write to one place are a mistake, unless one is read only`() throws {
        let renamed = Property("b", "y").with { $0.output = .path("x") }
        #expect(throws: MappingError.sameOutput("x", properties: ["a", "b"], model: "A")) {
            try MapperFixture(ModelDeclaration("A", Property("a", "x"), renamed))
        }
        let fixture = try MapperFixture(
            ModelDeclaration("A", Property("a", "x"), Property("b", "x").with { $0.output = .none })
        )
        #expect(fixture.one(#"{"x":1}"#, "A").body == #"{"a":1,"b":1}"#)
        #expect(try fixture.unmap(#"{"a":1,"b":2}"#, "A") == #"{"x":1}"#)
    }

    @Test func `MT-45: a backslash escapes dots and brackets`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "A",
                Property("dotted", #"odd\.key.x"#),
                Property("listed", #"tags\[]"#),
                Property("back", #"a\\b"#)
            )
        )
        let body = #"{"odd.key":{"x":1},"tags[]":[2],"a\\b":3}"#
        let shown = fixture.one(body, "A")
        #expect(shown.body == #"{"dotted":1,"listed":[2],"back":3}"#)
        #expect(try fixture.unmap(shown.body, "A") == body)
    }

    @Test func `MT-59: by default a property is read from the member with its name`() throws {
        let body = #"{"username":1.50,"count":"\u00e9"}"#
        #expect(try user().one(body, "User").body == body)
    }
}
