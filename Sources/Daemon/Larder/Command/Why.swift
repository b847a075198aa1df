import ArgumentParser

/// `larder why MODEL ID`: where what is known of an object comes from.
struct Why: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show where each member of an object comes from, and which answers show it.",
        discussion: """
            Nothing is fetched. For each member: its settled value, the response that showed it last, what it replaced and why, and any doubt.

              larder why User 583231
              larder why User octocat --member login
              larder why Issue 1 --upstream github --documents 100 --json
            """
    )

    @Argument(help: "The model's name.")
    var model: String

    @Argument(help: "The object, by its identity or a key.")
    var id: String

    @Option(help: ArgumentHelp("Only this member: a property, user.login, or a JSON pointer.", valueName: "name"))
    var member: String?

    @Option(help: ArgumentHelp("Only what came from this upstream.", valueName: "name"))
    var upstream: String?

    @Option(help: ArgumentHelp("Only what belongs to this principal, by its label.", valueName: "label"))
    var principal: String?

    @Option(help: ArgumentHelp("How many documents to show for each object, 0 to 100.", valueName: "n"))
    var documents = 10

    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.require(["model": model, "id": id])
        try GivenText.check(["--member": member, "--upstream": upstream, "--principal": principal])
        guard (0...100).contains(documents) else {
            throw ValidationError("--documents: \(documents) is not a number from 0 to 100")
        }
    }

    func run() throws {
        let query = [
            ("member", member), ("upstream", upstream), ("principal", principal), ("documents", "\(documents)"),
        ]
        let answer = try options.ask("GET", Target.make(["objects", model, id, "why"], query))
        try options.present(WhyText.self, answer) { $0.text(asksForDocuments: documents > 0) }
    }
}
