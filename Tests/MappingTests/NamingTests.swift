import Testing

@testable import Mapping

@Suite struct NamingTests {
    private let naming = Naming.snakeCase(acronyms: ["ID", "URL", "HTTP", "HTTPS", "API"])

    @Test(arguments: [
        ("catID", "cat_id"), ("preferredName", "preferred_name"), ("avatarURL", "avatar_url"),
        ("htmlURLString", "html_url_string"), ("catIDs", "cat_ids"), ("HTTPSProxy", "https_proxy"),
        ("httpAPIVersion2", "http_api_version2"), ("XMLFile", "xml_file"), ("idea", "idea"), ("Idea", "idea"),
        ("urlAPI", "url_api"), ("a", "a"), ("A", "a"), ("aB", "a_b"), ("already_snake", "already_snake"),
    ])
    func `words are joined by underscores, and an acronym is one word`(property: String, member: String) {
        #expect(naming.members(for: property).contains(member))
        #expect(naming.members(for: property).last == property)
    }

    @Test func `MK-01 MK-02: a property in either spelling is read, and shared between documents`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Cat",
                identity: ["id"],
                properties: [PropertyDeclaration(name: "preferredName", from: "")]
            ).with { $0.naming = naming }
        ])
        let rule = BodyRule(model: "Cat", arity: .one)
        for member in ["preferred_name", "preferredName"] {
            var shelf = Shelf(models)
            shelf.take("a", #"{"id":1,"\#(member)":"Jellybean"}"#, rule, at: 1)
            shelf.take("b", #"{"id":1,"\#(member)":"Tiger"}"#, rule, at: 2)
            #expect(shelf.shown("a") == #"{"id":1,"\#(member)":"Tiger"}"#)
        }
    }
}
