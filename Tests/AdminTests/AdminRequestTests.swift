import Testing

@testable import Admin
@testable import HTTPSemantics

@Suite struct AdminRequestTests {
    @Test func `components are decoded one by one`() throws {
        let request = try #require(AdminRequest(method: "GET", path: "/objects//Tag/a%2Fb%20c/", query: nil))
        #expect(request.components == ["objects", "", "Tag", "a/b c"])
    }

    @Test func `a plus is a space in the query and itself in the path`() throws {
        let request = try #require(AdminRequest(method: "GET", path: "/a+b", query: "url=%2Fa+b&flag&=x&empty="))
        #expect(request.components == ["a+b"])
        #expect(request.query.map(\.name) == ["url", "flag", "", "empty"])
        #expect(request.query.map(\.value) == ["/a b", "", "x", ""])
        #expect(request.value("url") == "/a b")
        #expect(request.value("empty") == nil)
    }

    @Test(arguments: [("/%", nil), ("/%4", nil), ("/%zz", nil), ("/%ff", nil), ("/", "a=%"), ("/", "%fe=1")])
    func `a request with a broken escape is refused`(path: String, query: String?) {
        #expect(AdminRequest(method: "GET", path: path, query: query) == nil)
    }

    @Test func `members of a body are read by name`() throws {
        let members = try request(#"{"b": 12, "a": "x", "d": null, "c": true}"#).members()
        #expect(members.map(\.name) == ["a", "b", "c", "d"])
        #expect(members.map(\.value) == [.text("x"), .number(12), .flag(true), .null])
    }

    @Test(arguments: ["[]", "1", "{", #"{"a": {}}"#, #"{"a": 1.5}"#, "model=User", "null", "{} {}"])
    func `a body that is not one plain object is refused`(body: String) {
        #expect(throws: ProblemDocument.self) { try request(body).members() }
    }

    @Test(arguments: ["", " \n"])
    func `an empty body has no members`(body: String) throws {
        #expect(try request(body).members().isEmpty)
    }

    private func request(_ body: String) throws -> AdminRequest {
        try #require(AdminRequest(method: "POST", path: "/clean", query: nil, body: Array(body.utf8)))
    }
}
