import Testing

@testable import Mapping

/// What Flaming June's cases say of the mapped view.
@Suite struct FlamingJuneMappedViewTests {
    private func blog() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                "Post",
                identity: ["id"],
                Property("title"),
                Property("user", one: "User"),
                Property("tags", many: "Tag"),
                Property("likers", many: "User")
            ),
            ModelDeclaration("User", identity: ["id"], Property("name"), Property("friend", one: "User")),
            ModelDeclaration("Tag", Property("name"))
        )
    }

    @Test
    func `FJ-01, FJ-02, FJ-03: a list is shown in order, with or without the envelope, and the body stays what it was`()
        throws
    {
        let blog = try blog()
        let posts = (1...20).map { #"{"id":\#($0),"title":"t\#($0)"}"# }.joined(separator: ",")
        #expect(blog.list(#"{"data":[\#(posts)],"meta":{}}"#, "Post", root: "data").body == "[\(posts)]")
        let bare = blog.list(#"[{"id":1,"title":"a","x":0},{"title":"b","id":2}]"#, "Post")
        #expect(bare.body == #"[{"id":1,"title":"a"},{"id":2,"title":"b"}]"#)
        #expect(bare.isMapped && bare.warnings.isEmpty)
        #expect(
            blog.list(#"{"data": [{"id":1,"title":"a"}] , "page":1}"#, "Post", root: "data").body
                == #"[{"id":1,"title":"a"}]"#
        )
    }

    @Test func `FJ-05: without its envelope a body stays raw, with a warning`() throws {
        let shown = try blog().list(#"{"id":1,"title":"a"}"#, "Post", root: "data")
        #expect(!shown.isMapped && shown.body == #"{"id":1,"title":"a"}"#)
        #expect(shown.kinds == [.envelopeMissing])
    }

    @Test func `FJ-06: one object where a list is declared is its only element`() throws {
        let shown = try blog().list(#"{"data":{"id":1,"title":"a"}}"#, "Post", root: "data")
        #expect(shown.body == #"[{"id":1,"title":"a"}]"#)
        #expect(shown.kinds == [.objectForList] && shown.pointers == ["/data"])
    }

    @Test(arguments: ["1", #""text""#, "true"])
    func `FJ-07: a body that is a scalar stays as it is`(body: String) throws {
        let shown = try blog().one(body, "Post")
        #expect(!shown.isMapped && shown.body == body && shown.kinds == [.notAnObject])
    }

    @Test func `FJ-07: a body that is null stays as it is`() throws {
        let shown = try blog().one("null", "Post")
        #expect(!shown.isMapped && shown.body == "null" && shown.warnings.isEmpty)
    }

    @Test func `FJ-09, FJ-17, FJ-30: null is shown where null was seen, for a value, a link and a list`() throws {
        let shown = try blog().one(#"{"id":1,"title":null,"user":null,"tags":null}"#, "Post")
        #expect(shown.body == #"{"id":1,"title":null,"user":null,"tags":null}"#)
        #expect(shown.warnings.isEmpty)
    }

    @Test func `FJ-10: null in a property that is never null is shown, with a warning`() throws {
        let counter = try MapperFixture(
            ModelDeclaration("Counter", Property("count").with { $0.checks = [.type([.number]), .notNull] })
        )
        let shown = counter.one(#"{"count":null}"#, "Counter")
        #expect(shown.body == #"{"count":null}"#)
        #expect(shown.kinds == [.unexpectedNull] && shown.pointers == ["/count"])
    }

    @Test func `FJ-11, FJ-12: a date is shown as an instant; text that is no date stays, with a warning`() throws {
        let dated = try MapperFixture(ModelDeclaration("Dated", Property("at", "created_at", as: .named("date"))))
        let shown = dated.one(#"{"created_at":"2012-11-13T13:31:36Z"}"#, "Dated")
        #expect(shown.body == #"{"at":"2012-11-13T13:31:36Z"}"# && shown.warnings.isEmpty)
        for date in ["2012-11-13T13:31:36.25Z", "2012-11-13T13:31:36+02:00"] {
            let shown = dated.one(#"{"created_at":"\#(date)"}"#, "Dated")
            #expect(shown.body == #"{"at":"\#(date)"}"# && shown.warnings.isEmpty)
        }
        let failed = dated.one(#"{"created_at":"yesterday"}"#, "Dated")
        #expect(failed.body == #"{"at":"yesterday"}"#)
        #expect(failed.kinds == [.conversionFailed] && failed.pointers == ["/created_at"])
    }

    @Test func `FJ-13, FJ-20: related objects are shown within their owner, with identity or without`() throws {
        let shown = try blog().one(
            #"{"id":1,"user":{"id":7,"name":"Edna Piranha","x":1},"tags":[{"name":"a"},{"name":"b"}]}"#,
            "Post"
        )
        #expect(shown.body == #"{"id":1,"user":{"id":7,"name":"Edna Piranha"},"tags":[{"name":"a"},{"name":"b"}]}"#)
        #expect(shown.warnings.isEmpty)
    }

    @Test func `FJ-15, FJ-16, FJ-28, FJ-29: bare identities of unknown objects stay bare, alone and among objects`()
        throws
    {
        let shown = try blog().one(#"{"id":1,"user":42,"likers":[1,"x",{"id":2,"name":"b"}]}"#, "Post")
        #expect(shown.body == #"{"id":1,"user":42,"likers":[1,"x",{"id":2,"name":"b"}]}"#)
        #expect(shown.warnings.isEmpty)
    }

    @Test func `FJ-21: the identity is whatever the model says, and always shown`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Plain", identity: ["_id"], Property("name")),
            ModelDeclaration("Named", identity: ["uuid"], Property("key", "uuid"), Property("name"))
        )
        #expect(fixture.one(#"{"_id":1,"name":"a"}"#, "Plain").body == #"{"_id":1,"name":"a"}"#)
        #expect(fixture.one(#"{"uuid":1,"name":"a"}"#, "Named", members: ["name"]).body == #"{"key":1,"name":"a"}"#)
    }

    @Test func `FJ-27: a list of embedded objects keeps its order, and the way back gives the same array`() throws {
        let body = #"{"id":1,"tags":[{"name":"c"},{"name":"a"},{"name":"b"}]}"#
        let blog = try blog()
        #expect(blog.one(body, "Post").body == body)
        #expect(try blog.unmap(body, "Post") == body)
    }

    @Test func `FJ-31: a converted value is written back as it came`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Thing",
                Property("site", "url", as: .named("url")),
                Property("isOpen", "open", as: .named("boolean")),
                Property(
                    "kind",
                    "k",
                    as: .values([.init(wire: json("1"), mapped: json(#""one""#))], fallback: nil, reverseFallback: nil)
                )
            )
        )
        let body = #"{"url":"https://example.org/a","open":true,"k":1}"#
        let shown = fixture.one(body, "Thing")
        #expect(shown.body == #"{"site":"https://example.org/a","isOpen":true,"kind":"one"}"#)
        #expect(try fixture.unmap(shown.body, "Thing") == body)
    }

    @Test func `FJ-32: writing back keeps null and the identity, and adds no absent member`() throws {
        #expect(try blog().unmap(#"{"id":1,"title":null}"#, "Post") == #"{"id":1,"title":null}"#)
    }

    @Test func `FJ-33: an object within itself is cut to its identity`() throws {
        let known = [BoundObject(model: "User", identity: "1"): json(#"{"id":1,"name":"a","friend":1}"#)]
        let shown = try blog().mapper.map(
            json(#"{"id":9,"user":1}"#),
            as: BodyRule(model: "Post", arity: .one),
            known: known
        )
        #expect(text(shown.body) == #"{"id":9,"user":{"id":1,"name":"a","friend":1}}"#)
        let bare = try blog().mapper.mapObject(json(#"{"id":9,"user":"\u0001User:1"}"#), model: "Post")
        #expect(text(bare.body) == #"{"id":9,"user":1}"#)
    }
}
