import Admin
import ArgumentParser
import Settings

struct ModeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mode",
        abstract: "Show the daemon's mode, or change it.",
        discussion: """
            auto: the daemon asks the upstream for what is not stored or not fresh; while the upstream cannot be reached, it serves a \
            stale response or 504 at once. online: it sends every such request. offline: it never asks the upstream.

              larder mode
              larder mode offline

            A change lasts until the next one, also over a restart, or until the config says another mode than it did then. A daemon \
            that is started with --mode begins in that mode.
            """
    )

    @Argument(help: "The mode to change to: auto, online or offline.") var mode: Configuration.Mode?
    @OptionGroup var options: AdminOptions

    func run() throws {
        let body = mode.map { ModeResponse(mode: $0.rawValue) }
        try options.show("/mode", as: ModeResponse.self, method: mode == nil ? "GET" : "PUT", body: body) { $0.mode }
    }
}
