import Testing

@testable import Mapping

@Suite struct NamingTests {
    private let naming = Naming.snakeCase(acronyms: ["ID", "URL", "HTTP", "HTTPS", "API"])
    private var names: MemberNaming { MemberNaming(naming) }

    @Test(arguments: [
        ("catID", "cat_id"), ("preferredName", "preferred_name"), ("avatarURL", "avatar_url"),
        ("htmlURLString", "html_url_string"), ("catIDs", "cat_ids"), ("HTTPSProxy", "https_proxy"),
        ("httpAPIVersion2", "http_api_version2"), ("XMLFile", "xml_file"), ("idea", "idea"), ("Idea", "idea"),
        ("userID2", "user_id2"), ("address2", "address2"), ("userID2Name", "user_id2_name"),
        ("http2Server", "http2_server"),
        ("OAuthToken", "o_auth_token"), ("iOSVersion", "i_os_version"), ("sha256Sum", "sha256_sum"),
        ("urlAPI", "url_api"), ("a", "a"), ("A", "a"), ("aB", "a_b"), ("already_snake", "already_snake"),
    ])
    func `words are joined by underscores, and an acronym is one word`(property: String, member: String) {
        #expect(names.members(for: property).contains(member))
        #expect(names.members(for: property).first == property)
    }

    @Test(arguments: [
        ("OAuthToken", "oauth_token"), ("myOAuth2Token", "my_oauth2_token"), ("iOSVersion", "ios_version"),
        ("userIOSID", "user_ios_id"),
    ])
    func `an acronym may have small letters`(property: String, member: String) {
        #expect(MemberNaming(.snakeCase(acronyms: ["OAuth", "iOS"])).output(for: property) == member)
    }

    @Test(arguments: [("user_id2", "userID2"), ("address2", nil), ("my_oauth", "myOAuth"), ("oauth_urls", "oauthURLs")])
    func `a property in snake case is also read from its member in camel case`(property: String, member: String?) {
        let names = MemberNaming(.snakeCase(acronyms: ["OAuth"])).members(for: property)
        #expect(names == [property] + (member.map { [$0] } ?? []))
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
