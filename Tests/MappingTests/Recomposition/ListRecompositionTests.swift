import Testing

@testable import Mapping

/// Arrays of objects that grow, shrink and change their order: the bytes before and after, or the miss.
@Suite struct ListRecompositionTests {
    /// A person's friends before and in a newer response, which of 1 to 3 tells the names a, b and c.
    struct Friends: Sendable, CustomTestStringConvertible {
        let what: String
        let before: String
        let newer: String
        let after: String

        init(_ what: String, _ before: String, _ newer: String, becomes after: String) {
            self.what = what
            self.before = before
            self.newer = newer
            self.after = after
        }

        var testDescription: String { what }

        var asCase: RecompositionCase {
            let isWhole = after == RecompositionCase.miss || after == RecompositionCase.same
            return RecompositionCase(
                what,
                #"{"id":9,"friends":\#(before)}"#,
                #"[{"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"c"}]"#,
                #"{"id":9,"friends":\#(newer)}"#,
                becomes: isWhole ? after : #"{"id":9,"friends":\#(after)}"#
            )
        }
    }

    static let known = [
        Friends(
            "one appears behind",
            #"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#,
            "[1,2,3]",
            becomes: #"[{"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"c"}]"#
        ),
        Friends(
            "one appears in front, with undeclared siblings kept away",
            #"[{"name":"b","id":2}]"#,
            "[1,2]",
            becomes: #"[{"name":"a","id":1},{"name":"b","id":2}]"#
        ),
        Friends(
            "one vanishes, the rest keep what is theirs",
            #"[{"id":1,"x":1},{"id":2,"y":2},{"id":3,"z":3}]"#,
            "[1,3]",
            becomes: #"[{"id":1,"x":1},{"id":3,"z":3}]"#
        ),
        Friends(
            "they change places",
            #"[{"id":1,"x":1},{"id":2,"y":2}]"#,
            "[2,1]",
            becomes: #"[{"id":2,"y":2},{"id":1,"x":1}]"#
        ),
        Friends("all vanish", #"[ {"id":1,"x":1} ]"#, "[]", becomes: "[]"),
        Friends("an empty list stays as it is", "[ ]", "[]", becomes: RecompositionCase.same),
        Friends("null becomes empty", "null", "[]", becomes: "[]"),
        Friends("it becomes null", #"[{"id":1}]"#, "null", becomes: "null"),
        Friends(
            "indented",
            "[\n    {\n      \"id\": 1,\n      \"name\": \"a\"\n    }\n  ]",
            "[1,2]",
            becomes:
                "[\n    {\n      \"id\": 1,\n      \"name\": \"a\"\n    },\n    {\n      \"id\": 2,\n      \"name\": \"b\"\n    }\n  ]"
        ),
        Friends(
            "indented with CRLF and a space before the comma",
            "[\r\n\t{\"id\":1,\"name\":\"a\"} ,\r\n\t{\"id\":2,\"name\":\"b\"}\r\n]",
            "[3,2,1]",
            becomes:
                "[\r\n\t{\"id\":3,\"name\":\"c\"} ,\r\n\t{\"id\":2,\"name\":\"b\"} ,\r\n\t{\"id\":1,\"name\":\"a\"}\r\n]"
        ),
        Friends("bare identities", "[1, 2]", #"[{"id":2},{"id":3}]"#, becomes: "[2, 3]"),
        Friends("bare strings", #"["1"]"#, #"[{"id":"1"},{"id":3}]"#, becomes: #"["1","3"]"#),
        Friends(
            "null among them",
            #"[{"id":1,"name":"a"},null]"#,
            "[null,1,2]",
            becomes: #"[null,{"id":1,"name":"a"},{"id":2,"name":"b"}]"#
        ),
        Friends("only null shows no style", "[null]", "[null,1]", becomes: RecompositionCase.miss),
        Friends(
            "one twice",
            #"[{"id":1,"x":1},{"id":1,"x":2}]"#,
            "[1,1]",
            becomes: RecompositionCase.same
        ),
        Friends("one twice, then once", #"[{"id":1,"x":1},{"id":1,"x":2}]"#, "[1]", becomes: #"[{"id":1,"x":1}]"#),
        Friends(
            "one once, then twice",
            #"[{"id":1,"name":"a"}]"#,
            "[1,1]",
            becomes: #"[{"id":1,"name":"a"},{"id":1,"name":"a"}]"#
        ),
        Friends("in another spelling", #"[{"id":1,"x":1}, 2]"#, #"["1",2.0]"#, becomes: RecompositionCase.same),
    ]

    static let unknown = [
        Friends(
            "one alone, where the rest of the document separates in two ways",
            #"[{"id": 1, "name": "a"}]"#,
            "[1,2]",
            becomes: RecompositionCase.miss
        ),
        Friends("from empty", "[]", "[1]", becomes: RecompositionCase.miss),
        Friends("from null", "null", #"[{"id":1}]"#, becomes: RecompositionCase.miss),
        Friends(
            "siblings of two shapes",
            #"[{"id":1,"name":"a"},{"id":2}]"#,
            "[1,2,3]",
            becomes: RecompositionCase.miss
        ),
        Friends(
            "siblings in two orders",
            #"[{"id":1,"name":"a"},{"name":"b","id":2}]"#,
            "[1,2,3]",
            becomes: RecompositionCase.miss
        ),
        Friends("siblings bare and not", #"[{"id":1},2]"#, "[1,2,3]", becomes: RecompositionCase.miss),
        Friends(
            "an undeclared member",
            #"[{"id":1,"x":1}]"#,
            #"[{"id":1},{"id":2,"x":1}]"#,
            becomes: RecompositionCase.miss
        ),
        Friends("a local member", #"[{"id":1,"rank":1}]"#, "[1,2]", becomes: RecompositionCase.miss),
        Friends("nothing known of the new one", #"[{"id":1,"name":"a"}]"#, "[1,4]", becomes: RecompositionCase.miss),
        Friends("a list within the list", #"[{"id":1}]"#, "[[1]]", becomes: RecompositionCase.miss),
        Friends("an object for the list", #"[{"id":1}]"#, #"{"id":1}"#, becomes: RecompositionCase.miss),
        Friends("a list for an object", #"{"id":1}"#, "[1]", becomes: RecompositionCase.miss),
    ]

    @Test(arguments: known)
    func `a list shows its newest elements, each shaped as in the document or like its siblings`(
        _ each: Friends
    ) throws {
        #expect(try each.asCase.shown() == each.asCase.after)
    }

    @Test(arguments: unknown) func `a list that shows no certain shape for a new element is not composed`(
        _ each: Friends
    ) throws {
        #expect(try each.asCase.shown() == each.asCase.after)
    }

    @Test(arguments: [
        (#"{"id": 9, "friends": [{"id": 1}]}"#, #"{"id": 9, "friends": [{"id": 1}, {"id": 2}]}"#),
        (#"{"friends": [{"id": 1}], "id": 9}"#, #"{"friends": [{"id": 1}, {"id": 2}], "id": 9}"#),
        (
            "{\n  \"id\": 9,\n  \"friends\": [\n    1\n  ]\n}",
            "{\n  \"id\": 9,\n  \"friends\": [\n    1,\n    2\n  ]\n}"
        ),
        // All that the document shows stands in lines of its own.
        ("{\n  \"id\": 9,\n  \"friends\": [1]\n}", RecompositionCase.miss),
        // One separator everywhere, or what follows the opening bracket: these two agree with both, and differ.
        (#"{ "id":9, "friends":[{"id":1}]}"#, RecompositionCase.miss),
        (#"{"id":9,"note":"a, b","friends":[1]}"#, #"{"id":9,"note":"a, b","friends":[1,2]}"#),
    ])
    func `a list of one element grows with the separator that the rest of the document shows`(
        before: String,
        after: String
    ) throws {
        let each = RecompositionCase(
            "",
            before,
            #"[{"id":2,"name":"b"}]"#,
            #"{"id":9,"friends":[1,2]}"#,
            becomes: after
        )
        #expect(try each.shown() == each.after)
    }

    @Test func `a new element's own list takes the shape of its siblings' lists`() throws {
        let each = RecompositionCase(
            "",
            #"{"id":9,"friends":[{"id":1,"friends":[{"id":2,"name":"b"}]}]}"#,
            #"[{"id":3,"name":"c","friends":[4,2]},{"id":4,"name":"d"}]"#,
            #"{"id":9,"friends":[1,3]}"#,
            becomes:
                #"{"id":9,"friends":[{"id":1,"friends":[{"id":2,"name":"b"}]},{"id":3,"friends":[{"id":4,"name":"d"},{"id":2,"name":"b"}]}]}"#
        )
        #expect(try each.shown() == each.after)
    }
}
