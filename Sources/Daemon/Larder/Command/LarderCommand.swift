import ArgumentParser
import Glibc
import HTTPSemantics
import Settings

@main
struct LarderCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "larder",
        abstract: "A caching proxy for REST APIs that knows the objects in their responses.",
        discussion: """
            Start it in front of an API, and set your program's base URL to its address:

              larder serve --upstream https://api.example.com
              larder serve --preset github
              curl -i http://127.0.0.1:8787/users/octocat

            While it runs, other commands show what it has stored, and remove what you no longer need:

              larder status
              larder dashboard
              larder count
              larder objects User
              larder sql 'select login, name from User_current limit 5'
              larder why User octocat
              larder clean --model User --older-than 30d
              larder explain /users/octocat
              larder changes --follow
              larder save copy.db
              larder tail

            Record what a program asks, and run its tests without the API:

              larder record fixtures --upstream https://api.example.com
              larder run fixtures -- pytest

            Exit codes: 0 success, 1 failure, 64 wrong usage, 78 mistakes in the config.
            """,
        version: Version.text,
        subcommands: [
            ServeCommand.self, CheckCommand.self, StatusCommand.self, DashboardCommand.self, CountCommand.self,
            ObjectsCommand.self, DocumentsCommand.self, SQLCommand.self, WhyCommand.self, CleanCommand.self,
            SaveCommand.self, LoadCommand.self, SeedCommand.self, ReloadCommand.self, ModeCommand.self,
            ChangesCommand.self, TailCommand.self, TopCommand.self, BudgetCommand.self, WarningsCommand.self,
            RouteCommand.self, MapCommand.self, ExplainCommand.self, KeyCommand.self, RecordCommand.self,
            RecordingCommand.self, FreezeCommand.self, ReplayCommand.self, RunCommand.self, DiffCommand.self,
            ImportCommand.self, ExportCommand.self,
        ]
    )
}

extension LarderCommand {
    /// Runs the command line; errors begin with a line that starts with `larder:`.
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.first == "help", let complaint = unknownCommand(in: Array(arguments.dropFirst())) {
            Terminal.complain(complaint)
            Glibc.exit(ExitCode.validationFailure.rawValue)
        }
        var running: (any ParsableCommand.Type)?
        do {
            var command = try parseAsRoot(arguments)
            running = type(of: command)
            try command.run()
        } catch let error as AdminClientError where !error.mistakes.isEmpty {
            for mistake in error.mistakes { Terminal.complain(mistake) }
            Glibc.exit(ExitCode.badConfig.rawValue)
        } catch {
            // The parser breaks lines for the terminal, and fails at its column of explanations on a narrow one. There it makes
            // long lines, which are folded here.
            let isNarrow = [1, 2].contains { Terminal.width(of: $0).map { $0 < 50 } ?? false }
            if isNarrow { setenv("COLUMNS", "10000", 1) }
            let code = exitCode(for: error)
            // Help, the version and completions are no failures; an exit code means that the reason was already printed.
            guard code != .success, !(error is ExitCode) else {
                if isNarrow, !(error is ExitCode) {
                    Terminal.say(fullMessage(for: error))
                    Glibc.exit(code.rawValue)
                }
                exit(withError: error)
            }
            Terminal.complain(complaint(about: error, arguments, running: running))
            Glibc.exit(code.rawValue)
        }
    }

    /// - Parameter running: the command that has thrown the error, not the parser.
    static func complaint(
        about error: any Error,
        _ arguments: [String],
        running: (any ParsableCommand.Type)? = nil
    ) -> String {
        if let running, error is ValidationError {
            // The parser's own message would name the root command, which is the only one it is asked by.
            let usage = usageString(for: running)
            let name = usage.split(separator: " ").prefix {
                !$0.hasPrefix("[") && !$0.hasPrefix("<") && !$0.hasPrefix("-")
            }
            return """
                larder: \(message(for: error))
                Usage: \(usage)
                  See '\(name.joined(separator: " ")) --help' for more information.
                """
        }
        if exitCode(for: error) == .validationFailure, let complaint = unknownCommand(in: arguments) {
            return complaint
        }
        let message = fullMessage(for: error)
        return "larder: " + (message.hasPrefix("Error: ") ? String(message.dropFirst("Error: ".count)) : message)
    }

    /// The error about a command that does not exist, if any.
    private static func unknownCommand(in arguments: [String]) -> String? {
        var (command, path): (any ParsableCommand.Type, [String]) = (LarderCommand.self, ["larder"])
        for argument in arguments where !argument.hasPrefix("-") {
            let known = command.configuration.subcommands
            guard !known.isEmpty, argument != "help" else { return nil }
            if let next = known.first(where: { $0._commandName == argument }) {
                command = next
                path.append(argument)
                continue
            }
            let meant = Suggestion.nearest(to: argument, among: known.map { $0._commandName })
            let words = path.joined(separator: " ")
            return "larder: there is no command \"\(words) \(argument)\"".printable
                + (meant.map { "; did you mean \"\(words) \($0)\"?" } ?? "; `\(words) --help` lists them")
        }
        return nil
    }
}

enum Version {
    static let text = "0.2.0"
}
