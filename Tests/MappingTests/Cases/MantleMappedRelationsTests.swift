@testable import Mapping
import Testing

/// What Mantle's cases say of the mapped view of objects within objects.
@Suite struct MantleMappedRelationsTests {
    private func cones() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                "Cone",
                Property("flavor")
            ).with {
                $0.choices = [
                    ModelChoice(model: "Chocolate", condition: .has("chocolate_bitterness")),
                    ModelChoice(model: "Strawberry", condition: .member("flavor", isOneOf: [json(#""strawberry""#)])),
                ]
            },
            ModelDeclaration(
                "Chocolate",
                Property("bitterness", "chocolate_bitterness", as: .number(grouping: "", decimal: "."))
            ).with { $0.base = "Cone" },
            ModelDeclaration("Strawberry", Property("freshness", "strawberry_freshness")).with { $0.base = "Cone" }
        )
    }

    @Test func `MT-20, MT-58: models may refer to each other by lists`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Group", Property("owner", one: "User"), Property("users", many: "User")),
            ModelDeclaration("User", Property("name"), Property("groups", many: "Group"))
        )
        let body = #"{"owner":{"name":"a","groups":[{"users":[]}]},"users":[{"name":"b"},{"name":"c"}]}"#
        #expect(fixture.one(body, "Group").body == body)
        #expect(try fixture.unmap(body, "Group") == body)
    }

    @Test func `MT-21: an object without any declared member is shown empty, and null as null`() throws {
        let fixture = try MapperFixture(ModelDeclaration("A", Property("b", one: "B")), ModelDeclaration("B"))
        #expect(fixture.one(#"{"b":{}}"#, "A").body == #"{"b":{}}"#)
        #expect(fixture.one(#"{"b":null}"#, "A").body == #"{"b":null}"#)
    }

    @Test func `MT-22: an object's members choose its model; if none fits, it has the base model`() throws {
        let fixture = try cones()
        #expect(
            fixture.one(#"{"flavor":"chocolate","chocolate_bitterness":"100"}"#, "Cone").body
                == #"{"flavor":"chocolate","bitterness":100}"#
        )
        #expect(
            fixture.one(#"{"flavor":"strawberry","strawberry_freshness":20}"#, "Cone").body
                == #"{"flavor":"strawberry","freshness":20}"#
        )
        let none = fixture.one("{}", "Cone")
        #expect(none.isMapped && none.body == "{}" && none.kinds == [.noChoice])
    }

    @Test(arguments: [
        #"{"flavor":"chocolate","chocolate_bitterness":"100"}"#, #"{"flavor":"strawberry","strawberry_freshness":20}"#,
        #"{"flavor":"lemon"}"#,
    ])
    func `MT-23: on the way back the concrete model is found again`(body: String) throws {
        let fixture = try cones()
        #expect(try fixture.unmap(fixture.one(body, "Cone").body, "Cone") == body)
    }

    private func groups() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration("Group", Property("users", many: "User")),
            ModelDeclaration("User", Property("name", "n"))
        )
    }

    @Test func `MT-24, MT-28, RK-07: null keeps its place at every depth, in both directions`() throws {
        let body = #"{"users":[{"n":1},null,{"n":2}]}"#
        let shown = try groups().one(body, "Group")
        #expect(shown.body == #"{"users":[{"name":1},null,{"name":2}]}"# && shown.warnings.isEmpty)
        #expect(try groups().unmap(shown.body, "Group") == body)
        let top = try groups().list(#"[null,{"n":1}]"#, "User")
        #expect(top.body == #"[null,{"name":1}]"# && top.warnings.isEmpty)
        #expect(try groups().list("[null]", "User").body == "[null]")
    }

    @Test func `MT-25: a list element that is no object is left out, with a warning`() throws {
        let shown = try groups().one(#"{"users":[{"n":1},"x",[],{"n":2}]}"#, "Group")
        #expect(shown.body == #"{"users":[{"name":1},{"name":2}]}"#)
        #expect(shown.kinds == [.quarantined, .quarantined] && shown.pointers == ["/users/1", "/users/2"])
    }

    @Test func `MT-26: a list without any object stays raw`() throws {
        let shown = try groups().list(#"["foo","bar"]"#, "User")
        #expect(!shown.isMapped && shown.body == #"["foo","bar"]"#)
        #expect(shown.pointers == ["/0", "/1"])
        #expect(try groups().list("[]", "User").isMapped)
    }

    @Test func `MT-27: only the objects of a list that fit their model are shown`() throws {
        let shown = try groups().list(#"[{"n":1},7]"#, "User")
        #expect(shown.body == #"[{"name":1}]"#)
        #expect(shown.kinds == [.notAnObject] && shown.pointers == ["/1"])
    }

    @Test(arguments: ["", "7", "[]"])
    func `MT-29: a value that is no object stays as it is`(body: String) throws {
        let shown = try groups().one(body, "User")
        #expect(!shown.isMapped && shown.body == body)
    }

    @Test func `NZ-06: in a list of several models each element is shown by its own model`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Owner").with {
                $0.choices = [
                    ModelChoice(model: "User", condition: .member("type", isOneOf: [json(#""User""#)])),
                    ModelChoice(model: "Organization", condition: .all([.not(.has("login")), .has("slug")])),
                ]
            },
            ModelDeclaration("User", identity: ["id"], Property("type"), Property("login")),
            ModelDeclaration("Organization", identity: ["slug"], Property("title"))
        )
        let body = #"[{"type":"User","id":1,"login":"a"},{"slug":"s","title":"S"},{"other":1}]"#
        let shown = fixture.list(body, "Owner")
        #expect(shown.body == #"[{"id":1,"type":"User","login":"a"},{"slug":"s","title":"S"},{"other":1}]"#)
        // RK-34: what no choice wants is kept raw.
        #expect(shown.kinds == [.noChoice] && shown.pointers == ["/2"])
    }
}
