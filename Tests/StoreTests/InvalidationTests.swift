import Foundation
import Mapping
import Testing

@testable import Store

@Suite struct InvalidationTests {
    private func pattern(_ text: String) throws -> InvalidationPattern {
        InvalidationPattern(base: "/v1", pattern: try RoutePattern(text))
    }

    @Test func `paths are covered with any query, and patterns below their base path`() throws {
        let invalidation = Invalidation(of: "api", paths: ["/a"], patterns: [try pattern("posts/*")], at: 1)
        for url in ["/a", "/a?page=2", "/v1/posts/7", "/v1/posts/7?x"] { #expect(invalidation.covers(url, of: "api")) }
        for url in ["/a/", "/ab", "/posts/7", "/v1/posts", "/v1/posts/7/x"] {
            #expect(!invalidation.covers(url, of: "api"), "\(url)")
        }
        #expect(!invalidation.covers("/a", of: "other"))
    }

    @Test func `without paths, patterns and objects everything is covered, of one upstream or of all`() {
        #expect(Invalidation(of: "api", at: 1).covers("/x", of: "api"))
        #expect(!Invalidation(of: "api", at: 1).covers("/x", of: "other"))
        #expect(Invalidation(of: nil, at: 1).covers("/x", of: "other"))
    }

    @Test func `an object covers the responses that show it, or any of its model`() {
        let shown = [ObjectName(model: "User", identity: "1")]
        func covers(_ object: BoundObject, _ shown: [ObjectName]?) -> Bool {
            Invalidation(of: nil, objects: [object], at: 1).covers("/x", of: "api", shown: shown)
        }
        #expect(covers(BoundObject(model: "User", identity: "1"), shown))
        #expect(covers(BoundObject(model: "User"), shown))
        #expect(!covers(BoundObject(model: "User", identity: "2"), shown))
        #expect(!covers(BoundObject(model: "Post", identity: "1"), shown))
        // What a response shows is not known yet.
        #expect(covers(BoundObject(model: "User", identity: "2"), nil))
    }

    @Test func `only the responses of the principals named are covered`() {
        let invalidation = Invalidation(of: "api", paths: ["/a"], principals: ["ada"], at: 1)
        #expect(invalidation.covers("/a", of: "api", principal: "ada"))
        #expect(!invalidation.covers("/a", of: "api", principal: "bob"))
        #expect(invalidation.covers("/a", of: "api"))
        #expect(invalidation.concerns("api", principal: "ada") && !invalidation.concerns("api", principal: "bob"))
        #expect(invalidation.concerns("api") && !invalidation.concerns("other", principal: "ada"))
    }

    @Test func `a clean covers all that its filter may remove: by upstream and principal, and by the objects shown`() {
        func covers(_ filter: CleanFilter, of model: String? = nil, _ principal: String, _ shown: String) -> Bool {
            filter.invalidation(of: model, at: 1)
                .covers("/x", of: "api", principal: principal, shown: [ObjectName(model: "User", identity: shown)])
        }
        let one = CleanFilter(model: "User", identity: "1", upstream: "api", principal: "ada")
        #expect(covers(one, of: "User", "ada", "1"))
        #expect(!covers(one, of: "User", "ada", "2") && !covers(one, of: "User", "bob", "1"))
        // Where nobody knows what a response shows, it may show the object.
        #expect(covers(one, "ada", "2") && !covers(one, "bob", "1"))
        #expect(!covers(CleanFilter(upstream: "other"), "ada", "1"))
        // Which URLs and ages are meant, a name cannot say.
        let someURLs = CleanFilter(upstream: "api", url: { $0 == "/y" }, olderThan: 7)
        #expect(covers(someURLs, "ada", "1"))
    }

    @Test func `an invalidation is the same after encoding as JSON and decoding`() throws {
        let invalidation = Invalidation(
            of: "api",
            paths: ["/a", "/b"],
            patterns: [try pattern("posts/*/7")],
            objects: [BoundObject(model: "User", keys: ["ada"])],
            principals: ["ada"],
            at: 7
        )
        let read = try JSONDecoder().decode(Invalidation.self, from: JSONEncoder().encode(invalidation))
        #expect(read == invalidation)
        #expect(throws: (any Error).self) {
            try JSONDecoder().decode(InvalidationPattern.self, from: Data(#"{"base":"","pattern":"{"}"#.utf8))
        }
    }
}
