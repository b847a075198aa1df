import Admin
import ArgumentParser
import Glibc
import Settings

/// `larder clean`: throws things away, for good.
struct Clean: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Remove objects and documents from the store, for good.",
        discussion: """
            Conditions add up; look first with --dry-run:

              larder clean --model User --dry-run
              larder clean --model User --id 583231
              larder clean --upstream github --older-than 30d
              larder clean --route 'repos/*/*/issues'
              larder clean --all

            What was removed does not come back by itself: not after a restart, nor from a request that was under way. Other \
            objects that the documents showed stay known when a model is cleaned; without --model, those that nothing else \
            shows go with the documents.

            On a terminal it says what would go, and asks. Ctrl-C stops a clean; what is gone by then stays gone.
            """
    )

    @Flag(help: "Everything.")
    var all = false

    @Option(help: ArgumentHelp("Objects of this model, and the documents that show them.", valueName: "name"))
    var model: String?

    @Option(help: ArgumentHelp("One object of the model, by its identity or a key.", valueName: "id"))
    var id: String?

    @Option(help: ArgumentHelp("Documents of the route with this path, as the config has it.", valueName: "path"))
    var route: String?

    @Option(help: ArgumentHelp("What came from this upstream.", valueName: "name"))
    var upstream: String?

    @Option(help: ArgumentHelp("What belongs to this principal, by its label.", valueName: "label"))
    var principal: String?

    @Option(help: ArgumentHelp("What was last received longer ago than this: 90s, 12h, 30d.", valueName: "duration"))
    var olderThan: String?

    @Flag(help: "Only say what would be removed.")
    var dryRun = false

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.check([
            "--model": model, "--id": id, "--route": route, "--upstream": upstream, "--principal": principal,
            "--older-than": olderThan,
        ])
        let hasCondition = [model, id, route, upstream, principal, olderThan].contains { $0 != nil }
        if all, hasCondition {
            throw ValidationError("--all removes everything; leave out the other conditions, or --all")
        }
        if !all, !hasCondition {
            throw ValidationError(
                "say what to remove: --model, --route, --upstream, --principal or --older-than; --all removes everything"
            )
        }
        if id != nil, model == nil { throw ValidationError("--id needs --model: an identity is one of a model's") }
        _ = try duration()
    }

    func run() throws {
        if !dryRun, !yes, !options.json, Terminal.isInteractive {
            let preview = try options.decode(CleanResponse.self, try perform(dryRun: true))
            guard Terminal.isConfirmed("This removes \(Self.text(preview)). Go on?") else {
                Terminal.complain("nothing was removed")
                throw ExitCode.failed
            }
        }
        try options.present(CleanResponse.self, try perform(dryRun: dryRun)) { response in
            let what = Self.text(response)
            if dryRun { return "would remove \(what)" }
            return response.erased == "pending"
                ? "removed \(what); another program reads the store, its bytes go when that program is done"
                : "removed \(what)"
        }
    }

    /// Has the daemon do it; gives what it says at the end, and shows a person how far it is.
    private func perform(dryRun: Bool) throws -> [UInt8] {
        let (isShown, options) = (!options.json && isatty(2) == 1, options)
        let body = try request(dryRun: dryRun)
        return try options.orFail { () throws(AdminClientError) in
            let client = try options.client()
            var result: [UInt8]?
            var failure: AdminClientError?
            defer { if isShown { Terminal.progress("") } }
            _ = try client.listen("/clean", body: AdminJSON.encode(body)) { event in
                switch event.name {
                case "done": result = Array(event.data.utf8)
                case "error": failure = AdminClientError(problem: Array(event.data.utf8))
                case "progress" where isShown:
                    guard let count = try? options.decode(CountResponse.self, Array(event.data.utf8)) else { return }
                    Terminal.progress(
                        "\(dryRun ? "found" : "removed") \(Self.text(count.objects, count.models, count.documents, count.bytes)) so far"
                    )
                default: break
                }
            }
            if let failure { throw failure }
            guard let result else {
                throw AdminClientError(
                    dryRun
                        ? "the connection to \(client.address) ended before all was counted"
                        : "the connection to \(client.address) ended before all was removed; the rest is still there"
                )
            }
            return result
        }
    }

    private static func text(_ response: CleanResponse) -> String {
        let what = text(response.objects, response.models, response.documents, response.bytes)
        guard response.unshown > 0 else { return what }
        let (noun, rest) = response.unshown == 1 ? ("object stays", "shows it") : ("objects stay", "shows them")
        return "\(what); \(response.unshown) other \(noun) known, though no document \(rest)"
    }

    private static func text(_ objects: Int, _ models: [String: Int], _ documents: Int, _ bytes: Int64) -> String {
        let models = models.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.value) \($0.key)" }
        return [
            HumanText.count(objects, "object") + (models.isEmpty ? "" : " (\(models.joined(separator: ", ")))"),
            HumanText.count(documents, "document"), HumanText.bytes(Int(bytes)),
        ].joined(separator: ", ")
    }

    /// The body of the request, as the admin side names its conditions.
    struct Body: Encodable {
        var all: Bool?
        var model: String?
        var id: String?
        var route: String?
        var upstream: String?
        var principal: String?
        var olderThan: String?
        var dryRun: Bool?
    }

    func request(dryRun: Bool? = nil) throws -> Body {
        Body(
            all: all ? true : nil,
            model: model,
            id: id,
            route: route,
            upstream: upstream,
            principal: principal,
            olderThan: try duration().map(Units.text),
            dryRun: dryRun ?? self.dryRun ? true : nil
        )
    }

    private func duration() throws -> Duration? {
        guard let olderThan else { return nil }
        do throws(Units.Misfit) {
            return try Units.duration(olderThan)
        } catch {
            throw ValidationError("--older-than: \"\(olderThan)\" \(error.reason)")
        }
    }
}
