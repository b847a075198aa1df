import DaemonTestSupport
import Glibc

@testable import HTTPSemantics

/// The cache fields of a response as their grammar has them, and everything doubtful taken for the worst: a plain reading
/// that the parsers may be stricter than, and never more generous.
struct StrictReading {
    /// One member of `Cache-Control`.
    struct Member {
        var name: String
        /// Without quotes and escapes; nil where there is none.
        var argument: String?
        /// Whether it is a directive to the letter, behind no stray quote.
        var isClear: Bool
    }

    private let blanks = #/^[ \t,]+/#.matchingSemantics(.unicodeScalar)
    private let directive =
        #/^([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"((?:[^"\\]|\\.)*)"))?[ \t]*(?=,|$)/#
        .matchingSemantics(.unicodeScalar).dotMatchesNewlines()
    private let garbledArgument = #/^[!#$%&'*+.^_`|~0-9A-Za-z-]+="(?:[^"\\]|\\.)*"/#.matchingSemantics(.unicodeScalar)
        .dotMatchesNewlines()
    private let name = #/^[!#$%&'*+.^_`|~0-9A-Za-z-]+/#.matchingSemantics(.unicodeScalar)
    private let imfFixdate = #/^(?:mon|tue|wed|thu|fri|sat|sun), (\d\d) ([a-z]{3}) (\d{4}) (\d\d):(\d\d):(\d\d) gmt$/#
        .matchingSemantics(.unicodeScalar).asciiOnlyDigits()
    private let rfc850 =
        #/^(?:mon|tues|wednes|thurs|fri|satur|sun)day, (\d\d)-([a-z]{3})-(\d\d) (\d\d):(\d\d):(\d\d) gmt$/#
        .matchingSemantics(.unicodeScalar).asciiOnlyDigits()
    private let asctime = #/^(?:mon|tue|wed|thu|fri|sat|sun) ([a-z]{3}) ([ \d]\d) (\d\d):(\d\d):(\d\d) (\d{4})$/#
        .matchingSemantics(.unicodeScalar).asciiOnlyDigits()

    /// Each byte as the code point of its number.
    static func text(_ bytes: [UInt8]) -> String { String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) })) }

    func members(_ lines: [[UInt8]]) -> [Member] {
        var rest = lines.map(Self.text).joined(separator: ", ")[...]
        var members: [Member] = []
        var isInDoubt = false
        while true {
            if let match = rest.prefixMatch(of: blanks) { rest = rest[match.range.upperBound...] }
            if rest.unicodeScalars.isEmpty { return members }
            if let match = rest.prefixMatch(of: directive) {
                let quoted = match.2 == nil ? match.3.map { String($0) } : nil
                let argument = match.2.map { String($0) } ?? quoted.map(Self.unescaped)
                members.append(Member(name: match.1.lowercased(), argument: argument, isClear: !isInDoubt))
                rest = rest[match.range.upperBound...]
                continue
            }
            // No directive: what it might have meant counts against it, up to the next comma.
            var junk = rest[...]
            if let match = rest.prefixMatch(of: garbledArgument) { junk = rest[match.range.upperBound...] }
            let end = junk.unicodeScalars.firstIndex(of: ",") ?? junk.endIndex
            if let match = rest.prefixMatch(of: name) {
                members.append(Member(name: match.0.lowercased(), argument: "", isClear: false))
            }
            if junk[..<end].unicodeScalars.contains("\"") { isInDoubt = true }
            rest = rest[end...]
        }
    }

    private static func unescaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in text.unicodeScalars {
            if scalar == "\\", !isEscaped {
                isEscaped = true
            } else {
                result.append(scalar)
                isEscaped = false
            }
        }
        return String(result)
    }

    /// The smallest number that directives of this name give; 0 where one gives none; nil where there is no such directive.
    static func seconds(_ name: String, in members: [Member]) -> Int64? {
        members.filter { $0.name == name }.map { $0.isClear ? number($0.argument ?? "") ?? 0 : 0 }.min()
    }

    static func number(_ text: String) -> Int64? {
        let digits = Array(text.unicodeScalars)
        guard !digits.isEmpty, digits.allSatisfy({ ("0"..."9").contains($0) }) else { return nil }
        let significant = digits.drop { $0 == "0" }
        if significant.count > 10 { return DeltaSeconds.maximum }
        return min(significant.reduce(0) { $0 * 10 + Int64($1.value - 48) }, DeltaSeconds.maximum)
    }

    func age(_ lines: [[UInt8]]) -> Int64 {
        let members = lines.map(Self.text).joined(separator: ",").unicodeScalars.split(separator: ",")
            .map {
                String(
                    $0.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed().map(
                        Character.init
                    )
                )
            }
        return members.first { !$0.isEmpty }.flatMap(Self.number) ?? 0
    }

    // MARK: Dates

    /// By the C library's calendar.
    func date(_ bytes: [UInt8], now: Int64) -> Int64? {
        let text = Self.text(bytes).lowercased()
        if let match = text.wholeMatch(of: imfFixdate) {
            return Self.seconds(match.3, match.2, match.1, match.4, match.5, match.6)
        }
        if let match = text.wholeMatch(of: asctime) {
            return Self.seconds(match.6, match.1, match.2.replacing(" ", with: "0"), match.3, match.4, match.5)
        }
        guard let match = text.wholeMatch(of: rfc850) else { return nil }
        // The latest century that is not more than fifty years ahead.
        var limit = tm()
        var seconds = time_t(now)
        gmtime_r(&seconds, &limit)
        limit.tm_year += 50
        let latest = Int64(timegm(&limit))
        return [19, 20, 21].compactMap {
            Self.seconds("\($0)\(match.3)", match.2, match.1, match.4, match.5, match.6)
        }.filter { $0 <= latest }.max()
    }

    private static func seconds(
        _ year: some StringProtocol,
        _ month: some StringProtocol,
        _ day: some StringProtocol,
        _ hour: some StringProtocol,
        _ minute: some StringProtocol,
        _ second: some StringProtocol
    ) -> Int64? {
        let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        guard let year = Int32(year), let month = months.firstIndex(of: String(month)), let day = Int32(day),
            let hour = Int64(hour), let minute = Int64(minute), let second = Int64(second), hour < 24, minute < 60,
            second <= 60
        else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, Int32(month), day)
        let start = Int64(timegm(&parts))
        guard parts.tm_mday == day, parts.tm_mon == Int32(month) else { return nil }
        return start + hour * 3600 + minute * 60 + second
    }

    // MARK: What follows from them

    /// The most seconds for which a response received at `now` may be fresh; 0 or less for not at all.
    func freshness(_ fields: Fields, status: Int, isShared: Bool, now: Int64) -> Int64 {
        let members = members(fields.all("cache-control"))
        let date = fields.all("date").compactMap { self.date($0, now: now) }.min() ?? now
        let age = max(self.age(fields.all("age")), now - date)
        return lifetime(members, fields, status: status, isShared: isShared, date: date, now: now) - age
    }

    private func lifetime(
        _ members: [Member],
        _ fields: Fields,
        status: Int,
        isShared: Bool,
        date: Int64,
        now: Int64
    ) -> Int64 {
        if isShared, let seconds = Self.seconds("s-maxage", in: members) { return seconds }
        if let seconds = Self.seconds("max-age", in: members) { return seconds }
        let expires = fields.all("expires")
        if !expires.isEmpty {
            return expires.map { self.date($0, now: now).map { min($0 - date, DeltaSeconds.maximum) } ?? 0 }.min() ?? 0
        }
        let changes = fields.all("last-modified").map { self.date($0, now: now) }
        let isPublic = members.contains { $0.name == "public" && $0.isClear && $0.argument == nil }
        let isHeuristic = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
        guard isPublic || isHeuristic, !changes.contains(nil), let change = changes.compactMap({ $0 }).max() else {
            return 0
        }
        return min(max(0, date - change) / 10, 86_400)
    }

    /// Whether a directive forbids it, in however garbled a form, behind whatever quote.
    func forbids(_ name: String, _ fields: Fields) -> Bool {
        members(fields.all("cache-control")).contains { member in
            // A qualified form that can be read speaks of fields only.
            guard member.name == name, name != "no-store" else { return member.name == name }
            guard member.isClear, let argument = member.argument else { return true }
            let names = argument.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }.filter {
                !$0.isEmpty
            }
            return names.isEmpty
        }
    }

    /// Whether `must-understand` takes the force from `no-store`.
    func mustUnderstand(_ fields: Fields) -> Bool {
        members(fields.all("cache-control")).contains {
            $0.name == "must-understand" && $0.isClear && $0.argument == nil
        }
    }
}

extension Regex {
    fileprivate func asciiOnlyDigits() -> Regex<RegexOutput> { asciiOnlyDigits(true) }
}
