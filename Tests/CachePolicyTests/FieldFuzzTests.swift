import TestSupport
import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics

/// Generated field lines through the parsers, held against a strict reading of the same bytes.
///
/// `make fuzz` runs it for longer. What fails says its seed and round: `make fuzz SEED=…` repeats it.
@Suite struct FieldFuzzTests {
    /// Field lines made of what is right, what is nearly right, and noise.
    private struct Lines {
        var random: SeededGenerator

        mutating func pick(_ choices: [String]) -> String { choices.randomElement(using: &random) ?? "" }

        /// One line or several, with a byte changed here and there.
        mutating func lines(_ line: (inout Lines) -> String) -> [[UInt8]] {
            (0..<(random.chance(1, in: 4) ? 2 : 1)).map { _ in mutated(Array(line(&self).utf8)) }
        }

        mutating func mutated(_ value: [UInt8]) -> [UInt8] {
            var value = value
            while random.chance(1, in: 4) {
                let index = Int.random(in: 0...value.count, using: &random)
                let noise: [UInt8] = random.chance(1, in: 2) ? Array("\"\"\\,= 0;*'".utf8) : Array(0...255)
                switch Int.random(in: 0..<3, using: &random) {
                case 0 where index < value.count: value.remove(at: index)
                case 1 where index < value.count: value[index] = noise.randomElement(using: &random) ?? 0
                default: value.insert(noise.randomElement(using: &random) ?? 0, at: index)
                }
            }
            // As the parser of messages gives them: no line ends, no NUL, no blanks at the ends.
            return Array(FieldSyntax.trimmed(value.filter { $0 != 0x0D && $0 != 0x0A && $0 != 0 }[...]))
        }

        mutating func control() -> String {
            var line = ""
            for _ in 0..<Int.random(in: 0...5, using: &random) {
                line += pick([
                    "max-age", "max-age", "MAX-AGE", "s-maxage", "no-store", "No-Cache", "private", "public",
                    "must-understand",
                    "must-revalidate", "max-stale", "min-fresh", "foo", "\"x\"", "é", "", "immutable", "stale-if-error",
                ])
                line += pick([
                    "", "", "=60", "=60", "=3600", "=\"60\"", "='60'", " =60", "= 60", "=60.0", "=-1", "=0060", "=0",
                    "=99999999999999999999", "=\"a, max-age=0\"", "=\"a, max-age=60", "=\"60", "=60\"", "=\"6\\0\"",
                    "=", "=x-a",
                    "=\"x-a, x-b\"", "=\"\"", "=\"\\\"\"", "=\"a\\\", b\"", "; x",
                ])
                line += pick([", ", ", ", ",", " ,", ",,", "; ", " ", "\t,\t"])
            }
            return line
        }

        mutating func date() -> String {
            let seconds = exampleDate + Int64.random(in: -200_000...200_000, using: &random)
            let imf = HTTPDate.format(seconds)
            let text = String(decoding: imf, as: UTF8.self)
            let (day, month, year, time) = (
                text.dropFirst(5).prefix(2), text.dropFirst(8).prefix(3), text.dropFirst(12).prefix(4),
                text.dropFirst(17).prefix(8)
            )
            return pick([
                text, text, text, text.lowercased(), "Sunday, \(day)-\(month)-\(year.suffix(2)) \(time) GMT",
                "Sun \(month) \(day.first == "0" ? " \(day.suffix(1))" : String(day)) \(time) \(year)",
                "Sun \(month) \(day) \(time) \(year)",
                "Sunday, \(day)-\(month)-\(Int.random(in: 10...99, using: &random)) \(time) GMT",
                text.replacing("GMT", with: pick(["UTC", "EST", "+0000", "Z"])), text.replacing(" 0", with: " "), "0",
                "-1",
                "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 29 Feb 1996 23:59:60 GMT", "Wed, 29 Feb 1995 00:00:00 GMT", "",
            ])
        }

        mutating func age() -> String {
            pick([
                "0", "5", "100", "100, 5", ", 100", "-100", "+100", "100.0", "100;a", "\"100\"", "x", "99999999999999",
                "0100", "",
            ])
        }

        mutating func answer() -> Fields {
            var fields = Fields()
            func add(_ name: String, _ values: [[UInt8]]) {
                fields.lines += values.map { Field(name: Array(name.utf8), value: $0) }
            }
            if random.chance(4, in: 5) { add("Cache-Control", lines { $0.control() }) }
            if random.chance(1, in: 2) { add("Expires", lines { $0.date() }) }
            if random.chance(3, in: 4) { add("Date", lines { $0.date() }) }
            if random.chance(1, in: 2) { add("Age", lines { $0.age() }) }
            if random.chance(1, in: 2) { add("Last-Modified", lines { $0.date() }) }
            return fields
        }
    }

    private static let statuses = [200, 200, 201, 204, 302, 404, 410, 500, 599]

    @Test(arguments: Fuzzing.seeds)
    func `no response is stored or fresh against a strict reading of its fields`(_ seed: UInt64) {
        var lines = Lines(random: SeededGenerator(seed: seed))
        let strict = StrictReading()
        for round in 0..<Fuzzing.rounds(600) {
            let fields = lines.answer()
            let isShared = Bool.random(using: &lines.random)
            let status = Self.statuses.randomElement(using: &lines.random) ?? 200
            var settings = CachePolicySettings()
            settings.isShared = isShared
            let policy = ResponsePolicy(
                request: request(),
                status: status,
                fields: fields,
                times: ExchangeTimes(request: exampleDate, response: exampleDate),
                settings: settings
            )
            let label: Comment =
                "seed \(seed), round \(round), \(isShared ? "shared" : "private"), \(status): \(Self.shown(fields))"
            let bound = strict.freshness(fields, status: status, isShared: isShared, now: exampleDate)
            if case .fresh(_, let timeToLive) = policy.stored.reuse(at: exampleDate, for: .none) {
                #expect(timeToLive <= bound, label)
                #expect(!strict.forbids("no-cache", fields), label)
            }
            if policy.storability == .yes {
                #expect(!strict.forbids("no-store", fields) || strict.mustUnderstand(fields), label)
                if isShared { #expect(!strict.forbids("private", fields), label) }
            }
            #expect(policy.stored.lifetime >= 0 && policy.stored.initialAge >= 0, label)
            #expect(StoredPolicy(bytes: policy.stored.bytes) == policy.stored, label)
        }
    }

    @Test(arguments: Fuzzing.seeds)
    func `no request is granted more than a strict reading of its directives`(_ seed: UInt64) {
        var lines = Lines(random: SeededGenerator(seed: seed))
        let strict = StrictReading()
        for round in 0..<Fuzzing.rounds(600) {
            let values = lines.lines { $0.control() }
            let fields = Fields(values.map { Field(name: Array("Cache-Control".utf8), value: $0) })
            let directives = RequestDirectives(fields: fields)
            let members = strict.members(values)
            let label: Comment = "seed \(seed), round \(round): \(Self.shown(fields))"
            if let seconds = StrictReading.seconds("max-age", in: members) {
                #expect((0...seconds).contains(directives.maxAge), label)
            }
            let grants = members.filter { $0.name == "max-stale" }
            let granted = grants.map { member in
                member.isClear ? member.argument.map { StrictReading.number($0) ?? 0 } ?? .max : 0
            }.min()
            #expect(directives.maxStale <= granted ?? 0, label)
            if members.contains(where: { $0.name == "no-cache" }) { #expect(directives.noCache, label) }
            if members.contains(where: { $0.name == "no-store" }) { #expect(directives.noStore, label) }
            if let request = members.filter({ $0.name == "min-fresh" }).map({
                StrictReading.number($0.argument ?? "") ?? 0
            }).max() {
                #expect(directives.minFresh >= request, label)
            }
        }
    }

    @Test(arguments: Fuzzing.seeds)
    func `a date is read where the strict reading reads it, and as the same moment`(_ seed: UInt64) {
        var lines = Lines(random: SeededGenerator(seed: seed))
        let strict = StrictReading()
        for round in 0..<Fuzzing.rounds(600) {
            let value = lines.mutated(Array(lines.date().utf8))
            let date = HTTPDate.parse(value, now: exampleDate)
            #expect(
                date == strict.date(value, now: exampleDate),
                "seed \(seed), round \(round): \(StrictReading.text(value))"
            )
        }
    }

    /// RFC 9651, as one pattern.
    @Test(arguments: Fuzzing.seeds)
    func `a targeted field counts only where it is a structured dictionary`(_ seed: UInt64) throws {
        var lines = Lines(random: SeededGenerator(seed: seed))
        let key = "[a-z*][a-z0-9_.*-]*"
        let item =
            "(?:-?[0-9]{1,15}|-?[0-9]{1,12}\\.[0-9]{1,3}|\"(?:[ !#-\\[\\]-~]|\\\\[\"\\\\])*\"|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*"
            + "|:[A-Za-z0-9+/=]*:|\\?[01]|@-?[0-9]{1,15}|%\"[ -~]*\")"
        let parameters = "(?:; *\(key)(?:=\(item))?)*"
        let list = "\\( *(?:\(item)\(parameters)(?: +\(item)\(parameters))*)? *\\)"
        let member = "\(key)(?:=(?:\(item)|\(list)))?\(parameters)"
        let dictionary = try Regex(" *\(member)(?:[ \\t]*,[ \\t]*\(member))*[ \\t]*").matchingSemantics(.unicodeScalar)
        var counted = 0
        for round in 0..<Fuzzing.rounds(600) {
            let values = lines.lines { $0.control().lowercased() }
            guard TargetedDirectives.parse(values) != nil else { continue }
            counted += 1
            let text = values.map(StrictReading.text).joined(separator: ", ")
            #expect(text.wholeMatch(of: dictionary) != nil, "seed \(seed), round \(round): \(text)")
        }
        #expect(counted > 0)
    }

    private static func shown(_ fields: Fields) -> String {
        fields.lines.map { "\(StrictReading.text($0.name)): \(StrictReading.text($0.value))" }.joined(separator: " | ")
    }
}
