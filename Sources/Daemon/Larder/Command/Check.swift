import Admin
import ArgumentParser
import Settings

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Find every mistake in a config, and say what to write instead.",
        discussion: """
            Each mistake is printed with its file, line and column:

              larder check larder.yaml
              larder.yaml:4:5: error: upstreams.github: unknown key "prefx"; did you mean "prefix"?

            Nothing is started or changed. The exit code is 78 if there are errors, and 0 if there are none or only warnings.
            """
    )

    @Argument(
        help: .value("file", "The config file, as with --config."),
        completion: .file(extensions: ["yaml", "yml"])
    )
    var file: String?

    @OptionGroup var source: ConfigOptions
    @Flag(help: "Print one JSON document, for programs.") var json = false

    func validate() throws {
        try GivenText.require(["config file": file])
        if file != nil, source.config != nil || source.preset != nil {
            throw ValidationError("name one config: FILE, --config FILE or --preset NAME")
        }
    }

    func run() throws {
        let environment = Environment.variables
        var source = source
        source.config = source.config ?? file
        let file = try source.file(ConfigOverrides(), environment: environment)
        let hasErrors = !file.errors.isEmpty
        if json {
            Terminal.out(AdminJSON.encode(Report(file.diagnostics), isPretty: true))
        } else {
            for diagnostic in file.diagnostics { Terminal.complain(diagnostic.description) }
            if !hasErrors { Terminal.say(Self.praise(file.settings)) }
        }
        if hasErrors { throw ExitCode.badConfig }
    }

    private struct Report: Encodable {
        var ok: Bool
        var diagnostics: [Entry]

        struct Entry: Encodable {
            var severity: Diagnostic.Severity
            var file: String
            var line: Int?
            var column: Int?
            var message: String
        }

        init(_ diagnostics: [Diagnostic]) {
            ok = !diagnostics.contains { $0.severity == .error }
            self.diagnostics = diagnostics.map {
                let (line, column) = ($0.place?.line, $0.place?.column)
                return Entry(severity: $0.severity, file: $0.file, line: line, column: column, message: $0.message)
            }
        }
    }

    /// The summary of a config without mistakes, one line for each upstream.
    private static func praise(_ settings: Configuration) -> String {
        settings.upstreams.map { upstream in
            let addresses = upstream.listen.isEmpty ? settings.listen : upstream.listen
            let places = addresses.map { "\($0)\(upstream.prefix)" }.joined(separator: ", ")
            let parts = [
                HumanText.count(upstream.models.count, "model"), HumanText.count(upstream.routes.count, "route"),
                HumanText.count(upstream.errors.count, "rule") + " for errors",
            ]
            return "\(upstream.name): \(places) → \(upstream.url); \(parts.joined(separator: ", "))"
        }.joined(separator: "\n")
    }
}
