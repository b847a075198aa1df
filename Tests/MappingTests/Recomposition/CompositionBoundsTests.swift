import Testing

@testable import Mapping

/// Documents and objects that expect the worst of the composer: it ends soon, with the right bytes or with a miss.
@Suite struct CompositionBoundsTests {
    private func people(_ names: [String]) -> String {
        "[" + names.enumerated().map { #"{"id":\#($0),"name":"\#($1)"}"# }.joined(separator: ",") + "]"
    }

    @Test func `an object that refers to itself twice, shown nested, does not multiply`() throws {
        var shelf = Shelf(try Circle.models())
        let nested =
            (0..<60).map { _ in #"{"id":1,"friends":["# }.joined() + #"{"id":1}"# + String(repeating: "]}", count: 60)
        shelf.receive("a", nested, "Person")
        shelf.receive("b", #"{"id":1,"friends":[1,1]}"#, "Person")
        #expect(shelf.shown("a") == "?")
    }

    @Test func `objects that refer to each other in a circle do not multiply`() throws {
        var shelf = Shelf(try Circle.models())
        let nested =
            (0..<60).map { #"{"id":\#($0 % 3),"name":"n","friends":["# }.joined() + #"{"id":0,"name":"n"}"#
            + String(repeating: "]}", count: 60)
        shelf.receive("a", nested, "Person")
        for id in 0..<3 { shelf.receive("\(id)", #"{"id":\#(id),"friends":[0,1,2]}"#, "Person") }
        #expect(shelf.shown("a") == "?")
    }

    @Test func `a list with too many new elements of a large shape is not composed`() throws {
        var shelf = Shelf(try Circle.models())
        let large = String(repeating: "x", count: 20_000)
        shelf.receive("a", #"{"id":"p","friends":[{"id":0,"name":"\#(large)"}]}"#, "Person")
        shelf.receive("all", people((0..<1000).map { "\($0)" + large.prefix(2_000) }), "Person", list: true)
        shelf.receive("b", #"{"id":"p","friends":[\#((0..<1000).map(String.init).joined(separator: ","))]}"#, "Person")
        #expect(shelf.shown("a") == "?")
    }

    @Test func `a document with very many references is composed`() throws {
        var shelf = Shelf(try Circle.models())
        let count = 5_000
        var names = (0..<count).map { "n\($0)" }
        shelf.receive("all", people(names), "Person", list: true)
        shelf.receive("one", #"{"id":4999,"name":"new"}"#, "Person")
        names[4999] = "new"
        #expect(shelf.shown("all") == people(names))
    }

    @Test func `a list of a hundred thousand bare identities shows changes`() throws {
        var shelf = Shelf(try Circle.models())
        let ids = (1...100_000).map(String.init)
        shelf.receive("a", #"{"id":"p","friends":[\#(ids.joined(separator: ","))]}"#, "Person")
        let other = ids.dropFirst().reversed() + ["x"].map { _ in "\"x\"" }
        shelf.receive("b", #"{"id":"p","friends":[\#(other.joined(separator: ", "))]}"#, "Person")
        #expect(shelf.shown("a") == #"{"id":"p","friends":[\#(other.joined(separator: ","))]}"#)
    }

    @Test func `a list of many objects without identity shows changes, or is not composed`() throws {
        var shelf = Shelf(try Circle.models())
        let streets = (0..<3_000).map { #"{"street":"s\#($0)"}"# }
        shelf.receive("a", #"{"id":1,"homes":[\#(streets.joined(separator: ","))]}"#, "Person")
        let others = streets.reversed() + [#"{"street":"new"}"#]
        shelf.receive("b", #"{"id":1,"homes":[\#(others.joined(separator: ","))]}"#, "Person")
        #expect(shelf.shown("a") == #"{"id":1,"homes":[\#(others.joined(separator: ","))]}"#)
        // All of them new: whether or not it is worth the effort, it is right.
        let new = (0..<3_000).map { #"{"street":"t\#($0)"}"# }
        shelf.receive("c", #"{"id":1,"homes":[\#(new.joined(separator: ","))]}"#, "Person")
        #expect(["?", #"{"id":1,"homes":[\#(new.joined(separator: ","))]}"#].contains(shelf.shown("a")))
    }

    @Test func `many objects keyed by name show changes`() throws {
        var shelf = Shelf(try Circle.models())
        let team = (0..<5_000).map { #""k\#($0)":\#($0)"# }
        shelf.receive("a", #"{"id":"p","team":{\#(team.joined(separator: ","))}}"#, "Person")
        shelf.receive("b", #"{"id":"p","team":{\#(team.dropFirst().joined(separator: ","))}}"#, "Person")
        #expect(shelf.shown("a") == #"{"id":"p","team":{\#(team.dropFirst().joined(separator: ","))}}"#)
    }

    @Test func `an object in thousands of shapes in one response has few sources, and each shape shows changes`() throws
    {
        var shelf = Shelf(try Circle.models())
        let count = 5_000
        let body = "[" + (0..<count).map { #"{"id":1,"x\#($0)":0,"name":"a"}"# }.joined(separator: ",") + "]"
        shelf.receive("a", body, "Person", list: true)
        let name = ObjectName(model: "Person", identity: "1")
        #expect(shelf.shown("a") == "=")
        shelf.receive("b", #"{"id":1,"name":"b"}"#, "Person")
        #expect(shelf.shown("a") == body.replacing(#""a""#, with: #""b""#))
        #expect(shelf.states[name]?.knowledge.sources.count ?? 0 <= 2)
    }

    @Test func `an object with a different value in each of very many places is not observed`() throws {
        var shelf = Shelf(try Circle.models())
        shelf.receive("before", #"{"id":1,"name":"z"}"#, "Person")
        let body = "[" + (0..<5_000).map { #"{"id":1,"name":"n\#($0)"}"# }.joined(separator: ",") + "]"
        shelf.receive("a", body, "Person", list: true)
        #expect(shelf.shown("before") == "=")
        #expect(shelf.states[ObjectName(model: "Person", identity: "1")]?.knowledge.sources.count ?? 0 <= 2)
    }

    @Test func `however many overlapping reads disagree, little is kept`() throws {
        var shelf = Shelf(try Circle.models())
        for number in 0..<200 {
            shelf.receive(
                "d\(number)",
                #"{"id":1,"name":"n\#(number)","age":\#(number)}"#,
                "Person",
                start: Int64(number),
                end: Int64(number) + 1_000
            )
        }
        let state = shelf.states[ObjectName(model: "Person", identity: "1")]
        #expect(state?.knowledge.sources.count ?? 0 <= 4)
    }

    @Test func `an object of ten megabytes is shared, and a nested value of that size is compared`() throws {
        var shelf = Shelf(try Circle.models())
        let large = String(repeating: "y", count: 10_000_000)
        shelf.receive("a", #"{"id":1,"name":"\#(large)","age":1}"#, "Person")
        shelf.receive("b", #"{"id":1,"name":"\#(large)z","age":2}"#, "Person")
        #expect(shelf.shown("a") == #"{"id":1,"name":"\#(large)z","age":2}"#)
    }

    @Test func `an id that changes its type names the same object; null or an object is no id`() throws {
        var shelf = Shelf(try Circle.models())
        shelf.receive(
            "a",
            #"[{"id":7,"name":"a"},{"id":null,"name":"b"},{"id":{"x":7},"name":"c"}]"#,
            "Person",
            list: true
        )
        shelf.receive("b", #"{"id":"7","name":"A"}"#, "Person")
        shelf.receive("c", #"{"id":null,"name":"B"}"#, "Person")
        shelf.receive("d", #"{"id":{"x":7},"name":"C"}"#, "Person")
        #expect(shelf.shown("a") == #"[{"id":7,"name":"A"},{"id":null,"name":"b"},{"id":{"x":7},"name":"c"}]"#)
    }

    @Test func `one id under two models is two objects`() throws {
        var shelf = Shelf(try Circle.models())
        shelf.receive(
            "person",
            #"{"id":7,"name":"a","badge":{"id":7,"name":"b"},"pets":[{"id":7,"name":"c","bark":1}]}"#,
            "Person"
        )
        shelf.receive("other", #"{"id":7,"name":"B"}"#, "Badge")
        #expect(
            shelf.shown("person")
                == #"{"id":7,"name":"a","badge":{"id":7,"name":"B"},"pets":[{"id":7,"name":"c","bark":1}]}"#
        )
    }
}
