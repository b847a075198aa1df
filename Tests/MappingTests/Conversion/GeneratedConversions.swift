import TestSupport

@testable import Mapping

/// Makes conversions of every kind, and values that they take.
struct ConversionGenerator {
    private var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &random)! }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    // MARK: Conversions

    /// One that has a way back; lists, dictionaries and chains to some depth.
    mutating func conversion(depth: Int = 2) -> ConversionDeclaration {
        if depth > 0, chance(40) {
            switch number(0...2) {
            case 0: return .arrayOf(conversion(depth: depth - 1))
            case 1: return .dictionaryOf(conversion(depth: depth - 1))
            default: return .chain(chain())
            }
        }
        return pick(Self.plain)
    }

    /// Links each of which takes what the one before shows.
    private mutating func chain() -> [ConversionDeclaration] {
        switch number(0...3) {
        case 0: [.named("base64"), pick([.named("string"), Self.words])]
        case 1: [pick([.date(.unixSeconds), .date(.unixMilliseconds)]), .named("date")]
        case 2: [Self.words, Self.letters]
        default: [.arrayOf(.named("base64")), .arrayOf(Self.words), .arrayOf(Self.letters)]
        }
    }

    static let words = ConversionDeclaration.enumeration([
        .init(wire: "open", mapped: "opened"), .init(wire: "closed", mapped: "done"), .init(wire: "", mapped: "none"),
    ])
    private static let letters = ConversionDeclaration.values(
        [
            .init(wire: json(#""opened""#), mapped: json("1")), .init(wire: json(#""done""#), mapped: json("[2]")),
            .init(wire: json(#""none""#), mapped: json("null")),
        ],
        fallback: nil,
        reverseFallback: nil
    )
    private static let plain: [ConversionDeclaration] = [
        .named("string"), .named("boolean"), .named("integer"), .named("decimal"), .named("date"), .named("url"),
        .named("uuid"), .named("base64"), .date(.unixSeconds), .date(.unixMilliseconds),
        .date(.pattern("MMMM d, yyyy", zone: "America/Los_Angeles")),
        .date(.pattern("yyyy-MM-dd'T'HH:mm:ss", zone: "Asia/Kathmandu")), .date(.pattern("d.M.yyyy", zone: "UTC")),
        .number(grouping: ",", decimal: "."), .number(grouping: ".", decimal: ","),
        .number(grouping: " ", decimal: ","),
        .firstOf([.named("boolean"), .number(grouping: ",", decimal: "."), words]),
        words,
        .values(
            [.init(wire: json("1"), mapped: json(#""one""#)), .init(wire: json("null"), mapped: json(#""no""#))],
            fallback: nil,
            reverseFallback: nil
        ),
    ]

    // MARK: Values

    /// A value that a conversion takes.
    mutating func value(for conversion: ConversionDeclaration) -> String {
        switch conversion {
        case .arrayOf(let element):
            return "[\((0..<number(0...3)).map { _ in value(for: element) }.joined(separator: ","))]"
        case .dictionaryOf(let element):
            let names = ["a", "", "a.b", "\\u00e9", "\u{E9}", "e\u{301}", "a"].filter { _ in chance(30) }
            return "{\(names.map { "\"\($0)\":\(value(for: element))" }.joined(separator: ","))}"
        case .chain(let links): return value(forChain: links)
        case .firstOf(let alternatives): return value(for: pick(alternatives))
        case .named(let name): return value(named: name)
        case .date(.pattern("MMMM d, yyyy", _)):
            return "\"\(pick(["January", "May", "September"])) \(number(1...28)), \(number(1583...9998))\""
        case .date(.pattern("d.M.yyyy", _)): return "\"\(number(1...28)).\(number(1...12)).\(number(1583...9998))\""
        case .date(.pattern):
            return
                "\"\(number(1900...2200))-0\(number(1...9))-1\(number(0...9))T1\(number(0...9)):2\(number(0...9)):05\""
        case .date(.unixMilliseconds):
            return pick(["", "-"]) + "\(number(1...60_000_000_000))" + pick(["", ".5", ".000001"])
        case .date:
            return pick(["", "-"]) + "\(number(1...60_000_000_000))" + pick(["", ".5", ".000001", ".123456789012"])
        case .number(let grouping, let decimal):
            let groups = (0..<number(0...3)).map { _ in grouping + "\(number(100...999))" }.joined()
            return "\"\(pick(["", "-"]))\(number(1...999))\(groups)\(chance(50) ? decimal + "\(number(0...9))5" : "")\""
        case .values(let pairs, _, _): return text(pick(pairs).wire)
        case .oneWay(let inner, _): return value(for: inner)
        }
    }

    private mutating func value(forChain links: [ConversionDeclaration]) -> String {
        switch (links[0], links.count) {
        case (.named("base64"), _) where links[1] == Self.words: pick([#""b3Blbg==""#, #""Y2xvc2Vk""#, #""""#])
        case (.arrayOf, _): pick(["[]", #"["b3Blbg=="]"#, #"["","Y2xvc2Vk"]"#])
        case (let first, _): value(for: first)
        }
    }

    private mutating func value(named name: String) -> String {
        switch name {
        case "string": pick([#""""#, #""a""#, #""\u00e9\/""#, #""\ud83d\ude00""#, "\"\u{E9}\""])
        case "boolean": pick(["true", "false"])
        case "integer": pick(["0", "-1", "9007199254740993", "12345678901234567890", "5e3", "2.0"])
        case "decimal": pick(["0.1", "-2.50", #""12.30""#, "1e400", "10"])
        case "url": pick([#""https://a.example/b?c=%20#d""#, #""mailto:a@b.example""#, #""urn:x:\u00e9""#])
        case "uuid": pick([#""123e4567-e89b-12d3-a456-426614174000""#, #""FFFFFFFF-0000-0000-0000-00000000000A""#])
        case "base64": pick([#""""#, #""Zm9v""#, #""Zm8=""#, #""Zg==""#, #""w6k=""#])
        default:
            "\"\(number(1000...9999))-0\(number(1...9))-1\(number(0...9))T2\(number(0...3)):0\(number(0...9)):59"
                + pick(["", ".5", ".123456789"]) + pick(["Z\"", "+05:45\"", "-00:00\""])
        }
    }

    // MARK: Coercions

    /// What `coerce: true` takes, and for which conversion.
    mutating func coercible() -> (declaration: ConversionDeclaration, value: String) {
        pick([
            (.named("boolean"), #""yes""#), (.named("boolean"), #""F""#), (.named("boolean"), #""0""#),
            (.named("integer"), #""-5""#), (.named("integer"), #""69726278940360707""#),
            (.named("decimal"), #""1.50""#),
            (.named("string"), "1.0"), (.named("string"), "true"), (.named("string"), "-7"),
            (.arrayOf(.named("string")), #""a""#), (.arrayOf(.named("integer")), "7"),
            (.arrayOf(Self.words), #""open""#),
            (.chain([.named("string"), .named("string")]), "12"),
        ])
    }
}
