@testable import Mapping
import Testing

/// The order of what `merge: union` joins.
@Suite struct UnionTests {
    /// One answer that shows the list.
    struct Response: Sendable, CustomStringConvertible {
        var list: String
        var start: Int64
        var end: Int64
        var kind = Observation.Kind.detail

        var description: String { "\(kind)[\(start),\(end)]\(list)" }
    }

    private static func models(_ relation: Relation? = nil) throws -> Models {
        try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [Wire.property("tags", nil, relation, merge: .union)]
            ),
            ModelDeclaration(name: "Tag", identity: ["id"], properties: [Wire.property("name")]),
        ])
    }

    /// What the list is known as, for responses that arrive in this order.
    private static func known(_ answers: [Response], _ relation: Relation? = nil) throws -> String {
        let models = try models(relation)
        var state = ObjectState()
        for (index, answer) in answers.enumerated() {
            let sequence = Int64(index + 1)
            let contribution = Contribution(
                observation: Observation(
                    sequence: sequence,
                    start: answer.start,
                    end: answer.end,
                    kind: answer.kind
                ),
                version: sequence,
                payload: json("{\"id\":1,\"tags\":\(answer.list)}"),
                origin: sequence
            )
            _ = state.merge(contribution, model: "Thing", models: models, lag: 0)
        }
        // As it comes back from a store.
        #expect(GatheredValues(bytes: state.gathered.bytes) == state.gathered)
        let whole = try #require(state.plainJSON(model: "Thing", models: models))
        let tags = try #require(JSONSlice(whole)?.value(at: ["tags"]))
        return text(Array(tags.bytes))
    }

    private static func orders(_ answers: [Response]) -> [[Response]] {
        guard answers.count > 1 else { return [answers] }
        return answers.indices.flatMap { index in
            var rest = answers
            let first = rest.remove(at: index)
            return orders(rest).map { [first] + $0 }
        }
    }

    @Test(arguments: [
        // Apart: those of the earlier answer first, each list in its own order.
        (
            [
                Response(list: #"["d","b"]"#, start: 0, end: 5), Response(list: #"["c"]"#, start: 10, end: 15),
                Response(list: #"["a"]"#, start: 20, end: 25),
            ],
            #"["d","b","c","a"]"#
        ),
        // Overlapping: that of a read is what was asked for first, however long it took.
        (
            [
                Response(list: #"["d","b"]"#, start: 0, end: 90), Response(list: #"["c"]"#, start: 10, end: 15),
                Response(list: #"["a"]"#, start: 12, end: 30),
            ],
            #"["d","b","c","a"]"#
        ),
        // A write is as new as its response.
        (
            [
                Response(list: #"["w"]"#, start: 0, end: 20, kind: .write),
                Response(list: #"["b"]"#, start: 10, end: 90),
                Response(list: #"["a"]"#, start: 30, end: 40),
            ],
            #"["b","w","a"]"#
        ),
        // An element stands where it was first seen, in its first spelling.
        (
            [
                Response(list: #"["x","\u0062","c"]"#, start: 0, end: 5),
                Response(list: #"["c","b","y"]"#, start: 10, end: 15),
                Response(list: #"["z","y","x"]"#, start: 20, end: 25),
            ],
            #"["x","\u0062","c","y","z"]"#
        ),
        // Within one list the first of two that are the same counts.
        (
            [Response(list: "[2,1,2.0,3]", start: 0, end: 5), Response(list: "[3,4,1]", start: 10, end: 15)],
            "[2,1,3,4]"
        ),
        // Of lists that were asked for at one instant nothing is earlier: then by position, and there by the bytes.
        (
            [
                Response(list: #"["b","y"]"#, start: 0, end: 9), Response(list: #"["c","x"]"#, start: 0, end: 5),
                Response(list: #"["a"]"#, start: 0, end: 7),
            ],
            #"["a","b","c","x","y"]"#
        ),
        ([Response(list: "[1.0,8]", start: 0, end: 9), Response(list: "[1,7]", start: 0, end: 5)], "[1,7,8]"),
    ])
    func `elements are in the order in which they were first seen, whichever response arrived first`(
        answers: [Response],
        expected: String
    ) throws {
        for order in Self.orders(answers) {
            #expect(try Self.known(order) == expected, "\(order)")
        }
    }

    @Test func `related objects are placed where they were first named, whole or by identity`() throws {
        let answers = [
            Response(list: #"[5,"3"]"#, start: 0, end: 90), Response(list: #"["\u0001Tag:4",3]"#, start: 10, end: 15),
            Response(list: #"["\u0001Tag:5","\u0001Tag:2"]"#, start: 20, end: 25),
        ]
        for order in Self.orders(answers) {
            #expect(try Self.known(order, .many("Tag")) == #"[5,"3",4,2]"#, "\(order)")
        }
    }
}
