import Admin
import ArgumentParser
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
        let response =
            if let mode {
                try options.ask("PUT", "/mode", body: ModeResponse(mode: mode.rawValue))
            } else {
                try options.ask("GET", "/mode")
            }
        try options.present(ModeResponse.self, response) { $0.mode }
    }
}
