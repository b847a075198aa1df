import Admin
import ArgumentParser
import Glibc
import HTTPSemantics
import Settings
import Store

struct CleanCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clean",
        abstract: "Remove objects and documents from the store, for good.",
        discussion: """
            All conditions must match. --dry-run shows what would be removed:

              larder clean --model User --dry-run
              larder clean --model User --id 583231
              larder clean --upstream github --older-than 30d
              larder clean --route 'repos/*/*/issues'
              larder clean --url http://127.0.0.1:8787/users/7
              larder clean --url '/users/7/*'
              larder clean --all
              larder clean --url '/users/7/*' --fleet

            What is removed does not come back after a restart, nor through a request that was in flight. With --model, other \
            objects in the removed documents stay stored until space is needed; without it, those that no other document shows are removed, too.

            On a terminal the command shows what it would remove, and asks. Ctrl-C stops it; what is removed by then stays \
            removed.
            """
    )

    @Flag(help: "Remove everything.") var all = false

    @Option(help: .value("name", "Objects of this model, and the documents that show them."), completion: .models)
    var model: String?

    @Option(help: .value("id", "Only this object of the model, by its identity or one of its keys.")) var id: String?

    @Option(help: .value("path", "Documents of the route with this path in the config."), completion: .routes)
    var route: String?

    @Option(
        help:
            "Documents with this URL, or with this path and query, the client's or the upstream's; with * at its end, all that begin with it."
    )
    var url: String?

    @Option(help: .value("name", "Only data of this upstream."), completion: .upstreams) var upstream: String?
    @Option(help: .value("label", "Only data of the principal with this label.")) var principal: String?

    @Option(help: .value("duration", "Only what was last received longer ago than this: 90s, 12h, 30d."))
    var olderThan: String?

    @Flag(help: "Also on the other machines of the fleet.") var fleet = false
    @Flag(help: "Show what would be removed, and remove nothing.") var dryRun = false
    @Flag(name: .shortAndLong, help: "Do not ask for confirmation.") var yes = false
    @OptionGroup var options: AdminOptions

    private var hasCondition: Bool { [model, id, route, url, upstream, principal, olderThan].contains { $0 != nil } }

    func validate() throws {
        try GivenText.check([
            "--model": model, "--id": id, "--route": route, "--url": url, "--upstream": upstream,
            "--principal": principal, "--older-than": olderThan,
        ])
        if all, hasCondition {
            throw ValidationError("--all removes everything; leave out the other conditions, or --all")
        }
        if id != nil, model == nil { throw ValidationError("--id needs --model: an identity belongs to a model") }
        _ = try duration()
    }

    func run() throws {
        // Not in `validate`, which would run before the error about a misspelled option.
        guard all || hasCondition else {
            throw ValidationError(
                "say what to remove: --model, --route, --url, --upstream, --principal or --older-than; "
                    + "--all removes everything"
            )
        }
        if !dryRun, !yes, !options.json, Terminal.isInteractive {
            let preview = try options.decode(CleanResponse.self, try perform(dryRun: true))
            if let note = preview.url?.text { Terminal.complain("larder: \(note)") }
            guard Terminal.isConfirmed("This removes \(Self.text(preview)). Go on?") else {
                throw CommandFailure("nothing was removed")
            }
        }
        try options.present(CleanResponse.self, try perform(dryRun: dryRun)) { response in
            if let note = response.url?.text { Terminal.complain("larder: \(note)") }
            let what = Self.text(response)
            if dryRun { return "would remove \(what)" }
            if let fleet = response.fleet {
                Terminal.complain(
                    fleet.isEmpty
                        ? "larder: no other machine shares what was removed"
                        : "larder: the other machines are asked to do the same for \(fleet.joined(separator: ", "))"
                )
            }
            return response.disk == "pending"
                ? "removed \(what); another program is reading the store, so the disk space is freed when it is done"
                : "removed \(what)"
        }
    }

    private func perform(dryRun: Bool) throws -> [UInt8] {
        let isShown = !options.json && isatty(2) == 1
        let client = try options.client()
        var result: [UInt8]?
        var failure: AdminClientError?
        defer { if isShown { Terminal.progress("") } }
        _ = try client.listen("/clean", body: try request(dryRun: dryRun).bytes) { event in
            switch event.name {
            case "done": result = Array(event.data.utf8)
            case "error": failure = AdminClientError(problem: Array(event.data.utf8))
            case "progress" where isShown:
                guard let count = try? options.decode(StoreCount.self, Array(event.data.utf8)) else { return }
                Terminal.progress(
                    "\(dryRun ? "found" : "removed") \(Self.text(count.objects, count.models, count.documents, count.bytes)) so far"
                )
            default: break
            }
        }
        if let failure { throw failure }
        if let result { return result }
        throw CommandFailure(
            dryRun
                ? "the connection to \(client.address) ended before all was counted"
                : "the connection to \(client.address) ended before all was removed; the rest is still there"
        )
    }

    private static func text(_ response: CleanResponse) -> String {
        let what = text(response.objects, response.models, response.documents, response.bytes)
        guard response.orphaned > 0 else { return what }
        return "\(what); \(HumanText.count(response.orphaned, "other object")) that no document shows "
            + "\(response.orphaned == 1 ? "stays" : "stay") stored until space is needed"
    }

    private static func text(_ objects: Int, _ models: [String: Int], _ documents: Int, _ bytes: Int64) -> String {
        let models = models.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.value) \($0.key)" }
        return [
            HumanText.count(objects, "object") + (models.isEmpty ? "" : " (\(models.joined(separator: ", ")))"),
            HumanText.count(documents, "document"), HumanText.bytes(Int(bytes)),
        ].joined(separator: ", ")
    }

    /// The request's body, with the admin side's names of the conditions: a URL may be longer than a target.
    func request(dryRun: Bool) throws -> JSONText {
        let text: (String?) -> JSONText? = { $0.map { .string($0) } }
        return .object(present: [
            "model": text(model), "id": text(id), "route": text(route), "url": text(url), "upstream": text(upstream),
            "principal": text(principal), "older_than": text(try duration().map(Units.text)),
            "all": all ? true : nil, "dry_run": dryRun ? true : nil, "fleet": fleet ? true : nil,
        ])
    }

    private func duration() throws -> Duration? {
        try olderThan.map { try given($0, for: "--older-than", Units.duration) }
    }
}
