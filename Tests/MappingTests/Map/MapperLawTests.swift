@testable import Mapping
import TestSupport
import Testing

@Suite struct MapperLawTests {
    /// The tracker's models once more, with conversions that have a way back.
    private func mapper() throws -> DocumentMapper {
        let string = ConversionDeclaration.values(
            [
                .init(wire: json("true"), mapped: json(#""yes""#)),
                .init(wire: json(#""text""#), mapped: json(#""words""#)),
            ],
            fallback: nil,
            reverseFallback: nil
        )
        return DocumentMapper(
            models: try Models([
                ModelDeclaration("User", identity: ["id"], Property("handle", "login"), Property("name")),
                ModelDeclaration("Label", identity: ["id"], Property("name")).with { $0.sharesAll = true },
                ModelDeclaration("Signature", Property("title", "name"), Property("user", one: "User")),
                ModelDeclaration(
                    "Issue",
                    identity: ["id"],
                    Property("headline", "title"),
                    Property("isOpen", "state", as: string),
                    Property("reporter", "user.login"),
                    Property("user", one: "User"),
                    Property("labels", many: "Label"),
                    Property("above", one: "Issue").with { $0.from = "parent" },
                    Property("signature", one: "Signature"),
                    Property("signatures", many: "Signature"),
                    Property("head.user", "head_user"),
                    Property("head", one: "Head")
                ),
                ModelDeclaration("Head", Property("branch", "ref"), Property("user", one: "User")),
            ])
        )
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `mapping, mapping back and mapping again gives the same mapped view`(seed: UInt64) throws {
        let mapper = try mapper()
        var generator = BodyGenerator(seed: seed &+ 900, isHostile: seed % 2 == 1)
        var tried = 0
        for _ in 0..<150 {
            let isList = generator.chance(50)
            let rule = BodyRule(model: "Issue", isList: isList)
            let body = Array(generator.body(isList: isList).utf8)
            let mapped = mapper.map(body, as: rule)
            #expect(isJSON(mapped.body), "seed \(seed): \(text(body))")
            // One of two members with one name has no way back.
            guard mapped.isMapped, !mapped.warnings.contains(where: { $0.kind == .keyCollision }) else { continue }
            tried += 1
            let wire = try mapper.unmap(mapped.body, as: rule, unconverted: mapped.unconverted)
            #expect(isJSON(wire.body), "seed \(seed): \(text(body))")
            let again = mapper.map(wire.body, as: rule)
            let (first, second) = (try #require(JSONSlice(mapped.body)), try #require(JSONSlice(again.body)))
            #expect(first.isEqual(to: second), "seed \(seed): \(text(body)) is \(text(wire.body))")
        }
        #expect(tried > 0)
    }

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a damaged body never traps, and its mapped view is JSON`(seed: UInt64) throws {
        let mapper = try mapper()
        var generator = BodyGenerator(seed: seed &+ 1900, isHostile: seed % 2 == 1)
        var random = SeededGenerator(seed: seed)
        let rule = BodyRule(model: "Issue", isList: true)
        for _ in 0..<100 {
            var body = Array(generator.body(isList: true).utf8)
            for _ in 0..<Int.random(in: 1...3, using: &random) where !body.isEmpty {
                body[Int.random(in: 0..<body.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let mapped = mapper.map(body, as: rule)
            #expect(mapped.isMapped ? isJSON(mapped.body) : mapped.body == body)
            _ = try? mapper.unmap(body, as: rule)
        }
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `unconverted properties are written back unchanged`(seed: UInt64) throws {
        let mapper = DocumentMapper(
            models: try Models([
                ModelDeclaration(
                    "Any",
                    Property("a"),
                    Property("b", "x.y"),
                    Property("c", "x.z[].n"),
                    Property("d", many: "Any")
                )
            ])
        )
        var generator = ValueGenerator(seed: seed)
        var returned = 0
        for _ in 0..<100 {
            let body = json(generator.object(depth: 4))
            let mapped = mapper.map(body, as: BodyRule(model: "Any", arity: .one))
            guard mapped.isMapped, mapped.warnings.isEmpty else { continue }
            returned += 1
            let wire = try mapper.unmap(mapped.body, as: BodyRule(model: "Any", arity: .one))
            let (received, written) = (try #require(JSONSlice(body)), try #require(JSONSlice(wire.body)))
            #expect(written.isEqual(to: received), "seed \(seed): \(text(body)) is \(text(wire.body))")
        }
        #expect(returned > 0)
    }

    @Test func `objects nested deeper than the mapped view goes are shown as they are`() throws {
        let mapper = DocumentMapper(
            models: try Models([
                ModelDeclaration("A", identity: ["id"], Property("inner", "a").with { $0.relation = .one("A") })
            ])
        )
        let depth = 400
        let body = String(repeating: #"{"a":"#, count: depth) + "1" + String(repeating: "}", count: depth)
        let mapped = mapper.map(json(body), as: BodyRule(model: "A", arity: .one))
        #expect(mapped.isMapped && mapped.warnings.contains { $0.kind == .tooDeep })
        let wire = try mapper.unmap(mapped.body, as: BodyRule(model: "A", arity: .one))
        #expect(text(wire.body) == body)
        let deepest = String(repeating: "[", count: 600) + String(repeating: "]", count: 600)
        #expect(!mapper.map(json(deepest), as: BodyRule(model: "A", arity: .many)).isMapped)
    }

    @Test func `an object with very many members is written back with each member once`() throws {
        let fixture = try MapperFixture(ModelDeclaration("K", Property("b")))
        let keyed = (0..<3000).map { #""m\#($0)":{"b":\#($0)}"# }.joined(separator: ",")
        let rule = BodyRule(model: "K", arity: .keyed)
        #expect(try fixture.unmap(fixture.map("{\(keyed)}", rule).body, rule) == "{\(keyed)}")
    }

    @Test(arguments: [
        #"{"":1,"a":2}"#, #"{"a":1,"a":2}"#, #"{"A":1,"a":2}"#, #"{"\u0061":2}"#, #"{"a.b":1,"a":2}"#,
        #"{"\ud800":1,"a":2}"#,
    ])
    func `odd member names neither crash the mapper nor confuse it`(body: String) throws {
        let fixture = try MapperFixture(ModelDeclaration("M", Property("a")))
        #expect(fixture.one(body, "M").body == #"{"a":2}"#)
    }

    private func isJSON(_ bytes: [UInt8]) -> Bool { (try? JSONIndex(bytes)) != nil }
}

/// Makes objects of members a, b, c, d, x, y, z and n.
private struct ValueGenerator {
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed &+ 77) }

    mutating func object(depth: Int) -> String {
        var members: [String] = []
        if one(in: 2) { members.append(#""a":\#(value(depth: depth - 1))"#) }
        if one(in: 2) {
            var inner = [#""y":\#(value(depth: depth - 1))"#]
            if one(in: 2) { inner.append(#""z":[\#(one(in: 2) ? #"{"n":1},{"n":null}"# : "")]"#) }
            members.append(#""x":{\#(inner.joined(separator: ","))}"#)
        }
        if one(in: 2), depth > 0 { members.append(#""d":[\#(object(depth: depth - 1)),null]"#) }
        return "{\(members.joined(separator: ","))}"
    }

    private mutating func value(depth: Int) -> String {
        ["null", "1.0", #""\u00e9""#, "[]", "{}", #"[{"n":[true]}]"#, #"{"q":{"y":1e400}}"#].randomElement(
            using: &random
        )!
    }

    private mutating func one(in count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }
}
