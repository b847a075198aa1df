import Admin
import ArgumentParser

/// `larder explain URL`: why an answer is what it is.
struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what is stored for a URL, how fresh it is and why, and what a request would get now.",
        discussion: """
            Nothing is fetched, and asking does not count as use:

              larder explain /users/octocat
              larder explain https://api.github.com/users/octocat -H 'Cache-Control: max-age=10'
              larder explain /users/octocat -H "Authorization: Bearer $TOKEN" --json
            """
    )

    @Argument(help: "A path as programs send it to Larder, or a URL of Larder's or of an upstream.")
    var url: String

    @OptionGroup var fields: FieldOptions

    @Option(help: ArgumentHelp("The method. (default: GET)", valueName: "name"))
    var method: String?

    @Option(help: ArgumentHelp("Which upstream is meant, where the URL leaves a choice.", valueName: "name"))
    var upstream: String?

    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.require(["URL": url])
        try GivenText.check(["--method": method, "--upstream": upstream])
    }

    func run() throws {
        let query = [("url", url), ("method", method), ("upstream", upstream)] + fields.header.map { ("header", $0) }
        try options.present(Explanation.self, try options.ask("GET", Target.make(["explain"], query))) { $0.text }
    }
}
