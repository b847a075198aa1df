import Testing

@testable import Mapping

/// The way back, and looks at single objects, where something is missing.
@Suite struct IncompleteTests {
    @Test func `when a list is written back, no element takes the place of one that was left out`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("A", Property("users", many: "User"), Property("names", "users[].name")),
            ModelDeclaration("User", Property("age"))
        )
        let shown = fixture.one(#"{"users":[{"name":"a","age":1},7,{"name":"b","age":2}]}"#, "A")
        #expect(shown.body == #"{"users":[{"age":1},{"age":2}],"names":["a",null,"b"]}"#)
        let back = try fixture.mapper.unmap(json(shown.body), as: BodyRule(model: "A", arity: .one))
        #expect(text(back.body) == #"{"users":[{"age":1},{"age":2}]}"#)
        #expect(back.warnings.map(\.kind) == [.notWritten] && back.warnings.map(\.pointer) == ["/names"])
        let whole = #"{"users":[{"age":1,"name":"a"},{"age":2,"name":"b"}]}"#
        #expect(try fixture.unmap(fixture.one(whole, "A").body, "A") == whole)
    }

    @Test func `a key path follows references to known objects, and ends at an unknown one`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Post",
                identity: ["id"],
                Property("author", one: "User"),
                Property("authorName", "author.name"),
                Property("city", "author.home.city"),
                Property("home", "author.home")
            ),
            ModelDeclaration("User", identity: ["id"], Property("name"), Property("home", one: "Home")),
            ModelDeclaration("Home", identity: ["id"], Property("city"))
        )
        func shown(_ known: [String: String]) -> String {
            let payload = json(#"{"id":1,"author":"\u0001User:7"}"#)
            let mapped = fixture.mapper.mapObject(payload, model: "Post") { name in
                known[name.description].map(json)
            }
            #expect(mapped.warnings.isEmpty)
            return text(mapped.body)
        }
        let user = #"{"id":7,"name":"ada","home":"\u0001Home:x"}"#
        #expect(shown([:]) == #"{"id":1,"author":7}"#)
        #expect(shown(["User:7": user]) == #"{"id":1,"author":7,"authorName":"ada","home":"x"}"#)
        #expect(
            shown(["User:7": user, "Home:x": #"{"id":"x","city":"Ulm"}"#])
                == #"{"id":1,"author":7,"authorName":"ada","city":"Ulm","home":"x"}"#
        )
        // One that refers to itself ends.
        #expect(shown(["User:7": #"{"id":7,"home":"\u0001User:7"}"#]) == #"{"id":1,"author":7,"home":7}"#)
    }

    @Test func `output names that show nothing are reported`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Base", identity: ["id"], Property("friend", one: "Base")).with {
                $0.choices = [ModelChoice(model: "Red", condition: .has("heat"))]
            },
            ModelDeclaration("Red", Property("heat")).with { $0.base = "Base" }
        )
        let names = ["id", "friend", "friend.heat", "friend.friend.id", "heat", "Heat", "friend.x", "id.x", ""]
        #expect(fixture.mapper.unknownMembers(among: names, of: ["Base"]) == ["Heat", "friend.x", "id.x", ""])
    }

    @Test func `a migration moves the values that a merge policy has gathered`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [
                    Wire.property("total", merge: .sum), Wire.property("tags", "meta.tags", merge: .union),
                    Wire.property("first", merge: .keep),
                ],
                version: 1,
                migrations: [
                    Migration(
                        to: 1,
                        renamed: [.init(from: "count", to: "total"), .init(from: "info", to: "meta")],
                        converted: [.init(member: "first", conversion: .date(.unixSeconds))],
                        removed: ["gone"]
                    )
                ]
            )
        ])
        let old = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [
                    Wire.property("total", "count", merge: .sum), Wire.property("tags", "info.tags", merge: .union),
                    Wire.property("first", merge: .keep), Wire.property("gone", merge: .keep),
                ]
            )
        ])
        var shelf = Shelf(old)
        let one = BodyRule(model: "Thing", arity: .one)
        shelf.take("a", #"{"id":1,"count":5,"info":{"tags":["x"]},"first":0,"gone":1}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"count":3,"info":{"tags":["y"]},"first":9}"#, one, at: 2)
        let gathered = try #require(shelf.states.values.first).gathered
        let migrated = models.migrate(gathered, of: "Thing", from: 0)
        let values = migrated.values { models.merge(of: $0, model: 0) }.map { "\($0.text)=\(text($1))" }.sorted()
        #expect(values == [#"first="1970-01-01T00:00:00Z""#, #"meta/tags=["x","y"]"#, "total=8"])
        #expect(models.migrate(gathered, of: "Thing", from: 1) == gathered)
    }
}
