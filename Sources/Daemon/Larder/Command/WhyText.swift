/// The answer to `larder why` as people read it in a terminal.
struct WhyText: Decodable {
    var objects: [Object]

    struct Object: Decodable {
        var upstream: String
        var principal: String
        var context: String
        var model: String
        var id: String
        var mark: Mark?
        var members: [Member]
        var documents: [ShowingRow]
        var next: Cursor?
    }

    struct Mark: Decodable {
        var kind: String
        var at: String
        var age: Int
        var superseded: Bool
        var reason: String
    }

    struct Member: Decodable {
        var pointer: String
        var properties: [String]
        var standing: String
        var merge: String
        var moves: Bool
        var value: AnyJSON?
        var from: Source?
        var replaced: Replaced?
        var challenger: Sighting?
        var quarantined: [Sighting]?
        var gathered: [Part]?
    }

    struct Sighting: Decodable {
        var value: AnyJSON?
        var from: Source
    }

    struct Replaced: Decodable {
        var value: AnyJSON?
        var rule: String
        var reason: String
    }

    struct Part: Decodable {
        var value: AnyJSON?
        var at: String
    }

    struct Source: Decodable {
        var method: String?
        var url: String?
        var age: Int
    }

    func text(asksForDocuments: Bool) -> String {
        objects.map { $0.text(asksForDocuments: asksForDocuments) }.joined(separator: "\n\n")
    }
}

extension WhyText.Object {
    fileprivate func text(asksForDocuments: Bool) -> String {
        let context = context.isEmpty ? "" : ", \(HumanText.line(context, width: 60))"
        var parts = ["\(model) \(HumanText.line(id, width: 60)) (\(upstream), \(principal)\(context))"]
        if let mark { parts.append(mark.sentence) }
        let declared = members.filter { $0.standing != "undeclared" }
        var table = TextTable(columns: [
            ("member", .left), ("value", .left), ("from", .left), ("age", .right), ("", .left),
        ])
        table.rows = declared.flatMap(\.rows)
        if !declared.isEmpty { parts.append(table.text) }
        let others = members.filter { $0.standing == "undeclared" }.map { String($0.pointer.dropFirst()) }
        if !others.isEmpty {
            parts.append(
                "not declared, so each answer keeps its own: \(HumanText.line(others.joined(separator: ", "), width: 400))"
            )
        }
        if asksForDocuments {
            if documents.isEmpty {
                parts.append(next == nil ? "No document shows it." : "No document that shows it was found yet.")
            } else {
                parts.append("Shown by:\n" + ShowingRow.table(documents))
            }
            if next != nil { parts.append("There may be more: larder documents --shows \(model)/\(id)") }
        }
        return parts.joined(separator: "\n\n")
    }
}

extension WhyText.Mark {
    fileprivate var sentence: String {
        let what = superseded ? "Was unknown at" : kind == "deleted" ? "Deleted since" : "Unknown since"
        return "\(what) \(at), \(HumanText.age(age)) ago: \(HumanText.line(reason, width: 240))."
    }
}

extension WhyText.Member {
    /// The settled value, what it replaced, and what stands against it: a line each.
    fileprivate var rows: [[String]] {
        let path = String(pointer.dropFirst()).replacing("/", with: ".")
        let name = properties.isEmpty || properties == [path] ? path : "\(properties.joined(separator: ", ")) (\(path))"
        var rows: [[String]] = []
        switch standing {
        case "gathered":
            let responses = HumanText.count(gathered?.count ?? 0, "response's value")
            rows = [Self.row(value, nil, "merge: \(merge), of \(responses)")]
        case "quarantined": break
        case "outdated":
            rows = [Self.row(value, from, "from before that")]
        default:
            let note =
                standing == "local" ? "local" : moves ? (merge == "latest" ? "" : "merge: \(merge)") : "does not move"
            rows = [Self.row(value, from, note)]
        }
        if let challenger { rows.append(Self.row(challenger.value, challenger.from, "in doubt: cannot be ordered")) }
        if let replaced {
            rows.append(Self.row(replaced.value, nil, "replaced (\(replaced.rule)): \(replaced.reason)"))
        }
        rows += (quarantined ?? []).map { Self.row($0.value, $0.from, "fails its checks") }
        if !rows.isEmpty { rows[0][0] = HumanText.line(name, width: 40) }
        return rows
    }

    private static func row(_ value: AnyJSON?, _ from: WhyText.Source?, _ note: String) -> [String] {
        [
            "", HumanText.line(value?.text ?? "", width: 40),
            from.map { "\($0.method ?? "") \(HumanText.line($0.url ?? "a response that is gone", width: 60))" } ?? "",
            from.map { HumanText.age($0.age) } ?? "", note,
        ]
    }
}

/// A document that shows an object.
struct ShowingRow: Decodable {
    var upstream: String
    var principal: String
    var url: String
    var status: Int
    var age: Int
    var shows: String
    var reason: String?

    static func table(_ rows: [ShowingRow]) -> String {
        var table = TextTable(columns: [
            ("shows", .left), ("age", .right), ("status", .right), ("principal", .left), ("url", .left), ("", .left),
        ])
        table.rows = rows.map { row in
            [
                row.words, HumanText.age(row.age), "\(row.status)", row.principal,
                "\(row.upstream) \(HumanText.line(row.url, width: 100))",
                row.reason.map { HumanText.line($0, width: 120) } ?? "",
            ]
        }
        return table.text
    }

    private var words: String {
        switch shows {
        case "newest": "the newest"
        case "composed": "the newest, composed"
        default: "a miss"
        }
    }
}

extension HumanText {
    /// `12 s`, `5 min`, `3 h`, `2 d`.
    static func age(_ seconds: Int) -> String {
        switch seconds {
        case ..<120: "\(seconds) s"
        case ..<7200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3600) h"
        default: "\(seconds / 86_400) d"
        }
    }
}
