import TestSupport

@testable import Mapping

/// Makes models of everything that has a way back, and bodies for them.
///
/// Each member is read by one property, or by others besides that are only read or lie within it. Not among them is what
/// a config declares to have no way back: `one_way`, and `to:` another place.
struct InvertibleModels {
    private var random: SeededGenerator
    private var conversions: ConversionGenerator
    private(set) var declarations: [ModelDeclaration] = []
    private(set) var rule = BodyRule(model: "A", arity: .one)
    /// Members taken by properties of the model that is being made.
    private var count = 0

    static let context = MappingContext(
        url: "/repos/o",
        captures: ["owner": "o"],
        fields: ["etag": "\"e\""]
    )

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        conversions = ConversionGenerator(seed: seed &+ 1)
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &random)! }

    // MARK: Models

    /// The next models, with a rule for bodies of `A`.
    mutating func models() throws -> Models {
        var refusal: MappingError?
        for _ in 0..<200 {
            declarations = ["A", "B", "C", "D", "K", "K1", "K2", "E"].map { declaration($0) }
            rule = makeRule()
            do throws(MappingError) {
                return try Models(declarations)
            } catch {
                refusal = error
            }
        }
        throw refusal!
    }

    private mutating func makeRule() -> BodyRule {
        let (model, arity): (String, Arity) = (pick(["A", "B", "K"]), pick([.one, .many, .keyed]))
        guard chance(50) else { return BodyRule(model: model, arity: arity) }
        var rule = BodyRule(model: model, arity: arity, root: pick(["items", "data.items"]))
        if chance(60) { rule.envelope = "E" }
        if chance(40) { rule.also = [BodyRule(model: "B", arity: pick([.one, .many]), root: "users")] }
        return rule
    }

    private mutating func declaration(_ name: String) -> ModelDeclaration {
        var model = ModelDeclaration(name: name)
        count = 0
        switch name {
        case "C", "E": model.identity = []
        case "K1", "K2": model.base = "K"
        default:
            model.identity = pick([
                ["id"], ["id"], ["id", "m.dot"], ["@parent.id", "id"], ["@key"], ["@root.id", "@index"],
            ])
        }
        if name == "K" {
            model.properties.append(PropertyDeclaration(name: "type", from: "type"))
            model.choices = [
                ModelChoice(model: "K1", condition: .member("type", isOneOf: [json(#""one""#)])),
                ModelChoice(model: "K2", condition: chance(50) ? nil : .has("k2")),
            ]
            if chance(50) { model.choices.append(ModelChoice(model: "K", condition: nil)) }
        }
        if name == "K2" { model.properties.append(PropertyDeclaration(name: "k2", from: "k2")) }
        model.sharesAll = name != "C" && name != "E" && chance(15)
        model.naming = name != "C" && chance(30) ? .snakeCase(acronyms: ["PR"]) : .exact
        for _ in 0..<Int.random(in: 2...5, using: &random) { addProperty(to: &model) }
        return model
    }

    private mutating func addProperty(to model: inout ModelDeclaration) {
        count += 1
        let prefix = model.base == nil ? model.name.lowercased() : model.name.lowercased() + "x"
        let (name, member) = ("\(prefix)p\(count)", "\(prefix)m\(count)")
        switch count == 1 ? 0 : Int.random(in: 0..<16, using: &random) {
        case 0...2: model.properties.append(plain(name, member))
        case 3:
            model.properties.append(plain(name, "\(member).x"))
            if chance(50) { model.properties.append(plain(name + "b", "\(member).y.z")) }
            if chance(20) { model.properties.append(PropertyDeclaration(name: name + "c", from: member)) }
        case 4: model.properties.append(plain(name, "\(member)\\.d"))
        case 5:
            model.properties.append(PropertyDeclaration(name: name, from: "\(member)list[].v"))
            if chance(50) {
                model.properties.append(PropertyDeclaration(name: name + "b", from: "\(member)list[].w.x"))
            }
        case 6:
            var property = PropertyDeclaration(name: name, from: name)
            property.parts = [
                .init(name: "x", from: "\(member).x"), .init(name: "y", from: "\(member)y"),
                .init(name: "z", from: pick(["@url", "@parent.note", "@root.total", "@index", "\(member).z"])),
            ]
            model.properties.append(property)
        case 7, 8:
            let source = pick([
                "@url", "@url.owner", "@header.etag", "@index", "@key", "@parent.note", "@parent.id", "@root.total",
                "@root.meta.page", "@parent.am1", "@parent.bm1.x", "@root.id",
            ])
            model.properties.append(PropertyDeclaration(name: name, from: source))
        case 9...11: addRelation(name, member, to: &model)
        case 12:
            model.properties.append(
                PropertyDeclaration(name: name, from: "@self", relation: .one("C"))
            )
        case 13 where model.naming != .exact:
            model.properties.append(
                PropertyDeclaration(name: pick(["avatarURL", "openPRCount", "fullName"]), from: "")
            )
        case 14:
            // What is only read comes back by the one that is written.
            var written = plain(name, member)
            (written.checks, written.coerces, written.conversion) = ([], false, nil)
            model.properties.append(written)
            var read = PropertyDeclaration(name: name + "also", from: member)
            read.output = .none
            model.properties.append(read)
        default:
            model.properties.append(PropertyDeclaration(name: name, from: pick(["note", "total", "meta.page"])))
        }
    }

    private mutating func addRelation(_ name: String, _ member: String, to model: inout ModelDeclaration) {
        let other = pick(["A", "B", "C", "D", "K"])
        let relation: Relation = pick([.one(other), .many(other), .keyed(other)])
        let source =
            switch relation.arity {
            case .many: pick([member, "\(member).list", "\(member)[].inner", "@parent.\(member)"])
            default: pick([member, "\(member).it", "@parent.\(member)"])
            }
        model.properties.append(PropertyDeclaration(name: name, from: source, relation: relation))
        switch relation.arity {
        // Seen through `@self` by who shares all, a child's own value and the one that completes it are two.
        case .one where model.name != "C" && chance(40):
            // What completes the child, and what is read through it.
            let completed = PropertyDeclaration(name: "\(name).\(other.lowercased())p1", from: "\(member)w")
            model.properties.append(completed)
        case .one where source == member && chance(50):
            model.properties.append(PropertyDeclaration(name: name + "via", from: "\(member).\(other.lowercased())m1"))
        case .many where source == member && chance(50):
            model.properties.append(
                PropertyDeclaration(name: name + "via", from: "\(member)[].\(other.lowercased())m1")
            )
        default: break
        }
    }

    private mutating func plain(_ name: String, _ source: String) -> PropertyDeclaration {
        var property = PropertyDeclaration(name: name, from: source)
        if chance(40) { property.conversion = conversions.conversion() }
        if chance(15) { property.coerces = true }
        if chance(15), property.conversion == nil {
            property.checks = [pick([.type([.string, .null]), .length(minimum: 0, maximum: 2), .notNull])]
        }
        if chance(15), property.checks.isEmpty { property.defaultValue = json(pick([#""text""#, "null", "1"])) }
        return property
    }

    // MARK: Bodies

    /// A body such as the rule speaks of, with this and that amiss.
    mutating func body() -> String {
        var content: Tree
        switch rule.arity {
        case .one: content = chance(5) ? .list([object(of: rule.model, 0)]) : object(of: rule.model, 0)
        case .many: content = chance(5) ? object(of: rule.model, 0) : list(of: rule.model, 0)
        case .keyed: content = keyed(of: rule.model, 0)
        }
        guard let root = rule.root else { return text(content) }
        if chance(5) { content = .text("null") }
        var body = rule.envelope.map { object(of: $0, 0) } ?? .object([])
        if chance(50) { set(.text(plain()), at: [.name("total")], in: &body) }
        if chance(50) { set(.object([("page", .text(plain()))]), at: [.name("meta")], in: &body) }
        set(content, at: KeyPathSyntax.steps(of: root)![...], in: &body)
        for other in rule.also {
            let value = other.arity == .one ? object(of: other.model, 0) : list(of: other.model, 0)
            set(value, at: [.name("users")], in: &body)
        }
        return text(body)
    }

    private indirect enum Tree {
        case object([(String, Tree)])
        case list([Tree])
        case text(String)
    }

    private func model(_ name: String) -> ModelDeclaration { declarations.first { $0.name == name }! }

    private mutating func object(of name: String, _ depth: Int) -> Tree {
        var object = Tree.object([])
        var name = name
        if name == "K" {
            name = pick(["K", "K1", "K2"])
            if name == "K1" { set(.text(#""one""#), at: [.name("type")], in: &object) }
            if name == "K2" { set(.text("1"), at: [.name("k2")], in: &object) }
        }
        if chance(90) { set(.text(identity()), at: [.name("id")], in: &object) }
        if chance(40) { set(.text(plain()), at: [.name("note")], in: &object) }
        var properties = model(name).properties
        if let base = model(name).base { properties += model(base).properties }
        for property in properties where chance(80) { add(property, to: &object, depth) }
        if chance(20) { set(.text(plain()), at: [.name("undeclared")], in: &object) }
        return object
    }

    private mutating func add(_ property: PropertyDeclaration, to object: inout Tree, _ depth: Int) {
        for source in property.parts.isEmpty ? [property.from] : property.parts.map(\.from) {
            if property.isItself {
                for own in model("C").properties where chance(80) { add(own, to: &object, depth) }
                return
            }
            guard !ContextValue.isSpelled(source) else { continue }
            if source.isEmpty {
                // Spelled as the property itself it would be found too, and come back in snake case.
                let member = MemberNaming(.snakeCase(acronyms: ["PR"])).output(for: property.name)
                set(.text(plain()), at: [.name(member)], in: &object)
                continue
            }
            let value = value(of: property, depth)
            set(value, at: KeyPathSyntax.steps(of: source)![...], in: &object)
        }
    }

    private mutating func value(of property: PropertyDeclaration, _ depth: Int) -> Tree {
        if chance(6) { return .text("null") }
        if chance(3) { return .text(plain()) }
        guard depth < 3 else { return .text("null") }
        if property.from.contains("[]"), let relation = property.relation, relation.arity == .many {
            return one(of: relation.model, depth)
        }
        if let relation = property.relation {
            switch relation.arity {
            case .one: return one(of: relation.model, depth)
            case .many: return list(of: relation.model, depth + 1)
            case .keyed: return keyed(of: relation.model, depth + 1)
            }
        }
        guard let conversion = property.conversion else { return .text(plain()) }
        return .text(conversions.value(for: conversion))
    }

    private mutating func one(of model: String, _ depth: Int) -> Tree {
        chance(15) ? .text(identity()) : object(of: model, depth + 1)
    }

    private mutating func list(of model: String, _ depth: Int) -> Tree {
        .list((0..<Int.random(in: 0...3, using: &random)).map { _ in one(of: model, depth) })
    }

    private mutating func keyed(of model: String, _ depth: Int) -> Tree {
        .object(
            ["a.txt", "", "\u{E9}", "e\u{301}", "a/b", "1"].filter { _ in chance(30) }.map {
                ($0, one(of: model, depth))
            }
        )
    }

    /// Lays a value at a path; a list that is not there yet gets two elements.
    private mutating func set(_ value: Tree, at path: ArraySlice<PathStep>, in tree: inout Tree) {
        guard let step = path.first else {
            tree = value
            return
        }
        switch (step, tree) {
        case (.name(let name), .object(var members)):
            var inner: Tree
            if let index = members.firstIndex(where: { $0.0.utf8.elementsEqual(name.utf8) }) {
                inner = members.remove(at: index).1
            } else {
                inner = path.dropFirst().first == .elements ? .list([.object([]), .object([])]) : .object([])
            }
            set(value, at: path.dropFirst(), in: &inner)
            members.append((name, inner))
            tree = .object(members)
        case (.elements, .list(var elements)):
            for index in elements.indices where chance(80) { set(value, at: path.dropFirst(), in: &elements[index]) }
            tree = .list(elements)
        default: break
        }
    }

    private mutating func identity() -> String { pick(["1", "2", "3", #""x""#, #""7""#, "4.0"]) }

    private mutating func plain() -> String {
        pick([
            "null", "true", "0", "1.0", "1", "1e400", "9007199254740993", #""""#, #""text""#, #""\u00e9""#, "[]", "{}",
            #"[1,"a"]"#, #"{"x":1,"":null}"#, #""one""#, #""2020-01-01T00:00:00Z""#,
        ])
    }

    private mutating func text(_ tree: Tree) -> String {
        switch tree {
        case .text(let text): return text
        case .list(let elements): return "[\(elements.map { text($0) }.joined(separator: ","))]"
        case .object(let members):
            var members = members.shuffled(using: &random)
            // What occurs twice decides nothing, and once written back it does.
            if chance(3), let one = members.first, one.0 != "type", one.0 != "k2" {
                members.append((one.0, .text(plain())))
            }
            let written = members.map { name, value in
                let first = name.utf8.first.map { String($0, radix: 16) } ?? ""
                let spelled =
                    chance(5) && name.utf8.count > 1 && first.count == 2 ? "\\u00\(first)\(name.dropFirst())" : name
                return "\"\(spelled)\":\(text(value))"
            }
            return "{\(written.joined(separator: ","))}"
        }
    }
}
