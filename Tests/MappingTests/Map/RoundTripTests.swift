import TestSupport
import Testing

@testable import Mapping

/// That what is shown comes back: map, unmap, map gives what the first map gave.
@Suite struct RoundTripTests {
    /// Not held to the law, since the mapped view does not tell it: objects of which nothing is left but what is around
    /// them.
    @Test(arguments: 0..<10 as Range<UInt64>)
    func `mapping back and mapping again gives the same mapped view, or a warning points to each loss`(seed: UInt64)
        throws
    {
        var generator = InvertibleModels(seed: seed)
        var (tried, stable) = (0, 0)
        for _ in 0..<30 {
            let mapper = DocumentMapper(models: try generator.models())
            let rule = generator.rule
            for _ in 0..<12 {
                let body = Array(generator.body().utf8)
                let mapped = mapper.map(body, as: rule, in: InvertibleModels.context)
                guard mapped.isMapped else { continue }
                tried += 1
                var back = try mapper.unmap(
                    mapped.body,
                    as: rule,
                    in: InvertibleModels.context,
                    synthetic: mapped.synthetic,
                    unconverted: mapped.unconverted
                )
                // What did not fit gives a warning both ways, and is not lost.
                back.warnings.removeAll { $0.kind == .conversionFailed }
                #expect(back.warnings.allSatisfy { $0.pointer != nil }, "seed \(seed): \(text(body))")
                let again = mapper.map(back.body, as: rule, in: InvertibleModels.context)
                guard back.warnings.isEmpty, !again.warnings.contains(where: { $0.kind == .nothingMapped }) else {
                    continue
                }
                stable += 1
                let isStable = try #require(JSONSlice(mapped.body)).isEqual(to: try #require(JSONSlice(again.body)))
                #expect(
                    isStable,
                    """
                    seed \(seed): \(text(body)) as \(rule)
                    shown     \(text(mapped.body))
                    came back \(text(back.body))
                    and is    \(text(again.body))
                    \(generator.declarations.map { "\($0)" }.joined(separator: "\n"))
                    """
                )
            }
        }
        #expect(stable * 10 >= tried * 8, "seed \(seed): \(stable) of \(tried)")
    }

    private func fixture() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                "Order",
                identity: ["id"],
                Property("title"),
                Property("lines", many: "Line"),
                Property("tags", "tags[].name")
            ),
            ModelDeclaration(
                "Line",
                identity: ["@parent.id", "no"],
                Property("no"),
                Property("orderTitle", "@parent.title"),
                Property("currency", "@root.meta.currency"),
                Property("place", "@index"),
                Property("from", "@parent.address").with { $0.relation = .one("Address") }
            ),
            ModelDeclaration("Address", Property("town", "city"))
        )
    }

    @Test func `a value read from around an object is written back there, unless something else writes it`() throws {
        let fixture = try fixture()
        let body = #"{"id":1,"lines":[{"no":1},{"no":2}],"address":{"city":"Ulm"},"title":"x"}"#
        let rule = BodyRule(model: "Order", arity: .one, root: "order")
        let whole = #"{"order":\#(body),"meta":{"currency":"EUR"}}"#
        let shown = fixture.map(whole, rule)
        #expect(shown.warnings.isEmpty)
        #expect(
            shown.body
                == #"{"id":1,"title":"x","lines":["#
                + #"{"parent_id":1,"no":1,"orderTitle":"x","currency":"EUR","place":0,"from":{"town":"Ulm"}},"#
                + #"{"parent_id":1,"no":2,"orderTitle":"x","currency":"EUR","place":1,"from":{"town":"Ulm"}}]}"#
        )
        let back = try fixture.mapper.unmap(json(shown.body), as: rule)
        #expect(back.warnings.isEmpty)
        #expect(JSONSlice(back.body)!.isEqual(to: JSONSlice(json(whole))!), "\(text(back.body))")
    }

    @Test func `of several contradicting values the first is written back, and the others are reported`() throws {
        let fixture = try fixture()
        let rule = BodyRule(model: "Order", arity: .one)
        func back(_ shown: String) throws -> (body: String, warnings: [String]) {
            let back = try fixture.mapper.unmap(json(shown), as: rule)
            return (text(back.body), back.warnings.map { "\($0.kind.rawValue) \($0.pointer ?? "")" })
        }
        // What the object has itself comes before what objects within it say.
        var found = try back(
            #"{"id":1,"title":"own","lines":[{"no":1,"orderTitle":"own"},{"no":2,"orderTitle":"other"}]}"#
        )
        #expect(found.body == #"{"id":1,"title":"own","lines":[{"no":1},{"no":2}]}"#)
        #expect(found.warnings == ["not-written /lines/1/orderTitle"])
        found = try back(#"{"lines":[{"parent_id":3,"orderTitle":"a"},{"parent_id":4,"orderTitle":"a"}]}"#)
        #expect(found.body == #"{"lines":[{},{}],"id":3,"title":"a"}"#)
        #expect(found.warnings == ["not-written /lines/1/parent_id"])
        // Objects that say different parts of one are joined.
        found = try back(#"{"lines":[{"currency":1,"from":{}},{"currency":1.0,"from":{"town":"Ulm"}},{"from":null}]}"#)
        #expect(found.body == #"{"lines":[{},{},{}],"meta":{"currency":1},"address":{"city":"Ulm"}}"#)
        #expect(found.warnings == ["not-written /lines/2/from"])
    }

    @Test func `a position that the list cannot reproduce, and a missing outer object, are reported`()
        throws
    {
        let fixture = try fixture()
        let back = try fixture.mapper.unmap(
            json(#"{"id":1,"lines":[{"no":2,"place":1},{"no":3,"place":1}]}"#),
            as: BodyRule(model: "Order", arity: .one)
        )
        #expect(back.warnings.map(\.pointer) == ["/lines/0/place"])
        let line = try fixture.mapper.unmap(
            json(#"{"parent_id":7,"no":1,"currency":"EUR"}"#),
            as: BodyRule(model: "Line", arity: .one)
        )
        #expect(text(line.body) == #"{"no":1,"meta":{"currency":"EUR"}}"#)
        #expect(line.warnings.map(\.kind) == [.notWritten] && line.warnings.map(\.pointer) == ["/parent_id"])
        let keyed = try MapperFixture(ModelDeclaration("F", Property("name", "@key"), Property("size")))
        let shown = #"{"a":{"name":"a","size":1},"b":{"name":"c","size":2}}"#
        let files = try keyed.mapper.unmap(json(shown), as: BodyRule(model: "F", arity: .keyed))
        #expect(text(files.body) == #"{"a":{"size":1},"b":{"size":2}}"#)
        #expect(files.warnings.map(\.pointer) == ["/b/name"])
    }

    @Test func `a value inside another property's output is filled in, and reported if the two differ`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("A", Property("meta"), Property("page", "meta.page"), Property("size", "meta.size"))
        )
        #expect(try fixture.unmap(#"{"meta":{ "page" : 1 },"page":1.0}"#, "A") == #"{"meta":{ "page" : 1 }}"#)
        let back = try fixture.mapper.unmap(
            json(#"{"meta":{"page":1},"page":2,"size":3}"#),
            as: BodyRule(model: "A", arity: .one)
        )
        #expect(text(back.body) == #"{"meta":{"page":1,"size":3}}"#)
        #expect(back.warnings.map(\.pointer) == ["/page"])
    }

    @Test func `a default within a child that another member would complete is not written back`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Cat", Property("home", one: "Home"), Property("home.city", "last_city")),
            ModelDeclaration("Home", Property("city").with { $0.defaultValue = json(#""x""#) }, Property("street"))
        )
        let body = #"{"home":{"street":"a"}}"#
        #expect(fixture.one(body, "Cat").body == #"{"home":{"city":"x","street":"a"}}"#)
        #expect(try fixture.unmap(fixture.one(body, "Cat").body, "Cat") == body)
    }
}
