import Testing

@testable import Mapping

/// Bare identities in the mapped view, of objects that are known and of others.
struct BareIdentityTests {
    private static let ada = BoundObject(model: "User", identity: "7")
    private static let bo = BoundObject(model: "User", identity: "8")
    private let known = [
        ada: json(#"{"id":7,"friend":8,"name":"Ada"}"#), bo: json(#"{"friend":7,"id":8,"name":"Bo"}"#),
    ]

    private func blog() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                "Post",
                identity: ["id"],
                Property("title"),
                Property("author", one: "User"),
                Property("likers", many: "User"),
                Property(name: "roles", from: "roles", relation: .keyed("User")),
                Property("state").with { $0.defaultValue = json(#""open""#) }
            ),
            ModelDeclaration("User", identity: ["id"], Property("name"), Property("friend", one: "User"))
        )
    }

    private func shown(_ body: String, _ known: [BoundObject: [UInt8]]) throws -> MappedBody {
        try blog().mapper.map(json(body), as: Self.post, known: known)
    }

    private static let post = BodyRule(model: "Post", arity: .one)

    @Test func `a known object is shown in the place of its bare identity, alone, in a list and by name`() throws {
        let body = #"{"id":1,"author":7,"likers":[8,9,{"id":7,"name":"x"}],"roles":{"a":7},"state":"closed"}"#
        let shown = try shown(body, known)
        let ada = #"{"id":7,"name":"Ada","friend":8}"#
        #expect(
            text(shown.body)
                == #"{"id":1,"author":\#(ada),"likers":[{"id":8,"name":"Bo","friend":7},9,{"id":7,"name":"x"}],"#
                + #""roles":{"a":\#(ada)},"state":"closed"}"#
        )
        #expect(shown.synthetic == ["/author", "/likers/0", "/roles/a"])
        #expect(shown.named.count == 3)
        #expect(shown.warnings.isEmpty)
        // What is written back is what the upstream had, whoever has changed what is shown.
        #expect(
            try blog().unmap(text(shown.body).replacing("Ada", with: "Eve"), Self.post, synthetic: shown.synthetic)
                == body
        )
    }

    @Test(arguments: ["7", #"{"id":7}"#, #""\u0001User:7""#], ["3", #"{"id":3}"#, #""\u0001Team:3""#])
    func `a key path leads on through two identities in the listing of an object`(user: String, team: String) throws {
        let models = try Models([
            ModelDeclaration(
                "Post",
                identity: ["id"],
                Property("by", one: "User"),
                Property(name: "team", from: "by.team.name")
            ),
            ModelDeclaration("User", identity: ["id"], Property("team", one: "Team")),
            ModelDeclaration("Team", identity: ["id"], Property("name")),
        ])
        let shown = DocumentMapper(models: models).mapObject(json("{\"id\":1,\"by\":\(user)}"), model: "Post") { name in
            name.model == "User" ? json("{\"id\":7,\"team\":\(team)}") : json(#"{"id":3,"name":"core"}"#)
        }
        #expect(text(shown.body).hasSuffix(#","team":"core"}"#), "\(text(shown.body))")
    }

    @Test func `an embedded object and a changed identity are written back as they are`() throws {
        let shown = try shown(#"{"id":1,"author":7,"likers":[{"id":8,"name":"Bo"}]}"#, known)
        let changed = text(shown.body).replacing(#""author":{"id":7"#, with: #""author":{"id":9"#)
        #expect(
            try blog().unmap(changed, Self.post, synthetic: shown.synthetic)
                == #"{"id":1,"author":9,"likers":[{"id":8,"name":"Bo"}]}"#
        )
    }

    @Test func `a bare identity that the object spells differently stays bare`() throws {
        let body = #"{"id":1,"author":"7","likers":[7.0]}"#
        let shown = try shown(body, known)
        #expect(text(shown.body) == #"{"id":1,"author":"7","likers":[7.0],"state":"open"}"#)
        #expect(shown.named == [Self.ada])
    }

    @Test func `completing members do not change a child's bare identity`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Post",
                identity: ["id"],
                Property(name: "author", from: "author_id", relation: .one("User")),
                Property("author.name", "author_name")
            ),
            ModelDeclaration("User", identity: ["id"], Property("name"))
        )
        let shown = fixture.mapper.map(json(#"{"id":1,"author_id":7,"author_name":"A"}"#), as: Self.post, known: known)
        #expect(text(shown.body) == #"{"id":1,"author":7}"#)
    }

    @Test func `a bare value names no object whose identity has several parts or is from outside the object`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Post", identity: ["id"], Property("author", one: "User"), Property("file", one: "File")),
            ModelDeclaration("User", identity: ["realm", "id"], Property("name")),
            ModelDeclaration("File", identity: ["@url.name"], Property("size"))
        )
        let shown = fixture.mapper.map(json(#"{"id":1,"author":7,"file":"a"}"#), as: Self.post)
        #expect(text(shown.body) == #"{"id":1,"author":7,"file":"a"}"#)
        #expect(shown.named.isEmpty)
    }

    @Test func `an object that is identified by its name is shown in the place of that name`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Post", identity: ["id"], Property("file", one: "File"), Property("files", many: "File")),
            ModelDeclaration("File", identity: ["@key"], Property("size"), Property("name", "@key"))
        )
        let known = [BoundObject(model: "File", identity: "a"): json(#"{"size":3}"#)]
        let body = #"{"id":1,"file":"a","files":["b","a"]}"#
        let shown = fixture.mapper.map(json(body), as: Self.post, known: known)
        let file = #"{"size":3,"name":"a"}"#
        #expect(text(shown.body) == #"{"id":1,"file":\#(file),"files":["b",\#(file)]}"#)
        #expect(shown.synthetic == ["/file", "/files/1"] && shown.named.count == 2)
        #expect(try fixture.unmap(text(shown.body), Self.post, synthetic: shown.synthetic) == body)
    }

    @Test func `an object that shows nothing but its identity is filled in`() throws {
        let body = #"{"id":1,"author":{"id":7},"likers":[{"id":8},{"id":9},{"id":"7"}],"roles":{"a":{"id":7}}}"#
        let shown = try shown(body, known)
        let ada = #"{"id":7,"name":"Ada","friend":8}"#
        #expect(
            text(shown.body)
                == #"{"id":1,"author":\#(ada),"likers":[{"id":8,"name":"Bo","friend":7},{"id":9},{"id":"7"}],"#
                + #""roles":{"a":\#(ada)},"state":"open"}"#
        )
        #expect(
            shown.synthetic == [
                "/author/name", "/author/friend", "/likers/0/name", "/likers/0/friend", "/roles/a/name",
                "/roles/a/friend", "/state",
            ]
        )
        #expect(try blog().unmap(text(shown.body), Self.post, synthetic: shown.synthetic) == body)
    }

    @Test func `a key path leads through a bare identity to the known values of its object`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Post",
                identity: ["id"],
                Property("author", one: "User"),
                Property("authorName", "author.name").with { $0.output = .none },
                Property("span", "author.none").with { $0.parts = [.init(name: "of", from: "author.name")] }
            ),
            ModelDeclaration("User", identity: ["id"], Property("name"), Property("friend", one: "User"))
        )
        let body = #"{"id":1,"author":7}"#
        let shown = fixture.mapper.map(json(body), as: Self.post, known: known)
        #expect(
            text(shown.body)
                == #"{"id":1,"author":{"id":7,"name":"Ada","friend":8},"authorName":"Ada","span":{"of":"Ada"}}"#
        )
        #expect(shown.synthetic == ["/author", "/authorName", "/span"] && shown.named == [Self.ada])
        #expect(try fixture.unmap(text(shown.body), Self.post, synthetic: shown.synthetic) == body)
        #expect(fixture.mapper.map(json(body), as: Self.post).warnings.isEmpty)
        let object = fixture.mapper.mapObject(json(body), model: "Post") { name in known[BoundObject(name)] }
        #expect(text(object.body) == #"{"id":1,"author":7,"authorName":"Ada","span":{"of":"Ada"}}"#)
    }

    @Test func `one of the keys of a model may stand in place of an object`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Post",
                identity: ["id"],
                Property("author", one: "User").with { $0.relatedKey = "login" },
                Property("likers", many: "User").with { $0.relatedKey = "login" }
            ),
            ModelDeclaration("User", identity: ["id"], Property("login"), Property("name")).with { $0.keys = ["login"] }
        )
        let known = [BoundObject(model: "User", keys: ["ada"]): json(#"{"id":7,"login":"ada","name":"Ada"}"#)]
        let body = #"{"id":1,"author":"ada","likers":["bo","ada",null]}"#
        let shown = fixture.mapper.map(json(body), as: Self.post, known: known)
        let ada = #"{"id":7,"login":"ada","name":"Ada"}"#
        #expect(text(shown.body) == #"{"id":1,"author":\#(ada),"likers":["bo",\#(ada),null]}"#)
        #expect(shown.synthetic == ["/author", "/likers/1"] && shown.named.count == 2 && shown.warnings.isEmpty)
        #expect(try fixture.unmap(text(shown.body), Self.post, synthetic: shown.synthetic) == body)
    }

    @Test func `members around a reference may be the parts of its object's identity`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Issue",
                identity: ["id"],
                Property(
                    name: "repo",
                    from: "",
                    relation: .one("Repo"),
                    parts: [.init(name: "name", from: "repo_name"), .init(name: "owner", from: "repo.owner")]
                )
            ),
            ModelDeclaration(
                "Repo",
                identity: ["owner", "name"],
                Property("stars").with { $0.isRequired = true },
                Property("title", "name")
            )
        )
        let known = [
            BoundObject(model: "Repo", identity: "ada:engine"): json(#"{"name":"engine","owner":"ada","stars":3}"#)
        ]
        let issue = BodyRule(model: "Issue", arity: .one)
        let body = #"{"id":1,"repo_name":"engine","repo":{"owner":"ada"}}"#
        let shown = fixture.mapper.map(json(body), as: issue, known: known)
        #expect(text(shown.body) == #"{"id":1,"repo":{"owner":"ada","stars":3,"title":"engine"}}"#)
        #expect(shown.synthetic == ["/repo/stars"] && shown.warnings.isEmpty)
        #expect(try fixture.unmap(text(shown.body), issue, synthetic: shown.synthetic) == body)
        let unknown = fixture.mapper.map(json(body), as: issue)
        #expect(text(unknown.body) == #"{"id":1,"repo":{"owner":"ada","title":"engine"}}"# && unknown.warnings.isEmpty)
        #expect(unknown.named == Set(known.keys))
        for body in [#"{"id":1,"repo_name":"engine"}"#, #"{"id":1,"repo_name":null,"repo":{"owner":"ada"}}"#] {
            #expect(fixture.one(body, "Issue").body == #"{"id":1}"#)
        }
        let none = #"{"id":1,"repo_name":null,"repo":{"owner":null}}"#
        #expect(fixture.one(none, "Issue").body == #"{"id":1,"repo":null}"#)
        #expect(try fixture.unmap(#"{"id":1,"repo":null}"#, issue) == none)
    }

    @Test func `a number and a string name different objects if the model distinguishes them`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Post", identity: ["id"], Property("author", one: "User")),
            ModelDeclaration("User", identity: ["id"], Property("name")).with { $0.distinguishesTypes = true }
        )
        let shown = fixture.mapper.map(json(#"{"id":1,"author":"7"}"#), as: Self.post, known: known)
        #expect(text(shown.body) == #"{"id":1,"author":"7"}"#)
        #expect(shown.named == [BoundObject(model: "User", identity: #""7""#)])
    }

    @Test func `an object that is named very often is not shown without bound`() throws {
        let large = [Self.ada: json(#"{"id":7,"name":"\#(String(repeating: "x", count: 100_000))"}"#)]
        let body = #"{"id":1,"likers":["# + Array(repeating: "7", count: 5_000).joined(separator: ",") + "]}"
        let shown = try shown(body, large)
        #expect((MapRun.maximumExpanded..<MapRun.maximumExpanded + 200_000).contains(shown.body.count))
        #expect(text(shown.body).hasSuffix(#",7],"state":"open"}"#))
    }

    @Test func `only a bounded number of named objects is looked up`() throws {
        let body = #"{"id":1,"likers":["# + (1...5_000).map(String.init).joined(separator: ",") + "]}"
        #expect(try shown(body, [:]).named.count == MapRun.maximumNamed)
    }
}
