import Testing

@testable import Mapping

/// Lists of which the mapped view shows each element once (`unique`).
struct UniqueListTests {
    private func fixture() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                "A",
                Property("tags").with { $0.isUnique = true },
                Property("names", "labels[].name").with { $0.isUnique = true },
                Property("days", "days", as: .arrayOf(.date(.unixSeconds))).with { $0.isUnique = true },
                Property("users", many: "User").with { $0.isUnique = true }
            ),
            ModelDeclaration(
                "User",
                identity: ["id"],
                Property("name"),
                Property("country").with { $0.defaultValue = json(#""?""#) }
            )
        )
    }

    @Test(arguments: [
        (#"[1,"a",1.0,"a","\u0061",[],{},[]]"#, #"[1,"a",[],{}]"#),
        (#"[{"a":1,"b":2},{"b":2,"a":1.0},null,null]"#, #"[{"a":1,"b":2},null]"#),
        ("[]", "[]"), ("[1,2]", "[1,2]"), ("null", "null"), (#""x""#, #""x""#), (#"{"a":1}"#, #"{"a":1}"#),
    ])
    func `of elements that are equal as JSON the first stays`(sent: String, shown: String) throws {
        let fixture = try fixture()
        #expect(fixture.one(#"{"tags":\#(sent)}"#, "A").body == #"{"tags":\#(shown)}"#)
        #expect(try fixture.unmap(#"{"tags":\#(shown)}"#, "A") == #"{"tags":\#(shown)}"#)
    }

    @Test func `unique elements are compared as they are shown, and pointers count the shown ones`() throws {
        let body =
            #"{"labels":[{"name":"a"},{"name":"a"}],"days":[0,0.0,"x","x",1],"#
            + #""users":[7,{"id":7,"name":"Ada"},7,{"name":"Ada","id":7},{"id":8,"x":1},{"id":8}]}"#
        let shown = try fixture().one(body, "A")
        #expect(
            shown.body
                == #"{"names":["a"],"days":["1970-01-01T00:00:00Z","x","1970-01-01T00:00:01Z"],"#
                + #""users":[7,{"id":7,"name":"Ada","country":"?"},{"id":8,"country":"?"}]}"#
        )
        #expect(shown.synthetic == ["/users/1/country", "/users/2/country"])
        #expect(shown.unconverted == ["/days/1"])
    }

    @Test func `only a property that is a list can be unique`() throws {
        #expect(throws: MappingError.self) {
            try MapperFixture(ModelDeclaration("A", Property("a", one: "A").with { $0.isUnique = true }))
        }
        #expect(throws: MappingError.self) {
            try MapperFixture(
                ModelDeclaration(
                    "A",
                    Property("a").with {
                        $0.isUnique = true
                        $0.checks = [.type([.string])]
                    }
                )
            )
        }
    }
}
