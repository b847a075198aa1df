import Testing

@testable import Mapping

@Suite struct OvercoatWireTests {
    private let models: Models

    init() throws {
        models = try Models([
            ModelDeclaration(name: "Item", identity: ["id"], properties: [Wire.property("name")]),
            ModelDeclaration(name: "User", identity: ["id"], properties: [Wire.property("name")]),
            ModelDeclaration(name: "Page", properties: [Wire.property("status")]),
        ])
    }

    @Test(arguments: [#""text""#, "7", "false"]) func `OV-36: a scalar with a rule is an opaque value`(body: String) {
        #expect(Wire.opaque(body, BodyRule(model: "Item", arity: .one), models) == .notAnObject)
    }

    @Test func `OV-37 OV-40: the list under the key path is read, and the rest of the envelope stays around it`()
        throws
    {
        let rule = BodyRule(model: "Item", arity: .many, root: "data", envelope: "Page")
        let parts = try Wire.parts(#"{"status":"ok","data":[{"id":1},{"id":2}]}"#, rule, models)
        #expect(text(parts.skeleton) == #"{"status":"ok","data":["\u0001Item:1","\u0001Item:2"]}"#)
    }

    @Test func `OV-38: each rule unwraps its own envelope`() throws {
        for root in ["data", "model"] {
            let rule = BodyRule(model: "Item", arity: .one, root: root)
            #expect(try Wire.names(#"{"\#(root)":{"id":1}}"#, rule, models) == ["Item:1"])
        }
    }

    @Test(arguments: [#"{"data":7}"#, #"{"data":[{"items":[]}]}"#, #"{"data":null}"#, "{}"])
    func `OV-39: a key path that is missing or crosses something else leaves the body raw, with a warning`(body: String)
    {
        let rule = BodyRule(model: "Item", arity: .many, root: "data.items")
        #expect(Wire.opaque(body, rule, models) == .envelopeMissing)
    }

    @Test func `OV-47: the items of a page are objects`() throws {
        let rule = BodyRule(model: "Item", arity: .many, root: "objects")
        let body = #"{"offset":0,"limit":100,"objects":[{"id":1,"name":"a"},{"id":2,"name":"b"}]}"#
        #expect(try Wire.names(body, rule, models) == ["Item:1", "Item:2"])
    }

    @Test func `several rules on one response each find their own objects`() throws {
        let rule = BodyRule(
            model: "Item",
            arity: .many,
            root: "page.items",
            also: [
                BodyRule(model: "User", arity: .keyed, root: "page.users"),
                BodyRule(model: "User", arity: .one, root: "me"),
                // Within the first: its bytes have an owner already.
                BodyRule(model: "User", arity: .one, root: "page.items[].user"),
            ]
        )
        let body = #"{"me":{"id":9},"page":{"users":{"a":{"id":7}},"items":[{"id":1,"user":{"id":3}}]}}"#
        #expect(try Wire.names(body, rule, models) == ["User:9", "User:7", "Item:1"])
    }

    @Test func `a key path into arrays finds the object in each element`() throws {
        let rule = BodyRule(model: "Item", arity: .one, root: "data.children[].data")
        let body =
            #"{"kind":"Listing","data":{"children":[{"kind":"t3","data":{"id":"a"}},{"data":{"id":"b"}},{"kind":1}]}}"#
        let parts = try Wire.parts(body, rule, models)
        #expect(parts.occurrences.map(\.name.identity) == ["a", "b"])
        #expect(parts.warnings.map(\.pointer) == ["/data/children/2"])
    }

    @Test func `objects keyed by name are read with their keys`() throws {
        let models = try Models([ModelDeclaration(name: "File", identity: ["@url.gist", "@key"])])
        let context = MappingContext(url: "/gists/5", captures: ["gist": "5"])
        let parts = try Wire.parts(
            #"{"a.md":{"size":1},"b:c":{"size":2},"x":7}"#,
            BodyRule(model: "File", arity: .keyed),
            models,
            context
        )
        #expect(parts.occurrences.map(\.name.identity) == ["5:a.md", #"5:b\:c"#])
    }
}
