import Admin
import ArgumentParser
import Foundation
import Settings

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Find every mistake in a config, and say what to write instead.",
        discussion: """
            Each mistake is printed with its file, line and column:

              larder check larder.yaml
              larder.yaml:4:5: error: upstreams.github: unknown key "prefx"; did you mean "prefix"?

            Nothing is started or changed. The exit code is 78 if there are errors, and 0 if there are none or only warnings.

            With --diff the running daemon checks the config that it was started with, and says what `larder reload` would \
            change:

              larder check --diff
            """
    )

    @Argument(help: .value("file", "The config file, as with --config."), completion: .config) var file: String?

    @OptionGroup var source: ConfigOptions
    @Flag(help: "Ask the running daemon what a reload would change.") var diff = false
    @Flag(help: "Print one JSON document, for programs.") var json = false

    func validate() throws {
        try GivenText.require(["config file": file])
        if diff, source.preset != nil || source.upstream != nil {
            throw ValidationError("--diff is about the daemon's own config: leave --preset and --upstream out")
        }
        if file != nil, source.config != nil || source.preset != nil {
            throw ValidationError("name one config: FILE, --config FILE or --preset NAME")
        }
    }

    func run() throws {
        var source = source
        source.config = source.config ?? file
        if diff { return try showDifference(source.config) }
        let file = try source.file(ConfigOverrides(), environment: Environment.variables)
        let hasErrors = !file.errors.isEmpty
        if json {
            Terminal.out(AdminJSON.encode(Report(file.diagnostics), isPretty: true))
        } else {
            for diagnostic in file.diagnostics { Terminal.complain(diagnostic.description) }
            if !hasErrors { Terminal.say(Self.praise(file.settings)) }
        }
        if hasErrors { throw ExitCode.badConfig }
    }

    private func showDifference(_ config: String?) throws {
        var options = try AdminOptions.parse(json ? ["--json"] : [])
        options.config = config
        let response = try options.reload(dryRun: true)
        let read = try options.decode(ReloadResponse.self, response).config
        if let config, let read, realPath(config) != realPath(read) {
            throw CommandFailure("the daemon reads its config from \(read), not from \(config)")
        }
        try options.present(ReloadResponse.self, response) { $0.text }
    }

    private func realPath(_ path: String) -> String { URL(fileURLWithPath: path).resolvingSymlinksInPath().path }

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
