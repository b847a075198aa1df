import ArgumentParser

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

            What was removed does not come back by itself: not after a restart, nor from a request that was under way.
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
        _ = try seconds()
    }

    func run() throws {
        try options.present(CountAnswer.self, try options.ask("POST", "/clean", body: request())) { answer in
            let what = [
                HumanText.count(answer.objects, "object"), HumanText.count(answer.documents, "document"),
                HumanText.bytes(answer.bytes),
            ].joined(separator: ", ")
            if dryRun { return "would remove \(what)" }
            return answer.erased == "pending"
                ? "removed \(what); another program reads the store, its bytes go when that program is done"
                : "removed \(what)"
        }
    }

    /// The body of the request.
    func request() throws -> JSONText {
        var members: [(name: String, value: JSONText)] = []
        if all { members.append(("all", true)) }
        for (name, value) in [
            ("model", model), ("id", id), ("route", route), ("upstream", upstream), ("principal", principal),
        ] {
            if let value { members.append((name, .string(value))) }
        }
        if let seconds = try seconds() { members.append(("older_than", .string("\(seconds)s"))) }
        if dryRun { members.append(("dry_run", true)) }
        return .object(members)
    }

    private func seconds() throws -> Int64? {
        guard let olderThan else { return nil }
        do throws(Units.Misfit) {
            return try Units.duration(olderThan).seconds
        } catch {
            throw ValidationError("--older-than: \"\(olderThan)\" \(error.reason)")
        }
    }
}
