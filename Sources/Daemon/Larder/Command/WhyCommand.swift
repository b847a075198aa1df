import Admin
import ArgumentParser

struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Show where the value of each member of an object comes from, and which responses show it.",
        discussion: """
            For each member it prints the settled value, the response that showed it last, what it replaced and why, and any value that \
            contradicts it. Nothing is fetched:

              larder why User 583231
              larder why User octocat --member login
              larder why Issue 1 --upstream github --documents 100 --json
            """
    )

    @Argument(help: "The model's name.", completion: .models) var model: String
    @Argument(help: "The object, by its identity or one of its keys.") var id: String

    @Option(help: .value("name", "Only this member: a property, a path such as user.login, or a JSON pointer."))
    var member: String?

    @Option(help: .value("name", "Only objects of this upstream."), completion: .upstreams) var upstream: String?
    @Option(help: .value("label", "Only objects of the principal with this label.")) var principal: String?
    @Option(help: .value("n", "How many documents to show for each object, 0 to 100.")) var documents = 10
    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.require(["model": model, "id": id])
        try GivenText.check(["--member": member, "--upstream": upstream, "--principal": principal])
        try GivenNumber.check("--documents", documents, in: 0...100)
    }

    func run() throws {
        let query = [
            ("member", member), ("upstream", upstream), ("principal", principal), ("documents", "\(documents)"),
        ]
        try options.show(Target.make(["objects", model, id, "why"], query), as: WhyResponse.self) { response in
            response.objects.map { $0.text(asksForDocuments: documents > 0) }.joined(separator: "\n\n")
        }
    }
}

extension WhyResponse.Object {
    fileprivate func text(asksForDocuments: Bool) -> String {
        let context = context.isEmpty ? "" : ", \(HumanText.line(context, width: 60))"
        var parts = ["\(model) \(HumanText.line(id, width: 60)) (\(upstream), \(principal)\(context))"]
        if let mark { parts.append(mark.sentence) }
        let declared = members.filter { $0.standing != "undeclared" }
        let columns: [TextTable.Column] = ["member", "value", "from", .right("age"), "note"]
        if !declared.isEmpty { parts.append(TextTable(columns: columns, rows: declared.flatMap(\.rows)).text) }
        let others = members.filter { $0.standing == "undeclared" }.map { String($0.pointer.dropFirst()) }
        if !others.isEmpty {
            parts.append(
                "not declared, so each response keeps its own: \(HumanText.line(others.joined(separator: ", "), width: 400))"
            )
        }
        if asksForDocuments {
            if documents.isEmpty {
                parts.append(next == nil ? "No document shows it." : "No document that shows it was found yet.")
            } else {
                parts.append("Shown by:\n" + ShowingDocumentResponse.table(documents))
            }
            if next != nil { parts.append("There may be more: larder documents --shows \(model)/\(id)") }
        }
        return parts.joined(separator: "\n\n")
    }
}

extension WhyResponse.Mark {
    fileprivate var sentence: String {
        let what = superseded ? "Was unknown at" : kind == "deleted" ? "Deleted since" : "Unknown since"
        return "\(what) \(at), \(HumanText.longDuration(Int(age))) ago: \(HumanText.line(reason, width: 240))."
    }
}

extension WhyResponse.Member {
    /// The settled value, the value it replaced, and conflicting values: a line each.
    fileprivate var rows: [[String]] {
        let path = String(pointer.dropFirst()).replacing("/", with: ".")
        let name = properties.isEmpty || properties == [path] ? path : "\(properties.joined(separator: ", ")) (\(path))"
        var rows: [[String]] = []
        switch standing {
        case "merged":
            let responses = HumanText.count(merged?.count ?? 0, "response")
            rows = [Self.row(value, nil, "merge: \(merge), from \(responses)")]
        case "quarantined": break
        case "outdated": rows = [Self.row(value, from, "older than the mark above")]
        default:
            let note =
                standing == "local"
                ? "local" : moves ? (merge == "latest" ? "" : "merge: \(merge)") : "not shared between responses"
            rows = [Self.row(value, from, note)]
        }
        if let conflicting {
            rows.append(Self.row(conflicting.value, conflicting.from, "in doubt: unclear which value is newer"))
        }
        if let replaced { rows.append(Self.row(replaced.value, nil, "replaced: \(replaced.reason)")) }
        rows += (quarantined ?? []).map { Self.row($0.value, $0.from, "fails its checks") }
        if !rows.isEmpty { rows[0][0] = HumanText.line(name, width: 40) }
        return rows
    }

    private static func row(_ value: RawJSON?, _ from: WhyResponse.Source?, _ note: String) -> [String] {
        [
            "", HumanText.line(value?.text ?? "", width: 40),
            from?.words ?? "", from.map { HumanText.longDuration(Int($0.age)) } ?? "", note,
        ]
    }
}

extension WhyResponse.Source {
    fileprivate var words: String {
        if seeded == true { return "larder seed" }
        guard let url else { return "a response no longer known" }
        return "\(method ?? "") \(HumanText.line(url, width: 60))"
    }
}

extension ShowingDocumentResponse {
    static func table(_ rows: [ShowingDocumentResponse]) -> String {
        TextTable(
            columns: ["url", "upstream", "shows", .right("age"), .right("status"), "principal", "note"],
            rows: rows.map { row in
                [
                    HumanText.line(row.url, width: 100), row.upstream, row.words, HumanText.longDuration(Int(row.age)),
                    "\(row.status)", row.principal, row.reason.map { HumanText.line($0, width: 120) } ?? "",
                ]
            }
        ).text
    }

    private var words: String {
        switch shows {
        case "newest": "the newest"
        case "composed": "the newest, composed"
        default: "outdated: fetched again at the next request"
        }
    }
}
