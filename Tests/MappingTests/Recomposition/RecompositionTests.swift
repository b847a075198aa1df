import Testing

@testable import Mapping

/// Law 5 to 7 to the letter, for the members of objects: the bytes of a document before and after.
@Suite struct RecompositionTests {
    typealias Case = RecompositionCase

    static let members = [
        Case(
            "a value becomes null",
            #"{"id":1,"name":"a"}"#,
            #"{"id":1,"name":null}"#,
            becomes: #"{"id":1,"name":null}"#
        ),
        Case("null becomes a value", #"{"id":1,"name":null}"#, #"{"id":1,"name":""}"#, becomes: #"{"id":1,"name":""}"#),
        Case(
            "a value becomes an object",
            #"{"id":1,"name":"a"}"#,
            #"{"id":1,"name":{ "x":1, "x":2 }}"#,
            becomes: #"{"id":1,"name":{ "x":1, "x":2 }}"#
        ),
        Case(
            "an object becomes a value",
            #"{"id":1,"name":{"x":1}}"#,
            #"{"id":1,"name":0}"#,
            becomes: #"{"id":1,"name":0}"#
        ),
        Case("empty becomes empty", #"{"id":1,"name":{}}"#, #"{"id":1,"name":[]}"#, becomes: #"{"id":1,"name":[]}"#),
        Case("empty in another spelling", #"{"id":1,"name":{ }}"#, #"{"id":1,"name":{}}"#, becomes: Case.same),
        Case(
            "members that the document does not show are not added",
            #"{"id":1,"name":"a"}"#,
            #"{"id":1,"name":"a","age":2}"#,
            becomes: Case.same
        ),
        Case(
            "absent says nothing",
            #"{"id":1,"name":"a","age":1}"#,
            #"{"id":1,"age":2}"#,
            becomes: #"{"id":1,"name":"a","age":2}"#
        ),
        Case(
            "a key path through an undeclared object",
            #"{"id":1,"profile":{"nick":"n","x":1}}"#,
            #"{"id":1,"profile":{"x":2,"nick":"m"}}"#,
            becomes: #"{"id":1,"profile":{"nick":"m","x":1}}"#
        ),
        Case(
            "null in place of an undeclared object says that no property is in it",
            #"{"id":1,"profile":{"nick":"n","x":1}}"#,
            #"{"id":1,"profile":null}"#,
            becomes: #"{"id":1,"profile":null}"#
        ),
        Case(
            "… and not which members an object has",
            #"{"id":1,"profile":null}"#,
            #"{"id":1,"profile":{"nick":"m"}}"#,
            becomes: Case.miss
        ),
        Case("… any other value stays", #"{"id":1,"profile":3}"#, #"{"id":1,"profile":null}"#, becomes: Case.same),
        Case(
            "… and is no observation",
            #"{"id":1,"profile":{"nick":"n"}}"#,
            #"{"id":1,"profile":3}"#,
            becomes: Case.same
        ),
        Case(
            "names spelled with escapes keep their spelling",
            #"{"\u0069d":1,"n\u0061me":"a"}"#,
            #"{"id":1,"\u006eame":"b"}"#,
            becomes: #"{"\u0069d":1,"n\u0061me":"b"}"#
        ),
        Case(
            "a name twice in the document stays as it is",
            #"{"id":1,"name":"a","age":1,"n\u0061me":"a"}"#,
            #"{"id":1,"name":"b","age":2}"#,
            becomes: #"{"id":1,"name":"a","age":2,"n\u0061me":"a"}"#
        ),
        Case(
            "a name twice in the newer answer says nothing, though both agree",
            #"{"id":1,"name":"a","age":1}"#,
            #"{"id":1,"name":"b","age":2,"name":"b"}"#,
            becomes: #"{"id":1,"name":"a","age":2}"#
        ),
        Case(
            "… nor do the members of an object that stands there twice",
            #"{"id":1,"profile":{"nick":"n"}}"#,
            #"{"id":1,"profile":{"nick":"m"},"profile":{"nick":"m"}}"#,
            becomes: Case.same
        ),
        Case(
            "a name twice in the shape is known of nobody else",
            #"{"id":1,"boss":{"id":2,"name":"b","name":"b"}}"#,
            #"{"id":3,"name":"c"}"#,
            #"{"id":1,"boss":3}"#,
            becomes: Case.miss
        ),
        Case(
            "the identity twice is none",
            #"{"id":1,"id":1,"name":"a"}"#,
            #"{"id":1,"name":"b"}"#,
            becomes: Case.same
        ),
        Case(
            "numbers are compared as decimals",
            #"[{"id":1,"age":1.0},{"id":2,"age":1e2},{"id":3,"age":-0}]"#,
            #"[{"id":1,"age":1},{"id":2,"age":100},{"id":3,"age":0}]"#,
            becomes: Case.same
        ),
        Case(
            "… of any size",
            #"[{"id":1,"age":9007199254740993},{"id":2,"age":1e400}]"#,
            #"[{"id":1,"age":9007199254740992},{"id":2,"age":1e401}]"#,
            becomes: #"[{"id":1,"age":9007199254740992},{"id":2,"age":1e401}]"#
        ),
        Case(
            "strings are compared as code points",
            #"[{"id":1,"name":"\ud83d\ude00"},{"id":2,"name":"\/é"}]"#,
            #"[{"id":1,"name":"😀"},{"id":2,"name":"/\u00e9"}]"#,
            becomes: Case.same
        ),
        Case(
            "what merely looks alike differs",
            "{\"id\":1,\"name\":\"\u{E9}\"}",
            "{\"id\":1,\"name\":\"e\u{301}\"}",
            becomes: "{\"id\":1,\"name\":\"e\u{301}\"}"
        ),
        Case(
            "what is newer keeps its own spelling",
            #"{"id":1,"name":"a","age":1}"#,
            #"{"id":1,"name":"\u0062\/","age":2.50e0}"#,
            becomes: #"{"id":1,"name":"\u0062\/","age":2.50e0}"#
        ),
        Case(
            "the identity keeps its spelling",
            #"{"id":"1","name":"a"}"#,
            #"{"id":1.0,"name":"b"}"#,
            becomes: #"{"id":"1","name":"b"}"#
        ),
        Case(
            "leading and trailing white space",
            " \r\n\t{\"id\":1,\"name\":\"a\"}\r\n \n",
            #"{"id":1,"name":"b"}"#,
            becomes: " \r\n\t{\"id\":1,\"name\":\"b\"}\r\n \n"
        ),
        Case(
            "behind a byte order mark there is no JSON",
            "\u{FEFF}{\"id\":1,\"name\":\"a\"}",
            #"{"id":1,"name":"b"}"#,
            becomes: Case.same
        ),
    ]

    static let occurrences = [
        Case(
            "several times in one shape",
            #"[{"id":1,"boss":{"id":9,"name":"x"}},{"id":2,"boss":{"id":9,"name":"x"}}]"#,
            #"{"id":9,"name":"y"}"#,
            becomes: #"[{"id":1,"boss":{"id":9,"name":"y"}},{"id":2,"boss":{"id":9,"name":"y"}}]"#
        ),
        Case(
            "several times in several shapes",
            #"[{"id":1,"boss":{"id":9,"age":1}},{"name":"x","id":9},{"id":2,"boss":{"x":0,"name":"x","age":1,"id":"9"}}]"#,
            #"{"id":9,"name":"y","age":2}"#,
            becomes:
                #"[{"id":1,"boss":{"id":9,"age":2}},{"name":"y","id":9},{"id":2,"boss":{"x":0,"name":"y","age":2,"id":"9"}}]"#
        ),
        Case(
            "a cycle, to its depth",
            #"{"id":1,"name":"a","boss":{"id":2,"name":"b","boss":{"id":1,"name":"a"}}}"#,
            #"[{"id":1,"name":"A"},{"id":2,"name":"B"}]"#,
            becomes: #"{"id":1,"name":"A","boss":{"id":2,"name":"B","boss":{"id":1,"name":"A"}}}"#
        ),
        Case(
            "an object inside itself",
            #"{"id":1,"name":"a","boss":{"id":1,"name":"a","boss":{"id":1,"name":"a"}}}"#,
            #"{"id":1,"name":"b"}"#,
            becomes: #"{"id":1,"name":"b","boss":{"id":1,"name":"b","boss":{"id":1,"name":"b"}}}"#
        ),
        Case(
            "an object no longer inside itself",
            #"{"id":1,"name":"a","boss":{"id":1,"name":"a"}}"#,
            #"{"id":2,"name":"c"}"#,
            #"{"id":1,"name":"b","boss":2}"#,
            becomes: #"{"id":1,"name":"b","boss":{"id":2,"name":"c"}}"#
        ),
        Case(
            "what disagrees with itself keeps both literals",
            #"[{"id":1,"name":"a","age":1},{"id":1,"name":"b","age":1}]"#,
            becomes: Case.same
        ),
        Case(
            "… until something newer is known",
            #"[{"id":1,"name":"a","age":1},{"id":1,"name":"b","age":1}]"#,
            #"{"id":1,"name":"c"}"#,
            becomes: #"[{"id":1,"name":"c","age":1},{"id":1,"name":"c","age":1}]"#
        ),
        Case(
            "… and tells others nothing",
            #"{"id":1,"name":"z","age":0}"#,
            #"[{"id":1,"name":"a","age":1},{"id":1,"name":"b","age":1}]"#,
            becomes: #"{"id":1,"name":"z","age":1}"#
        ),
        Case(
            "… whatever was known before",
            #"{"id":5,"friends":[{"id":1,"name":"a"},{"id":1,"name":"b"}]}"#,
            #"{"id":1,"age":3}"#,
            becomes: Case.same
        ),
    ]

    @Test(arguments: members) func `members change in place, in the spelling in which they were received`(_ each: Case)
        throws
    {
        #expect(try each.shown() == each.after)
    }

    @Test(arguments: occurrences) func `an object is the same wherever the document shows it`(_ each: Case) throws {
        #expect(try each.shown() == each.after)
    }

    @Test func `the innermost of objects nested to the limit shows changes`() throws {
        // Each object is two levels: its own, and a member's.
        let depth = JSONScanner.maximumDepth - 1
        func nested(_ name: String) -> String {
            (0..<depth).map { #"{"id":\#($0),"boss":"# }.joined() + #"{"id":"last","name":"\#(name)"}"#
                + String(repeating: "}", count: depth)
        }
        var shelf = Shelf(try Circle.models())
        shelf.receive("a", nested("old"), "Person")
        shelf.receive("b", #"{"id":"last","name":"new"}"#, "Person")
        #expect(shelf.shown("a") == nested("new"))
    }
}
