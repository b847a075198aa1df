import TestSupport

/// Makes JSON such as the tracker's, with everything that real APIs do to it.
struct BodyGenerator {
    private var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &random)! }

    /// A list of issues, or one.
    mutating func body(isList: Bool) -> String {
        space() + (isList ? array(Int.random(in: 0...4, using: &random)) { $0.issue(depth: 0) } : issue(depth: 0))
            + space()
    }

    private mutating func issue(depth: Int) -> String {
        var members: [(String, String)] = [("id", identity())]
        if chance(60) { members.append(("title", plain())) }
        if chance(40) { members.append(("state", plain())) }
        if chance(60) { members.append(("user", user())) }
        if chance(40) { members.append(("labels", array(Int.random(in: 0...3, using: &random)) { $0.label() })) }
        if chance(30), depth < 4 { members.append(("parent", chance(20) ? plain() : issue(depth: depth + 1))) }
        if chance(30) { members.append(("head", object([("ref", plain()), ("user", user()), ("x", plain())]))) }
        if chance(30) { members.append(("signature", object([("name", plain()), ("user", user())]))) }
        if chance(20) { members.append(("signatures", array(2) { $0.object([("user", $0.user())]) })) }
        if chance(30) { members.append(("undeclared", value(depth: 2))) }
        if chance(5) { members.append(("id", identity())) }
        if chance(5) { members.append(("title", plain())) }
        return object(members)
    }

    private mutating func user() -> String {
        if chance(15) { return identity() }
        return object([("id", identity()), ("login", plain())] + (chance(30) ? [("name", value(depth: 1))] : []))
    }

    private mutating func label() -> String {
        if chance(15) { return identity() }
        return object([("id", identity()), ("name", plain()), ("nested", value(depth: 2))])
    }

    private mutating func identity() -> String {
        pick([
            "1", "2", "3", "4.0", "5e0", #""x""#, #""a\"b""#, #""\u00e9""#, #""\ud800""#, "null", #""""#, "true", "[]",
        ])
    }

    private mutating func plain() -> String {
        pick([
            "null", "true", "0", "-0", "1.0", "1e400", "9007199254740993", "1.0e+10", #""""#, #""text""#, #""é\u00e9""#,
            #""\/\\\"\n""#, #""\ud83d\ude00""#, #""\ud800""#, #""]}[{""#, #""\\u0001""#, #""x\u0001""#, #""id""#,
        ])
    }

    private mutating func value(depth: Int) -> String {
        guard depth > 0, chance(50) else { return plain() }
        return chance(50)
            ? array(Int.random(in: 0...3, using: &random)) { $0.value(depth: depth - 1) }
            : object([("id", identity()), ("user", value(depth: depth - 1)), ("", plain())])
    }

    private mutating func object(_ members: [(String, String)]) -> String {
        let written = members.shuffled(using: &random).map { name, value in
            space() + spelled(name) + space() + ":" + space() + value + space()
        }
        return "{" + (written.isEmpty ? space() : written.joined(separator: ",")) + "}"
    }

    private mutating func array(_ count: Int, _ element: (inout BodyGenerator) -> String) -> String {
        let written = (0..<count).map { _ in space() + element(&self) + space() }
        return "[" + (written.isEmpty ? space() : written.joined(separator: ",")) + "]"
    }

    /// A name as it is, or with an escape in it.
    private mutating func spelled(_ name: String) -> String {
        guard chance(5), let first = name.utf8.first else { return "\"\(name)\"" }
        let digits = String(first, radix: 16)
        return "\"\\u00\(digits.count < 2 ? "0" : "")\(digits)\(name.dropFirst())\""
    }

    private mutating func space() -> String {
        chance(80) ? "" : pick([" ", "\n", "\t", "\r\n  ", "          "])
    }
}
