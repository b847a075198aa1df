import Testing

@testable import Mapping

/// Law 5 to 7 to the letter, where objects refer to or hold others: the bytes of a document before and after, or the miss.
@Suite struct RelationRecompositionTests {
    typealias Case = RecompositionCase

    static let references = [
        Case(
            "a reference that changes is shown in the shape of the pinned one",
            #"{"id":1,"boss":{"id":2,"name":"b"}}"#,
            #"{"id":3,"age":30,"name":"c"}"#,
            #"{"id":1,"boss":{"id":3}}"#,
            becomes: #"{"id":1,"boss":{"id":3,"name":"c"}}"#
        ),
        Case(
            "order and white space are the document's",
            "{ \"id\":1,\t\"boss\" : { \"name\":\"b\" ,\r\n \"id\":2 } }\n",
            #"{"id":3,"name":"c"}"#,
            #"{"id":1,"boss":3}"#,
            becomes: "{ \"id\":1,\t\"boss\" : { \"name\":\"c\" ,\r\n \"id\":3 } }\n"
        ),
        Case(
            "of the new one a member is not known",
            #"{"id":1,"boss":{"id":2,"name":"b"}}"#,
            #"{"id":1,"boss":{"id":3,"age":1}}"#,
            becomes: Case.miss
        ),
        Case(
            "an undeclared member is never known of another",
            #"{"id":1,"boss":{"id":2,"x":1}}"#,
            #"{"id":3,"x":2}"#,
            #"{"id":1,"boss":{"id":3,"x":2}}"#,
            becomes: Case.miss
        ),
        Case(
            "nor is a local one",
            #"{"id":1,"boss":{"id":2,"rank":1}}"#,
            #"{"id":3,"rank":2}"#,
            #"{"id":1,"boss":3}"#,
            becomes: Case.miss
        ),
        Case(
            "back to what it was",
            #"{"id":1,"boss":{"id":2,"x":1}}"#,
            #"{"id":1,"boss":3}"#,
            #"{"id":1,"boss":2}"#,
            becomes: Case.same
        ),
        Case("bare stays bare", #"{"id":1,"boss":2}"#, #"{"id":1,"boss":{"id":3}}"#, becomes: #"{"id":1,"boss":3}"#),
        Case(
            "a bare string stays a string",
            #"{"id":1,"boss":"2"}"#,
            #"{"id":1,"boss":{"id":3}}"#,
            becomes: #"{"id":1,"boss":"3"}"#
        ),
        Case(
            "bare and object are one",
            #"{"id":1,"boss":{"id":2,"x":1}}"#,
            #"{"id":1,"boss":"2"}"#,
            becomes: Case.same
        ),
        Case(
            "an object becomes null",
            #"{"id":1,"boss":{"id":2}}"#,
            #"{"id":1,"boss":null}"#,
            becomes: #"{"id":1,"boss":null}"#
        ),
        Case("null becomes an object", #"{"id":1,"boss":null}"#, #"{"id":1,"boss":{"id":2}}"#, becomes: Case.miss),
        Case("null becomes a bare identity", #"{"id":1,"boss":null}"#, #"{"id":1,"boss":2}"#, becomes: Case.miss),
        Case("absent stays absent", #"{"id":1}"#, #"{"id":1,"boss":{"id":2}}"#, becomes: Case.same),
        Case(
            "the new one brings its own reference, in the shape of the old one's",
            #"{"id":1,"boss":{"id":2,"name":"b","boss":{ "id":4,"name":"d" }}}"#,
            #"{"id":3,"name":"c","boss":{"id":5,"name":"e"}}"#,
            #"{"id":1,"boss":3}"#,
            becomes: #"{"id":1,"boss":{"id":3,"name":"c","boss":{ "id":5,"name":"e" }}}"#
        ),
        Case(
            "the new one has none",
            #"{"id":1,"boss":{"id":2,"boss":{"id":4,"x":1}}}"#,
            #"{"id":3,"boss":null}"#,
            #"{"id":1,"boss":3}"#,
            becomes: #"{"id":1,"boss":{"id":3,"boss":null}}"#
        ),
        Case(
            "of the new one's own reference too little is known",
            #"{"id":1,"boss":{"id":2,"boss":{"id":4,"name":"d"}}}"#,
            #"{"id":3,"boss":5}"#,
            #"{"id":1,"boss":3}"#,
            becomes: Case.miss
        ),
        Case(
            "the new one is the object itself",
            #"{"id":1,"name":"a","boss":{"id":2,"name":"b"}}"#,
            #"{"id":1,"boss":1}"#,
            becomes: #"{"id":1,"name":"a","boss":{"id":1,"name":"a"}}"#
        ),
        Case(
            "a key path through a relation belongs to the related",
            #"{"id":1,"boss":{"id":2,"name":"b"}}"#,
            #"{"id":2,"name":"B"}"#,
            becomes: #"{"id":1,"boss":{"id":2,"name":"B"}}"#
        ),
        Case(
            "where everything of an object is shared, undeclared members move as well",
            #"{"id":1,"badge":{"id":1,"x":{"y":[1]},"seen":1}}"#,
            #"Badge {"id":1,"x":{"y":[2]},"seen":2}"#,
            becomes: #"{"id":1,"badge":{"id":1,"x":{"y":[2]},"seen":1}}"#
        ),
    ]

    static let embedded = [
        Case(
            "members one by one, undeclared ones stay",
            #"{"id":1,"home":{"street":"s","zip":1,"city":"c"}}"#,
            #"{"id":1,"home":{"zip":2,"city":"d"}}"#,
            becomes: #"{"id":1,"home":{"street":"s","zip":1,"city":"d"}}"#
        ),
        Case(
            "it becomes null",
            #"{"id":1,"home":{"street":"s","zip":1}}"#,
            #"{"id":1,"home":null}"#,
            becomes: #"{"id":1,"home":null}"#
        ),
        Case("null becomes one", #"{"id":1,"home":null}"#, #"{"id":1,"home":{"street":"s"}}"#, becomes: Case.miss),
        Case("an empty one", #"{"id":1,"home":{}}"#, #"{"id":1,"home":{"street":"s"}}"#, becomes: Case.same),
        Case(
            "a reference within it",
            #"{"id":1,"home":{"country":{"code":"fr","name":"F"}}}"#,
            #"Country {"code":"de","name":"D"}"#,
            #"{"id":1,"home":{"country":"de"}}"#,
            becomes: #"{"id":1,"home":{"country":{"code":"de","name":"D"}}}"#
        ),
        Case(
            "what one held that has gone is not known of the next",
            #"{"id":1,"home":{"street":"s","city":"c"}}"#,
            #"{"id":1,"home":{"street":"s","city":"d"}}"#,
            #"{"id":1,"home":null}"#,
            #"{"id":1,"home":{"street":"t"}}"#,
            becomes: #"{"id":1,"home":{"street":"t","city":"c"}}"#
        ),
        Case(
            "a list of them, by declared members only",
            #"{"id":1,"homes":[{"street":"s"},{"street":"t"}]}"#,
            #"{"id":1,"homes":[{"street":"t","zip":1},{"street":"u"}]}"#,
            becomes: #"{"id":1,"homes":[{"street":"t"},{"street":"u"}]}"#
        ),
        Case(
            "an undeclared member of a new one",
            #"{"id":1,"homes":[{"street":"s","zip":1}]}"#,
            #"{"id":1,"homes":[{"street":"t","zip":1}]}"#,
            becomes: Case.miss
        ),
    ]

    static let keyed = [
        Case(
            "one changes",
            #"{"id":1,"team":{"a":{"id":2,"name":"b"}}}"#,
            #"{"id":2,"name":"c"}"#,
            becomes: #"{"id":1,"team":{"a":{"id":2,"name":"c"}}}"#
        ),
        Case(
            "one appears, in the shape of the others",
            #"{"id":1, "team":{"a": {"id":2, "name":"b"}}}"#,
            #"{"id":3,"name":"c"}"#,
            #"{"id":1,"team":{"a":2,"\u0062":3}}"#,
            becomes: #"{"id":1, "team":{"a": {"id":2, "name":"b"}, "\u0062": {"id":3, "name":"c"}}}"#
        ),
        Case(
            "one vanishes",
            #"{"id":1,"team":{"a":{"id":2,"x":1},"b":{"id":3,"x":2}}}"#,
            #"{"id":1,"team":{"b":3}}"#,
            becomes: #"{"id":1,"team":{"b":{"id":3,"x":2}}}"#
        ),
        Case(
            "another stands under a name",
            #"{"id":1,"team":{"\u0061":{"id":2,"name":"b"},"z":{"id":4}}}"#,
            #"{"id":3,"name":"c"}"#,
            #"{"id":1,"team":{"a":3,"z":4}}"#,
            becomes: #"{"id":1,"team":{"\u0061":{"id":3,"name":"c"},"z":{"id":4}}}"#
        ),
        Case(
            "all vanish",
            #"{"id":1,"team":{ "a":{"id":2} }}"#,
            #"{"id":1,"team":{}}"#,
            becomes: #"{"id":1,"team":{}}"#
        ),
        Case("the first appears", #"{"id":1,"team":{}}"#, #"{"id":1,"team":{"a":{"id":2}}}"#, becomes: Case.miss),
        Case("null", #"{"id":1,"team":{"a":{"id":2}}}"#, #"{"id":1,"team":null}"#, becomes: #"{"id":1,"team":null}"#),
        Case("from null", #"{"id":1,"team":null}"#, #"{"id":1,"team":{"a":{"id":2}}}"#, becomes: Case.miss),
        Case(
            "in another order",
            #"{"id":1,"team":{"a":{"id":2},"b":{"id":3}}}"#,
            #"{"id":1,"team":{"b":3,"a":2}}"#,
            becomes: Case.same
        ),
    ]

    static let clusters = [
        Case(
            "each is read as what it is",
            #"{"id":1,"pets":[{"id":2,"bark":"w"},{"id":3,"purr":1}]}"#,
            #"Animal {"id":2,"bark":"W","name":"n"}"#,
            #"Animal {"id":3,"purr":2}"#,
            becomes: #"{"id":1,"pets":[{"id":2,"bark":"W"},{"id":3,"purr":2}]}"#
        ),
        Case(
            "one of another kind in the common shape",
            #"{"id":1,"pets":[{"id":2,"name":"a"}]}"#,
            #"Animal {"id":3,"name":"c","bark":"w"}"#,
            #"{"id":1,"pets":[2,3]}"#,
            becomes: #"{"id":1,"pets":[{"id":2,"name":"a"},{"id":3,"name":"c"}]}"#
        ),
        Case(
            "one of another kind lacks what the shape shows",
            #"{"id":1,"pets":[{"id":2,"bark":"w"}]}"#,
            #"Animal {"id":3,"purr":1}"#,
            #"{"id":1,"pets":[2,3]}"#,
            becomes: Case.miss
        ),
    ]

    @Test(arguments: references) func `changed references are shown, or the document is not composed`(_ each: Case)
        throws
    {
        #expect(try each.shown() == each.after)
    }

    @Test(arguments: embedded) func `objects without identity change as parts of their owner`(_ each: Case) throws {
        #expect(try each.shown() == each.after)
    }

    @Test(arguments: keyed) func `objects keyed by name change under their names`(_ each: Case) throws {
        #expect(try each.shown() == each.after)
    }

    @Test(arguments: clusters) func `objects of a cluster are composed by their concrete models`(_ each: Case) throws {
        #expect(try each.shown() == each.after)
    }
}
