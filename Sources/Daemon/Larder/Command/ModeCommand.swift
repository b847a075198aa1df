import ArgumentParser
import HTTPSemantics
import Settings

/// `larder mode`: whether the upstream may be asked.
struct ModeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mode",
        abstract: "Show the daemon's mode, or change it.",
        discussion: """
            online: the upstream is asked for what is not known or not fresh. offline: it is never asked.

              larder mode
              larder mode offline

            A change lasts until the next one, or until the daemon is started anew.
            """
    )

    @Argument(help: "The mode to change to: online or offline.")
    var mode: Configuration.Mode?

    @OptionGroup var options: AdminOptions

    func run() throws {
        let answer =
            if let mode {
                try options.ask("PUT", "/mode", body: .object([("mode", .string(mode.rawValue))]))
            } else {
                try options.ask("GET", "/mode")
            }
        try options.present(Response.self, answer) { $0.mode }
    }

    private struct Response: Decodable {
        var mode: String
    }
}
