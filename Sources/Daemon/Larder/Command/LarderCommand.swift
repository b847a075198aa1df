import ArgumentParser

/// The command line.
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

              larder dashboard
              larder count
              larder objects User
              larder why User octocat
              larder clean --model User --older-than 30d
              larder explain /users/octocat
              larder changes --follow
              larder save copy.db

            Record what a program asks, and run its tests without the API:

              larder record fixtures --upstream https://api.example.com
              larder run fixtures -- pytest

            Exit codes: 0 success, 1 failure, 64 wrong usage, 78 mistakes in the config.
            """,
        version: Version.text,
        subcommands: [
            Serve.self, Check.self, Dashboard.self, Count.self, Objects.self, Documents.self, Why.self, Clean.self, Save.self,
            Load.self,
            ModeCommand.self, Changes.self, Warnings.self, RouteCommand.self, MapCommand.self, Explain.self,
            KeyCommand.self,
            Record.self, RecordingCommand.self, Freeze.self, Replay.self, Run.self, Diff.self, Import.self, Export.self,
        ]
    )
}

/// Which Larder this is.
enum Version {
    static let text = "0.2.0"
}
