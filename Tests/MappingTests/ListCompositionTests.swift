import Testing

@testable import Mapping

/// Documents put together where a list has changed: in the shape of its siblings, or not at all.
@Suite struct ListCompositionTests {
    private func shelf() throws -> Shelf { try Shelf(Tracker.models()) }

    /// Shows `first` after `second` was received; labels 1, 2 and 3 are known with names.
    private func shown(_ first: String, after second: String) throws -> String {
        var shelf = try shelf()
        shelf.receive("labels", #"[{"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"c"}]"#, "Label", list: true)
        shelf.receive("first", #"{"id":1,"labels":\#(first)}"#, "Issue")
        shelf.receive("second", #"{"id":1,"labels":\#(second)}"#, "Issue")
        let shown = shelf.shown("first")
        let prefix = #"{"id":1,"labels":"#
        return shown.hasPrefix(prefix) ? String(shown.dropFirst(prefix.count).dropLast()) : shown
    }

    @Test(arguments: [
        // Vanishes, appears, moves.
        (#"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#, #"[{"id":2}]"#, #"[{"id":2,"name":"b"}]"#),
        (#"[{"id":1,"name":"a"}]"#, #"[{"id":1},{"id":3}]"#, #"[{"id":1,"name":"a"},{"id":3,"name":"c"}]"#),
        (
            #"[ {"name":"a","id":1}, {"name":"b","id":2} ]"#, "[3,2,1]",
            #"[ {"name":"c","id":3}, {"name":"b","id":2}, {"name":"a","id":1} ]"#
        ),
        (
            "[\n  {\n    \"id\":1,\n    \"name\":\"a\"\n  }\n]", "[1,2]",
            "[\n  {\n    \"id\":1,\n    \"name\":\"a\"\n  },\n  {\n    \"id\":2,\n    \"name\":\"b\"\n  }\n]"
        ),
        // Bare lists stay bare.
        ("[1,2]", #"[{"id":1,"name":"a"},{"id":3,"name":"c"}]"#, "[1,3]"),
        (#"["1", "2"]"#, "[2,3]", #"["2", 3]"#),
        (#"["1", "2"]"#, #"[{"id":2},{"id":3}]"#, #"["2", "3"]"#),
        // Nothing, null.
        (#"[{"id":1,"name":"a"}]"#, "[]", "[]"), (#"[{"id":1,"name":"a"}]"#, "null", "null"), ("null", "[]", "[]"),
        ("[ ]", "[]", "="), (#"[{"id":1,"name":"a"}]"#, "[1]", "="), ("[1,null]", "[1,null,2]", "[1,null,2]"),
        (#"[{"id":1,"name":"a"}]"#, "[1,null]", #"[{"id":1,"name":"a"},null]"#),
        // An element twice keeps its own pins in order.
        (
            #"[{"id":1,"name":"a","rank":1},{"id":1,"name":"a","rank":2}]"#, "[1]", #"[{"id":1,"name":"a","rank":1}]"#
        ),
    ])
    func `a list shows its newest elements, in their pinned shape or that of their siblings`(
        first: String,
        second: String,
        expected: String
    ) throws {
        #expect(try shown(first, after: second) == expected)
    }

    @Test(arguments: [
        ("[]", #"[{"id":1,"name":"a"}]"#), ("[]", "[1]"), ("null", "[1]"), ("null", #"[{"id":1}]"#),
        // Siblings of two shapes, or in two orders.
        (#"[{"id":1,"name":"a"},{"id":2}]"#, "[1,2,3]"), (#"[{"id":1,"name":"a"},{"name":"b","id":2}]"#, "[1,2,3]"),
        (#"[{"id":1,"name":"a"},2]"#, "[1,2,3]"),
        // Not known of the new one, or local.
        (#"[{"id":1,"name":"a","color":"red"}]"#, "[1,3]"), (#"[{"id":1,"name":"a","rank":1}]"#, "[1,3]"),
        (#"[{"id":1,"name":"a"}]"#, "[1,4]"),
    ])
    func `a list whose new elements have no certain shape, or unknown members, is not composed`(
        first: String,
        second: String
    ) throws {
        #expect(try shown(first, after: second) == "?")
    }

    @Test func `lists of embedded objects take the siblings' shape from declared members only`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"signatures":[{"name":"a"},{"name":"b"}]}"#, "Issue")
        shelf.receive("extra", #"{"id":1,"signatures":[{"name":"a","when":1}]}"#, "Issue")
        shelf.receive("b", #"{"id":1,"signatures":[{"name":"b","when":2},{"when":3,"name":"c"}]}"#, "Issue")
        #expect(shelf.shown("a") == #"{"id":1,"signatures":[{"name":"b"},{"name":"c"}]}"#)
        #expect(shelf.shown("extra") == "?")
    }

    @Test func `FJ-27 each element is composed from its own newest values`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"labels":[{"id":1,"name":"a"},{"id":2,"name":"b"}]}"#, "Issue")
        shelf.receive("l", #"{"id":2,"name":"B"}"#, "Label")
        #expect(shelf.shown("a") == #"{"id":1,"labels":[{"id":1,"name":"a"},{"id":2,"name":"B"}]}"#)
        shelf.receive("b", #"{"id":1,"labels":[2]}"#, "Issue")
        #expect(shelf.shown("a") == #"{"id":1,"labels":[{"id":2,"name":"B"}]}"#)
    }
}
