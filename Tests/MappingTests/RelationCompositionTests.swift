import Testing

@testable import Mapping

/// Documents put together where a reference or an embedded object has changed.
@Suite struct RelationCompositionTests {
    private func shelf() throws -> Shelf { try Shelf(Tracker.models()) }

    @Test func `a reference that changes is expanded in the shape of the pinned one`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"user":{ "login":"x", "id":7 }}"#, "Issue")
        shelf.receive("u", #"{"id":8,"login":"z","name":"n"}"#, "User")
        shelf.receive("b", #"{"id":1,"user":{"id":8}}"#, "Issue")
        #expect(shelf.shown("a") == #"{"id":1,"user":{ "login":"z", "id":8 }}"#)
        guard case .composed(let body) = shelf.compose("a") else {
            Issue.record("not composed")
            return
        }
        #expect(body.added == [ObjectName(model: "User", identity: "8")])
    }

    @Test func `unknown and undeclared members are not invented`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"user":{"id":7,"login":"x"}}"#, "Issue")
        shelf.receive("undeclared", #"{"id":1,"user":{"id":7,"login":"x","extra":1}}"#, "Issue")
        shelf.receive("b", #"{"id":1,"user":{"id":8,"extra":2}}"#, "Issue")
        #expect(shelf.shown("a") == "?")
        shelf.receive("u", #"{"id":8,"login":"z"}"#, "User")
        #expect(shelf.shown("a") == #"{"id":1,"user":{"id":8,"login":"z"}}"#)
        #expect(shelf.shown("undeclared") == "?")
    }

    @Test func `FJ-16 an object of which only the bare identity is known is never served`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"user":{"id":7}}"#, "Issue")
        shelf.receive("b", #"{"id":1,"user":9}"#, "Issue")
        #expect(shelf.shown("a") == "?")
    }

    @Test func `a bare identity is a reference shown bare`() throws {
        var shelf = try shelf()
        shelf.receive("bare", #"{"id":1,"user":7}"#, "Issue")
        shelf.receive("text", #"{"id":1,"user":"7"}"#, "Issue")
        shelf.receive("object", #"{"id":1,"user":{"id":7,"login":"x"}}"#, "Issue")
        #expect(shelf.shown("bare") == "=")
        #expect(shelf.shown("text") == "=")
        shelf.receive("object", #"{"id":1,"user":{"id":8,"login":"y"}}"#, "Issue")
        #expect(shelf.shown("bare") == #"{"id":1,"user":8}"#)
        #expect(shelf.shown("text") == #"{"id":1,"user":"8"}"#)
        shelf.receive("bare", #"{"id":1,"user":7}"#, "Issue")
        #expect(shelf.shown("object") == #"{"id":1,"user":{"id":7,"login":"x"}}"#)
    }

    @Test func `FJ-17 null replaces an object; an object in the place of null is not composed`() throws {
        var shelf = try shelf()
        shelf.receive("object", #"{"id":1,"user":{"id":7,"login":"x"},"title":"t"}"#, "Issue")
        shelf.receive("null", #"{"id":1,"user":null,"title":"t"}"#, "Issue")
        #expect(shelf.shown("object") == #"{"id":1,"user":null,"title":"t"}"#)
        shelf.receive("object", #"{"id":1,"user":{"id":7,"login":"x"},"title":"t"}"#, "Issue")
        #expect(shelf.shown("null") == "?")
    }

    @Test func `an expanded object brings its own relations in the pinned shape`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"parent":{"id":2,"title":"p","user":{"id":7,"login":"x"}}}"#, "Issue")
        shelf.receive("p", #"{"id":3,"title":"q","user":{"id":8,"login":"y"}}"#, "Issue")
        shelf.receive("b", #"{"id":1,"parent":3}"#, "Issue")
        #expect(shelf.shown("a") == #"{"id":1,"parent":{"id":3,"title":"q","user":{"id":8,"login":"y"}}}"#)
    }

    @Test func `embedded objects are composed member by member, undeclared ones stay`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"signature":{"name":"a","when":1,"user":{"id":2,"login":"x"}}}"#, "Issue")
        shelf.receive("b", #"{"id":1,"signature":{"name":"b","when":2,"user":null}}"#, "Issue")
        #expect(shelf.shown("a") == #"{"id":1,"signature":{"name":"b","when":1,"user":null}}"#)
        shelf.receive("c", #"{"id":1,"signature":null}"#, "Issue")
        #expect(shelf.shown("a") == #"{"id":1,"signature":null}"#)
        #expect(shelf.shown("c") == "=")
        shelf.receive("d", #"{"id":1,"signature":{"name":"d"}}"#, "Issue")
        #expect(shelf.shown("c") == "?")
    }
}
