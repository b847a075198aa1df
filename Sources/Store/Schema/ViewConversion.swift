import Mapping

/// How a view shows a property's value with its declared conversion.
///
/// SQL computes it when the view is read. The SQL has the value as `t`. The result is NULL for a value that the conversion does
/// not accept; the raw column still has that value.
enum ViewConversion: Equatable {
    /// The value unchanged: the conversion only checks it.
    case checked
    /// The value computed by this SQL, beside the raw one.
    case computed(String)
    /// The raw value alone: SQLite has no function for this conversion.
    case unavailable

    init(_ declaration: ConversionDeclaration?, coerces: Bool) {
        switch declaration {
        case nil: self = .checked
        case .named(let name): self = Self.named(name, coerces: coerces)
        case .date(.unixSeconds): self = .computed(Self.time("\(Self.number), 'unixepoch'"))
        case .date(.unixMilliseconds): self = .computed(Self.time("\(Self.number) / 1000.0, 'unixepoch'"))
        case .date(.pattern): self = .unavailable
        case .number(let grouping, let decimal):
            self = .computed(Self.number(grouping: grouping, decimal: decimal))
        case .enumeration(let cases, let fallback, _): self = Self.enumeration(cases, fallback)
        case .values(let pairs, let fallback, _): self = Self.values(pairs, fallback)
        case .arrayOf(let inner), .dictionaryOf(let inner):
            self = Self(inner, coerces: false) == .checked && !coerces ? .checked : .unavailable
        case .chain(let links): self = Self.chain(links, coerces: coerces)
        case .oneWay(let inner, _): self = Self(inner, coerces: coerces)
        }
    }

    private static func named(_ name: String, coerces: Bool) -> ViewConversion {
        switch name {
        case "date": .computed(timestamp)
        case "decimal": .computed(number)
        case "integer" where coerces:
            .computed(
                "(SELECT CASE WHEN n = CAST(n AS INTEGER) THEN CAST(n AS INTEGER) END FROM (SELECT \(number) AS n))"
            )
        case "boolean" where coerces: .computed(boolean)
        case "boolean", "integer", "string", "url", "uuid": .checked
        default: .unavailable
        }
    }

    private static func chain(_ links: [ConversionDeclaration], coerces: Bool) -> ViewConversion {
        let effects = links.map { ViewConversion($0, coerces: false) }.filter { $0 != .checked }
        guard let only = effects.first else { return links.count > 1 && coerces ? .unavailable : .checked }
        return effects.count == 1 && !coerces ? only : .unavailable
    }

    // MARK: SQL

    /// UTC to the second, so that the order of the texts is the order of their times.
    private static func time(_ arguments: String) -> String { "strftime('%Y-%m-%dT%H:%M:%SZ', \(arguments))" }

    /// RFC 3339, without the other forms that SQLite accepts: a date without a time, `now`, a number.
    private static let timestamp: String = {
        let (two, four) = ("[0-9][0-9]", "[0-9][0-9][0-9][0-9]")
        let form = "\(four)-\(two)-\(two)[Tt ]\(two):\(two):\(two)*"
        // The day is checked separately: SQLite counts 31 days in each month.
        return "CASE WHEN typeof(t) = 'text' AND t GLOB '\(form)' AND (t GLOB '*[Zz]' OR t GLOB '*[-+]\(two):\(two)') "
            + "AND date(substr(t, 1, 10), '+0 days') = substr(t, 1, 10) "
            + "THEN \(time("substr(t, 1, 10) || 'T' || substr(t, 12)")) END"
    }()

    /// A number, or a text that is spelled like one.
    private static let number =
        "CASE typeof(t) WHEN 'integer' THEN t WHEN 'real' THEN t WHEN 'text' THEN \(number(in: "t", "-+.eE0-9")) END"

    /// The JSON number in a text.
    private static func number(in text: String, _ characters: String) -> String {
        "CASE WHEN \(text) NOT GLOB '*[^\(characters)]*' AND json_valid(\(text)) THEN json_extract(\(text), '$') END"
    }

    /// The number in a text with groups of three digits, or none, and an optional decimal separator.
    private static func number(grouping: String, decimal: String) -> String {
        let (group, point) = (SQLText.literal(grouping), SQLText.literal(decimal))
        let whole = "CASE instr(t, \(point)) WHEN 0 THEN t ELSE substr(t, 1, instr(t, \(point)) - 1) END"
        var accepted = "typeof(t) = 'text'"
        if grouping != ".", decimal != "." { accepted += " AND t NOT GLOB '*.*'" }
        var plain = "t"
        if !grouping.isEmpty {
            plain = "replace(t, \(group), '')"
            accepted +=
                " AND (instr(t, \(group)) = 0 OR replace(printf('%,d', CAST(replace(\(whole), \(group), '') AS INTEGER)), ',', "
                + "\(group)) = \(whole) AND instr(substr(t, length(\(whole)) + 1), \(group)) = 0)"
        }
        plain = "replace(\(plain), \(point), '.')"
        return "CASE WHEN \(accepted) THEN (SELECT \(number(in: "n", "-.0-9")) FROM (SELECT \(plain) AS n)) END"
    }

    /// The words that `coerce` accepts for true and false.
    private static let boolean =
        "CASE WHEN t IN (0, 1) THEN t WHEN typeof(t) = 'text' THEN CASE "
        + "WHEN lower(t) IN ('true', 't', 'yes', 'y', 'on', '1') THEN 1 "
        + "WHEN lower(t) IN ('false', 'f', 'no', 'n', 'off', '0') THEN 0 END END"

    private static func enumeration(_ cases: [ConversionDeclaration.Case], _ fallback: String?) -> ViewConversion {
        guard fallback != nil || cases.contains(where: { $0.wire != $0.mapped }) else { return .checked }
        let lines = cases.map { " WHEN \(SQLText.literal($0.wire)) THEN \(SQLText.literal($0.mapped))" }
        let rest = fallback.map { " ELSE CASE WHEN t IS NOT NULL THEN \(SQLText.literal($0)) END" } ?? ""
        return .computed("CASE CAST(t AS TEXT)\(lines.joined())\(rest) END")
    }

    private static func values(_ pairs: [ConversionDeclaration.Pair], _ fallback: [UInt8]?) -> ViewConversion {
        // An absent value is NULL as well, and must not be converted.
        let lines = pairs.filter { $0.wire != Array("null".utf8) }.map {
            " WHEN \(json($0.wire)) THEN \(json($0.mapped))"
        }
        guard !lines.isEmpty else { return .unavailable }
        let rest = fallback.map { " ELSE CASE WHEN t IS NOT NULL THEN \(json($0)) END" } ?? ""
        return .computed("CASE t\(lines.joined())\(rest) END")
    }

    private static func json(_ value: [UInt8]) -> String {
        "json_extract(\(SQLText.literal(String(decoding: value, as: UTF8.self))), '$')"
    }
}
