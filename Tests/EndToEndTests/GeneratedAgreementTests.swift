import Foundation
import TestSupport
import Testing

/// The wire and the mapped view, SQL, `/objects`, a stream and `larder map` agree on every value of generated objects.
///
/// One config has a cluster for each form of a discriminator, as a property or not. Each object is shown by a response of its own,
/// in a list, and by a bare identity, alone, in an object, in a list, by name and by a key.
@Suite(.scripts) struct GeneratedAgreementTests: ModelFixtures {
    private static let conditions = [
        "{ member: type, is: org }", "{ has: type }", "{ any: [ { member: type, is: [org, team] }, { has: seats } ] }",
        "{ not: { not: { member: type, is: org } } }", "{ all: [ { has: meta }, { member: meta.kind, is: 1 } ] }",
    ]
    private static let standings = ["", ", kind: type", "local"]
    private static let families = conditions.flatMap { condition in standings.map { (condition, $0) } }

    @Test(arguments: [1, 2] as [UInt64])
    func `all surfaces agree on every value, whatever the models and the bodies`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let families = Self.families.enumerated().map {
            Family(number: $0.offset, condition: $0.element.0, standing: $0.element.1, &generator)
        }
        var bodies: [String: String] = [:]
        for family in families {
            for (id, isOrg) in [(7, true), (8, false)] {
                bodies["/accs\(family.number)/\(id)"] = family.body(id, isOrg: isOrg, &generator)
            }
            // The list lacks what decides, and changes some of the values.
            let listed = [7, 8].map { family.body($0, isOrg: nil, &generator) }
            bodies["/accs\(family.number)"] = "[\(listed.joined(separator: ","))]"
            bodies["/holders\(family.number)"] = Self.holder
        }
        let (_, larder) = try Self.daemon(
            "models:\n\(families.map(\.models).joined(separator: "\n"))\nroutes:\n"
                + families.map(\.routes).joined(separator: "\n"),
            bodies
        )
        let streams = try families.map { try Follower(larder, "/holders\($0.number)", Self.mapped) }
        for family in families {
            for path in [7, 8].map({ "/accs\(family.number)/\($0)" }) { _ = try larder.get(path, Self.mapped) }
        }
        // Now every object is known, and the values in the lists are newer.
        for family in families { _ = try larder.get("/accs\(family.number)") }
        for family in families { try expectAgreement(family, larder, streams[family.number], seed) }
    }

    private static let holder =
        #"{"id":1,"bare":7,"lone":{"id":8},"many":[8,7],"keyed":{"a":7,"b":{"id":8}},"key":"login8"}"#

    private func expectAgreement(_ family: Family, _ larder: Larder, _ stream: Follower, _ seed: UInt64) throws {
        let number = family.number
        let models = "seed \(seed): \(family.models)"
        var shared: [Int: [String: Any]] = [:]
        for (id, isOrg) in [(7, true), (8, false)] {
            let path = "/accs\(number)/\(id)"
            let view = try larder.get(path, Self.mapped).text
            let wire = try larder.get(path)
            #expect(wire.isHit)
            #expect(try Self.map(larder, path, wire.text).output == view, "\(models)")
            let shown = try object(view)
            let model = isOrg ? "Org\(number)" : "Person\(number)"
            let listing = try object(try Self.object(larder, "\(model)/\(id)"))
            let listed = try #require(
                (listing["objects"] as? [[String: Any]])?.first?["object"] as? [String: Any],
                "\(models)"
            )
            // What the response does not show, another may have shown.
            for property in family.properties(isOrg: isOrg) where !family.isOwn(property.name) {
                guard let value = shown[property.name] else { continue }
                #expect(
                    Self.text(listed[property.name]) == Self.text(value),
                    "\(property.declaration) of \(id), \(models)"
                )
            }
            let columns = family.properties(isOrg: isOrg).filter { !$0.isFromContext }
            let names = columns.map { "coalesce(\"\($0.name)\", '-')" }.joined(separator: " || char(9) || ")
            let row = try larder.sql("SELECT \(names) FROM \(model) WHERE id = \(id)").first ?? ""
            for (property, column) in zip(columns, row.split(separator: "\t", omittingEmptySubsequences: false)) {
                #expect(
                    String(column) == Self.column(listed[property.name]),
                    "\(property.declaration) of \(id) in SQL, \(models)"
                )
            }
            shared[id] = listed.filter { name, _ in !family.isOwn(name) }
        }
        let view = try larder.get("/holders\(number)", Self.mapped).text
        #expect(stream.wait(for: view), "\(models)")
        let holder = try object(view)
        let (many, keyed) = (holder["many"] as? [Any], holder["keyed"] as? [String: Any])
        for (id, shown) in [
            (7, holder["bare"]), (8, holder["lone"]), (8, many?.first), (7, many?.last), (7, keyed?["a"]),
            (8, keyed?["b"]),
            (8, holder["key"]),
        ] {
            let related = (shown as? [String: Any])?.filter { name, _ in !family.isOwn(name) }
            #expect(Self.text(related) == Self.text(shared[id]), "\(id) in \(view), \(models)")
        }
        #expect(Self.text(holder["login"]) == Self.text(shared[7]?["login"]), "\(models)")
    }

    private func object(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
    }

    private static func text(_ value: Any?) -> String {
        guard let value else { return "absent" }
        let data = try? JSONSerialization.data(withJSONObject: value, options: [.fragmentsAllowed, .sortedKeys])
        return String(decoding: data ?? Data(), as: UTF8.self)
    }

    /// How SQL shows a value.
    private static func column(_ value: Any?) -> String {
        switch value {
        case nil, is NSNull: "-"
        case let text as String: text
        default: text(value).replacing("true", with: "1").replacing("false", with: "0")
        }
    }
}

/// A cluster with generated properties, and what holds objects of it.
private struct Family {
    struct Property {
        var name: String
        var declaration: String
        /// A member's JSON; nil for none.
        var value: @Sendable (inout SeededGenerator) -> String?
        var isMerged = false
        var isFromContext = false
    }

    let number: Int
    let condition: String
    let standing: String
    let shared: [Property]
    let org: [Property]
    let person: [Property]

    init(number: Int, condition: String, standing: String, _ generator: inout SeededGenerator) {
        (self.number, self.condition, self.standing) = (number, condition, standing)
        shared = Self.properties("s", count: 2, &generator)
        org = Self.properties("o", count: 3, &generator)
        person = Self.properties("p", count: 2, &generator)
    }

    private static func properties(_ prefix: String, count: Int, _ generator: inout SeededGenerator) -> [Property] {
        (0..<count).map { index in
            let name = "\(prefix)\(index)"
            let forms: [(String, [String], Bool, Bool)] = [
                ("m_\(name)", ["1", "\"a b\"", "true", "2.50", "\"ß\""], false, false),
                ("m_\(name).in", ["{\"in\":1}", "{\"in\":\"x\",\"out\":2}", "{}"], false, false),
                ("{ from: m_\(name), as: { date: unix } }", ["0", "1352813496"], false, false),
                (
                    "{ from: m_\(name), as: { enum: { open: 1, closed: 2 } } }", ["\"open\"", "\"closed\""], false,
                    false
                ),
                ("{ from: m_\(name), merge: replace }", ["{\"a\":1}", "[1,2]", "3"], false, false),
                ("{ from: m_\(name), merge: keep }", ["1", "2", "\"k\""], true, false),
                ("{ from: m_\(name), merge: union }", ["[1,2]", "[3]"], true, false),
                ("{ from: m_\(name), merge: sum }", ["1", "2.5"], true, false),
                ("\"@url\"", [], false, true),
            ]
            let (declaration, values, isMerged, isFromContext) = generator.pick(forms)
            return Property(
                name: name,
                declaration: "\(name): \(declaration)",
                value: { generator in
                    guard let value = values.isEmpty ? nil : generator.pick(values) else { return nil }
                    guard !generator.once(in: 5) else { return nil }
                    return "\"m_\(name)\":\(generator.once(in: 6) ? "null" : value)"
                },
                isMerged: isMerged,
                isFromContext: isFromContext
            )
        }
    }

    func properties(isOrg: Bool) -> [Property] { shared + (isOrg ? org : person) }

    /// Whether a property belongs to its response.
    func isOwn(_ name: String) -> Bool {
        (shared + org + person).contains { $0.name == name && ($0.isMerged || $0.isFromContext) }
    }

    /// An object; with what decides about its model, unless `isOrg` is nil.
    func body(_ id: Int, isOrg: Bool?, _ generator: inout SeededGenerator) -> String {
        let isOfOrg = isOrg ?? (id == 7)
        var members = ["\"id\":\(id)", "\"login\":\"login\(id)\""]
        // Some conditions ask only whether there is a `type`.
        if isOrg == true { members += ["\"type\":\"org\"", "\"meta\":{\"kind\":1}"] }
        members += (isOfOrg ? shared + org : shared + person).compactMap { $0.value(&generator) }
        return "{\(members.joined(separator: ","))}"
    }

    var models: String {
        func list(_ properties: [Property]) -> String { properties.map(\.declaration).joined(separator: ", ") }
        let kind = standing.hasPrefix(",") ? standing : ""
        let local = standing == "local" ? ", local: [type, meta]" : ""
        return """
              Acc\(number): { identity: id, keys: [login], properties: { login: login\(kind), \(list(shared)) }\(local), cluster: [ { model: Org\(number), if: \(condition) }, { model: Person\(number) } ] }
              Org\(number): { base: Acc\(number), properties: { \(list(org)) } }
              Person\(number): { base: Acc\(number), properties: { \(list(person)) } }
              Holder\(number): { identity: id, properties: { bare: { from: bare, model: Acc\(number) }, lone: { from: lone, model: Acc\(number) }, many: { from: many, models: Acc\(number) }, keyed: { from: keyed, keyed: Acc\(number) }, key: { from: key, model: Acc\(number), by: login }, login: bare.login } }
            """
    }

    var routes: String {
        """
          - { path: "accs\(number)/{id:#}", model: Acc\(number) }
          - { path: accs\(number), model: [Acc\(number)] }
          - { path: holders\(number), model: Holder\(number) }
        """
    }
}
