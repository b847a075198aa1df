import Mapping
import Testing

/// What Overcoat's cases say of the mapped view.
@Suite struct OvercoatMappedViewTests {
    private func fixture() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration("Item", identity: ["id"], Property("name", "n")),
            ModelDeclaration("User", identity: ["id"]),
            ModelDeclaration(
                "Page",
                Property("total", "total_count", as: .named("integer")),
                Property("state", "status")
            )
        )
    }

    @Test func `OV-35: a body is read as an object or as a list, as its rule says`() throws {
        let fixture = try fixture()
        #expect(fixture.one(#"{"id":1,"n":"a"}"#, "Item").body == #"{"id":1,"name":"a"}"#)
        #expect(
            fixture.list(#"[{"id":2,"n":"b"},{"id":1,"n":"a"}]"#, "Item").body
                == #"[{"id":2,"name":"b"},{"id":1,"name":"a"}]"#
        )
    }

    @Test func `OV-36: a scalar stays as it is`() throws {
        #expect(try fixture().list(#""ok""#, "Item").body == #""ok""#)
    }

    @Test func `OV-37, OV-40, OV-47: the envelope's own members are shown beside its content`() throws {
        let rule = BodyRule(model: "Item", arity: .many, root: "items", envelope: "Page")
        let body = #"{"total_count":2,"status":"ok","items":[{"id":1,"n":"a"}]}"#
        let shown = try fixture().map(body, rule)
        #expect(shown.body == #"{"total":2,"state":"ok","items":[{"id":1,"name":"a"}]}"#)
        #expect(try fixture().unmap(shown.body, rule) == #"{"items":[{"id":1,"n":"a"}],"total_count":2,"status":"ok"}"#)
    }

    @Test func `OV-38: each rule unwraps its own envelope, and wraps it again`() throws {
        let fixture = try fixture()
        for root in ["data", "model", "a.b"] {
            let rule = BodyRule(model: "Item", arity: .one, root: root)
            let body = root == "a.b" ? #"{"a":{"b":{"id":1,"n":"x"}}}"# : #"{"\#(root)":{"id":1,"n":"x"}}"#
            #expect(fixture.map(body, rule).body == #"{"id":1,"name":"x"}"#)
            #expect(try fixture.unmap(#"{"id":1,"name":"x"}"#, rule) == body)
        }
    }

    @Test(arguments: [#"{"data":5}"#, #"{"data":[{"id":1}]}"#, #"{"data":{"rows":1}}"#, #"[]"#])
    func `OV-39: an envelope's path that leads nowhere or over something else leaves the body raw, with a warning`(
        body: String
    ) throws {
        let shown = try fixture().list(body, "Item", root: "data.items")
        #expect(!shown.isMapped && shown.body == body)
        #expect(shown.kinds == [.envelopeMissing])
    }

    @Test func `OV-41: a member of the envelope that does not fit is reported`() throws {
        let rule = BodyRule(model: "Item", arity: .many, root: "items", envelope: "Page")
        let shown = try fixture().map(#"{"total_count":"many","items":[]}"#, rule)
        #expect(shown.body == #"{"total":"many","items":[]}"#)
        #expect(shown.kinds == [.conversionFailed] && shown.pointers == ["/total_count"])
    }

    @Test func `several objects in one body are shown side by side`() throws {
        let rule = BodyRule(
            model: "Item",
            arity: .many,
            root: "items",
            also: [BodyRule(model: "User", arity: .keyed, root: "included.users")]
        )
        let body = #"{"items":[{"id":1}],"included":{"users":{"u1":{"id":7,"x":1}}}}"#
        let shown = try fixture().map(body, rule)
        #expect(shown.body == #"{"items":[{"id":1}],"users":{"u1":{"id":7}}}"#)
        #expect(try fixture().unmap(shown.body, rule) == #"{"items":[{"id":1}],"included":{"users":{"u1":{"id":7}}}}"#)
    }

    @Test func `contents whose key paths end in the same name are shown under their whole key paths`() throws {
        let fixture = try fixture()
        func rule(_ root: String, envelope: String? = nil, _ others: String...) -> BodyRule {
            let also = others.map { BodyRule(model: "User", arity: .many, root: $0) }
            return BodyRule(model: "Item", arity: .many, root: root, envelope: envelope, also: also)
        }
        let body = #"{"a":{"items":[{"id":1,"n":"x"}]},"b":{"items":[{"id":7}]},"users":[{"id":8}],"status":"ok"}"#
        let two = fixture.map(body, rule("a.items", "b.items", "users"))
        #expect(two.body == #"{"a.items":[{"id":1,"name":"x"}],"b.items":[{"id":7}],"users":[{"id":8}]}"#)
        let written = #"{"a":{"items":[{"id":1,"n":"x"}]},"b":{"items":[{"id":7}]},"users":[{"id":8}]}"#
        #expect(try fixture.unmap(two.body, rule("a.items", "b.items", "users")) == written)
        let enveloped = fixture.map(body, rule("a.items", envelope: "Page", "b.items"))
        #expect(enveloped.body == #"{"state":"ok","a.items":[{"id":1,"name":"x"}],"b.items":[{"id":7}]}"#)
        // A whole key path is no other member's name.
        let dotted = #"{"a":{"items":[{"id":1}]},"b":{"items":[{"id":7}]},"a.items":[{"id":9}]}"#
        #expect(
            fixture.map(dotted, rule("a.items", "b.items", #"a\.items"#)).body
                == #"{"a.items":[{"id":1}],"b.items":[{"id":7}],"a\\.items":[{"id":9}]}"#
        )
        // Of two at one place the first counts, as it does for the objects.
        #expect(
            fixture.map(dotted, rule("a.items", "a.items", "b.items")).body
                == #"{"a.items":[{"id":1}],"b.items":[{"id":7}]}"#
        )
    }

    @Test(arguments: ["labels[]", "labels"], [Arity.one, .many])
    func `brackets at the end of a root name the elements of a list, and so the list`(
        root: String,
        arity: Arity
    ) throws {
        let rule = BodyRule(model: "Item", arity: arity, root: root)
        guard arity == .many || root.hasSuffix("[]") else { return #expect(!rule.isList) }
        #expect(rule == BodyRule(model: "Item", arity: .many, root: "labels"))
        let fixture = try fixture()
        let body = #"{"labels":[{"id":1,"n":"a"},{"id":2,"n":"b"}]}"#
        let shown = fixture.map(body, rule)
        #expect(shown.body == #"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#)
        #expect(shown.warnings.isEmpty)
        #expect(try fixture.unmap(shown.body, rule) == body)
    }

    @Test func `a root that crosses a list's elements has no mapped view, and a warning says so`() throws {
        for rule in [
            BodyRule(model: "Item", arity: .one, root: "a[].b"), BodyRule(model: "Item", arity: .keyed, root: "a[]"),
        ] {
            let shown = try fixture().map(#"{"a":[{"b":{"id":1}}]}"#, rule)
            #expect(!shown.isMapped && shown.kinds == [.envelopeMissing])
            #expect(shown.warnings.first?.message.contains("over the elements of a list") == true)
        }
        // The brackets of a name are none.
        let named = BodyRule(model: "Item", arity: .one, root: #"a\[]"#)
        #expect(try fixture().map(#"{"a[]":{"id":1}}"#, named).body == #"{"id":1}"#)
    }

    @Test func `OV-48: a body that is not JSON stays as it is`() throws {
        let shown = try fixture().one("<html>", "Item")
        #expect(!shown.isMapped && shown.body == "<html>" && shown.kinds == [.notJSON])
        #expect(try fixture().one(" ", "Item").warnings.isEmpty)
    }
}
