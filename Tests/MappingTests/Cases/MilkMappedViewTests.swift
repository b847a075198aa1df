@testable import Mapping
import Testing

/// What Milk's cases say of the mapped view.
@Suite struct MilkMappedViewTests {
    private func cats() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                name: "Cat",
                properties: [
                    Property("catID", ""), Property("preferredName", ""),
                    Property(name: "bestFriend", from: "", relation: .one("Cat")),
                ]
            ).with { ($0.identity, $0.naming) = (["catID"], .snakeCase(acronyms: [])) }
        )
    }

    private func places() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                "Cat",
                Property(name: "location", from: "meta.coordinates", relation: .one("Location")),
                Property("location.latitude", "last_known_latitude")
            ),
            ModelDeclaration("Location", Property("latitude", "lat"), Property("longitude", "lon"))
        )
    }

    @Test(arguments: [
        #"{"cat_id":"19378372","preferred_name":"Jellybean"}"#, #"{"catID":"19378372","preferredName":"Jellybean"}"#,
    ])
    func `MK-01, MK-02: snake case and camel case fill the same properties`(body: String) throws {
        let shown = try cats().one(body, "Cat")
        #expect(shown.body == #"{"catID":"19378372","preferredName":"Jellybean"}"#)
        #expect(shown.warnings.isEmpty)
    }

    @Test func `MK-03: of two spellings the exact one wins, with a warning`() throws {
        let shown = try cats().one(#"{"cat_id":"1","catID":"2"}"#, "Cat")
        #expect(shown.body == #"{"catID":"2"}"#)
        #expect(shown.kinds == [.keyCollision])
    }

    @Test func `MK-04, MK-05: a completing path fills a member of the child, also over its own`() throws {
        let completed = #"{"location":{"latitude":52.374,"longitude":4.886}}"#
        for coordinates in [#"{"lon":4.886}"#, #"{"lon":4.886,"lat":1}"#] {
            let body = #"{"meta":{"coordinates":\#(coordinates)},"last_known_latitude":52.374}"#
            #expect(try places().one(body, "Cat").body == completed)
        }
        // On the way back the value goes to where it came from.
        #expect(
            try places().unmap(completed, "Cat")
                == #"{"meta":{"coordinates":{"lon":4.886}},"last_known_latitude":52.374}"#
        )
    }

    @Test func `MK-06: names that do not correspond are not guessed`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Cat", Property(name: "location", from: "meta.coordinates", relation: .one("Location"))),
            ModelDeclaration("Location", Property("latitude"), Property("longitude"))
        )
        let shown = fixture.one(#"{"meta":{"coordinates":{"lon":4.886}}}"#, "Cat")
        #expect(shown.body == #"{"location":{}}"#)
        #expect(shown.kinds == [.nothingMapped] && shown.pointers == ["/meta/coordinates"])
    }

    @Test func `MK-07: if the completing member is missing, so is the child's member`() throws {
        #expect(
            try places().one(#"{"meta":{"coordinates":{"lon":4.886}}}"#, "Cat").body
                == #"{"location":{"longitude":4.886}}"#
        )
    }

    @Test(arguments: [#"{"last_known_latitude":52.374}"#, #"{"meta":{},"last_known_latitude":52.374}"#])
    func `MK-08: a child of which only completing members are present is made of these`(body: String) throws {
        let shown = try places().one(body, "Cat")
        #expect(shown.body == #"{"location":{"latitude":52.374}}"# && shown.warnings.isEmpty)
        #expect(try places().unmap(shown.body, "Cat") == #"{"last_known_latitude":52.374}"#)
    }

    @Test func `MK-09: a null child stays null, and the member that would complete it is reported`() throws {
        for body in [
            #"{"meta":null,"last_known_latitude":1}"#, #"{"meta":{"coordinates":null},"last_known_latitude":1}"#,
        ] {
            let shown = try places().one(body, "Cat")
            #expect(shown.body == #"{"location":null}"# && shown.kinds == [.completionIgnored])
        }
    }

    @Test(arguments: [
        (#""52,4""#, MappingWarning.Kind.quarantined), ("[52,4]", .arrayForObject), ("[]", .arrayForObject),
    ])
    func `MK-10: a child that is no object is reported and left out, and the completing path still applies`(
        child: String,
        warning: MappingWarning.Kind
    ) throws {
        let shown = try places().one(#"{"meta":{"coordinates":\#(child)},"last_known_latitude":52.374}"#, "Cat")
        #expect(shown.body == #"{"location":{"latitude":52.374}}"#)
        #expect(shown.kinds == [warning] && shown.pointers == ["/meta/coordinates"])
        #expect(try places().one(#"{"meta":{"coordinates":\#(child)}}"#, "Cat").body == "{}")
    }

    @Test func `MK-11: an object in which nothing declared is found stays raw, with a warning`() throws {
        let shown = try cats().one(#"{"message":"no such cat"}"#, "Cat")
        #expect(!shown.isMapped && shown.body == #"{"message":"no such cat"}"#)
        #expect(shown.kinds == [.nothingMapped])
    }

    @Test func `MK-14: on the way back names are in snake case at every depth`() throws {
        let mapped = #"{"catID":"1","preferredName":"J","bestFriend":{"catID":"2","preferredName":"K"}}"#
        let wire = #"{"cat_id":"1","preferred_name":"J","best_friend":{"cat_id":"2","preferred_name":"K"}}"#
        #expect(try cats().unmap(mapped, "Cat") == wire)
        #expect(try cats().one(wire, "Cat").body == mapped)
    }

    @Test func `MK-15, MK-16: an output path makes objects on its way, one for all that share it`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Cat",
                Property("name").with { $0.output = .path("name_data.preferred") },
                Property("age"),
                Property("legal").with { $0.output = .path("name_data.legal") }
            )
        )
        #expect(
            try fixture.unmap(#"{"name":"J","age":3,"legal":"Mr J"}"#, "Cat")
                == #"{"name_data":{"preferred":"J","legal":"Mr J"},"age":3}"#
        )
        #expect(try fixture.unmap(#"{"age":3}"#, "Cat") == #"{"age":3}"#)
    }

    @Test func `MK-17: one object that fails leaves the others unharmed`() throws {
        let shown = try cats().list(#"[{"cat_id":"1"},{"x":1},{"cat_id":"3"}]"#, "Cat")
        #expect(shown.body == #"[{"catID":"1"},{},{"catID":"3"}]"#)
        #expect(shown.kinds == [.nothingMapped] && shown.pointers == ["/1"] && shown.warnings[0].model == "Cat")
    }

    @Test func `MK-18: by default an object is written back where it was read`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Cat",
                Property("name", "data.names.first"),
                Property("tagNames", "tags[].name"),
                Property("tagIDs", "tags[].id")
            )
        )
        let body = #"{"data":{"names":{"first":"J"}},"tags":[{"name":"a","id":1},{"name":"b","id":2}]}"#
        let shown = fixture.one(body, "Cat")
        #expect(shown.body == #"{"name":"J","tagNames":["a","b"],"tagIDs":[1,2]}"#)
        #expect(try fixture.unmap(shown.body, "Cat") == body)
    }

    @Test(arguments: [
        ("catID", "cat_id"), ("preferredName", "preferred_name"), ("HTTPServer", "http_server"),
        ("avatarURL", "avatar_url"),
        ("userIDs", "user_ids"), ("id", "id"), ("htmlURLPrefix", "html_url_prefix"), ("sha256Sum", "sha256_sum"),
        ("PRNumber", "pr_number"), ("identity", "identity"), ("isIDLess", "is_id_less"), ("JSONAPIURL", "json_api_url"),
    ])
    func `names are split at capitals and known acronyms`(property: String, member: String) {
        let naming = MemberNaming(.snakeCase(acronyms: ["PR"]))
        #expect(naming.output(for: property) == member)
    }

    @Test(arguments: [
        ("cat_id", "catID"), ("preferred_name", "preferredName"), ("user_ids", "userIDs"), ("api_url", "apiURL"),
    ])
    func `a property in snake case is filled by camel case too`(property: String, member: String) {
        #expect(MemberNaming(.snakeCase(acronyms: [])).members(for: property) == [property, member])
    }
}
