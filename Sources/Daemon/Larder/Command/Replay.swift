import ArgumentParser
import Foundation
import Recording
import Settings

/// `larder replay`: a daemon that serves a recording and never asks an upstream.
struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve the responses of a recording, without any upstream.",
        discussion: """
            Each request gets the response that was recorded for it, in the same order. What is not in the recording gets \
            504 and the names of the nearest recorded requests:

              larder replay fixtures
              larder replay fixtures --listen 127.0.0.1:9000 --strict

            Tests are run more easily with `larder run`.
            """
    )

    @Argument(help: ArgumentHelp("The folder with the recording.", valueName: "folder"), completion: .directory)
    var folder: String

    @Option(help: ArgumentHelp("A config in the place of the recording's own.", valueName: "file"))
    var config: String?

    @OptionGroup var addresses: ServeOptions
    @OptionGroup var options: ReplayOptions

    @Flag(help: "For programs: write each log line as a JSON object.")
    var json = false

    func validate() throws { try GivenText.check(["the folder": folder, "--config": config]) }

    func run() throws {
        HarmlessSignals.ignore()
        let environment = Environment.variables
        let recording = try orComplain { try Recording(RecordingFolder(folder)) }
        var settings = try recording.settings(config, addresses.overrides, environment: environment)
        LogSetup.start(json ? .json : .suitable(for: environment), level: settings.log.level)
        let store = try TemporaryStore(environment: environment)
        defer { store.remove() }
        if addresses.store == nil { settings.store.path = store.store }
        var role = options.role
        role.recording = recording
        if !json {
            role.missed = { miss in ReplayReport(missing: [miss], unused: []).lines.forEach(Terminal.complain) }
        }
        try orComplain { try runDaemon(settings, role: role) }
    }
}

/// How a recording is replayed.
struct ReplayOptions: ParsableArguments {
    /// The time that the clock shows.
    enum Clock: String, ExpressibleByArgument, CaseIterable {
        case recorded, now
    }

    @Flag(help: "Give each recorded response once; ask for it again, and it is 504.")
    var strict = false

    @Option(
        help: ArgumentHelp("recorded: dates stay as they were. now: they are shifted to today.", valueName: "clock")
    )
    var clock = Clock.recorded

    var role: RecordingRole {
        var role = RecordingRole()
        role.isStrict = strict
        role.clock = clock == .now ? Int64(Date().timeIntervalSince1970) : nil
        return role
    }
}

extension Recording {
    /// The settings of a replay: the recording's own, or those of a given config.
    func settings(_ config: String?, _ overrides: ConfigOverrides, environment: [String: String]) throws
        -> Configuration
    {
        let file =
            config.map { ConfigFile.read($0, environment: environment, overriding: overrides) }
            ?? ConfigFile.parse(manifest.config, file: folder.manifest, environment: [:], overriding: overrides)
        return try file.usable()
    }
}
