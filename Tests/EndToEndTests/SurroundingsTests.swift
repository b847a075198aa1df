import TestSupport
import Testing

/// What stands around a body names the objects in it.
@Suite(.scripts) struct SurroundingsTests {
    private static func config(_ origin: Origin) -> String {
        """
        upstreams:
          api:
            url: \(origin.url)
        models:
          User: { identity: id, keys: [login], properties: { name: name } }
          Shelf: { identity: ["@url.owner", name], properties: { size: size } }
        routes:
          - { path: "users/{login}", model: User, object: { login: login } }
          - { path: "owners/{owner}/shelves", model: [Shelf] }
          - { path: "owners/{owner}/shelves/{name}", model: Shelf }
        """
    }

    @Test func `a path's capture can be part of an identity, and a key that finds an object`() throws {
        let origin = try Origin { request in
            switch request.path {
            case "/users/Octo%20Cat": .json(#"{"id":7,"name":"n"}"#, Fresh.hour)
            case "/owners/a/shelves": .json(#"[{"name":"top","size":1}]"#, Fresh.hour)
            case "/owners/b/shelves": .json(#"[{"name":"top","size":2}]"#, Fresh.hour)
            default: .json(#"{"name":"top","size":3}"#, Fresh.hour)
            }
        }
        let larder = try Larder(config: Self.config(origin))
        for path in ["/users/Octo%20Cat", "/owners/a/shelves", "/owners/b/shelves", "/owners/a/shelves/top"] {
            #expect(try larder.get(path).status == 200)
        }
        #expect(try larder.waitForDocuments(4))
        #expect(try larder.count()["models"] as? [String: Int] == ["User": 1, "Shelf": 2])
        // One owner's shelf is no other's, though they bear one name.
        #expect(try larder.get("/owners/a/shelves").text == #"[{"name":"top","size":3}]"#)
        #expect(try larder.get("/owners/b/shelves").text == #"[{"name":"top","size":2}]"#)
        let found = try larder.admin("GET", "/objects/User/Octo%20Cat")
        #expect(found.status == 200)
        #expect(found.text.contains(#""name":"n""#))
        #expect(try larder.admin("GET", "/objects/User/nobody").status == 404)
    }
}
