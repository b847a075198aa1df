import TestSupport

/// Makes JSON such as the tracker's, with everything that real APIs do to it.
struct BodyGenerator {
    private var random: SeededGenerator
    /// Whether it goes beyond what a tracker would send: names that look alike, identities of every kind, other types than
    /// expected.
    private let isHostile: Bool

    init(seed: UInt64, isHostile: Bool = false) {
        random = SeededGenerator(seed: seed)
        self.isHostile = isHostile
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func oddly(_ percent: Int) -> Bool { isHostile && chance(percent) }

    mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &random)! }

    /// A list of issues, or one.
    mutating func body(isList: Bool) -> String {
        space() + (isList ? array(Int.random(in: 0...4, using: &random)) { $0.issue(depth: 0) } : issue(depth: 0))
            + space()
    }

    private mutating func issue(depth: Int) -> String {
        var members: [(String, String)] = [("id", identity())]
        if chance(60) { members.append(("title", plain())) }
        if chance(40) { members.append(("state", oddly(20) ? #""deleted""# : plain())) }
        if oddly(30) { members.append(("number", identity())) }
        if oddly(30) { members.append(("updated_at", moment())) }
        if chance(60) { members.append(("user", user(depth: 0))) }
        if chance(40) { members.append(("labels", labels())) }
        if chance(30), depth < 4 { members.append(("parent", chance(20) ? plain() : issue(depth: depth + 1))) }
        if chance(30) { members.append(("head", head())) }
        if chance(30) { members.append(("signature", object([("name", plain()), ("user", user(depth: 0))]))) }
        if chance(20) { members.append(("signatures", array(2) { $0.object([("user", $0.user(depth: 0))]) })) }
        if oddly(20) { members.append(("matrix", array(2) { $0.array(2) { $0.label() } })) }
        if oddly(20) { members.append(("files", files())) }
        if chance(30) { members.append(("undeclared", value(depth: 2))) }
        for name in ["a.b", "", "Title", "TITLE", "caf\u{E9}", "cafe\u{301}", "a[]", "~1/~0", "@key"] where oddly(6) {
            members.append((name, value(depth: 1)))
        }
        if chance(5) { members.append(("id", identity())) }
        if chance(5) { members.append(("title", plain())) }
        if oddly(3) { members.append(("user", user(depth: 0))) }
        return object(members)
    }

    private mutating func head() -> String {
        oddly(10) ? value(depth: 1) : object([("ref", plain()), ("user", user(depth: 0)), ("x", plain())])
    }

    /// A user, who may have another one within, or be within himself.
    private mutating func user(depth: Int) -> String {
        if chance(15) { return identity() }
        if oddly(5) { return plain() }
        var members = [("id", identity()), ("login", plain())]
        if chance(30) { members.append(("name", value(depth: 1))) }
        if oddly(15) { members.append(("updated_at", moment())) }
        if oddly(15) { members.append(("token", plain())) }
        if depth < 3, oddly(20) { members.append(("manager", user(depth: depth + 1))) }
        if oddly(4) { members.append(("login", plain())) }
        return object(members)
    }

    private mutating func labels() -> String {
        if oddly(8) { return value(depth: 1) }
        return array(Int.random(in: 0...3, using: &random)) { $0.label() }
    }

    private mutating func label() -> String {
        if chance(15) { return identity() }
        if oddly(5) { return chance(50) ? "null" : array(1) { $0.label() } }
        return object([("id", identity()), ("name", plain()), ("nested", value(depth: 2))])
    }

    /// Labels by name, some under odd ones.
    private mutating func files() -> String {
        object(
            ["a.txt", "1", "", "\u{E9}", "e\u{301}", "a:b"].filter { _ in chance(30) }
                .map { ($0, chance(10) ? "null" : label()) }
        )
    }

    private mutating func moment() -> String {
        pick([
            #""2020-01-01T00:00:00Z""#, #""2020-01-01T00:00:00.5Z""#, #""2021-06-01T02:00:00+02:00""#, "7", "8.5",
            "null",
            #""soon""#,
        ])
    }

    private mutating func identity() -> String {
        if oddly(40) {
            return pick([
                "1", "2", "3", #""1""#, #""2""#, "-1", "-2.50", "-0", "0", "1.0", #""-1""#, #""é""#, "\"e\u{301}\"",
                #""a:b""#, "false", "{}", "1e400", "12345678901234567890123", Self.longIdentity,
            ])
        }
        return pick([
            "1", "2", "3", "4.0", "5e0", #""x""#, #""a\"b""#, #""\u00e9""#, #""\ud800""#, "null", #""""#, "true", "[]",
        ])
    }

    private static let longIdentity = "\"\(String(repeating: "x", count: 600))\""

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
