import ArgumentParser
import Settings

/// `larder serve`: the daemon.
struct Serve: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stand in front of an API until told to stop.",
        discussion: """
            A careful HTTP cache for any REST API:

              larder serve --upstream https://api.example.com

            With the models and routes of a shipped preset, so that objects are known by their identity:

              larder serve --preset github

            With a config of your own; `larder check` finds its mistakes:

              larder serve --config larder.yaml --listen unix:/run/user/1000/larder.sock

            Flags win over the config, the config over the defaults. Without --config, --preset and --upstream the file \
            is ~/.config/larder/larder.yaml, else /etc/larder/larder.yaml.
            """
    )

    @OptionGroup var source: ConfigOptions

    @Option(
        help: ArgumentHelp(
            "Where programs reach it: HOST:PORT or unix:PATH; may be repeated. (default: 127.0.0.1:8787)",
            valueName: "addr"
        ),
        transform: Address.option
    )
    var listen: [Address] = []

    @Option(
        help: ArgumentHelp("Where the admin side listens. (default: 127.0.0.1:8788)", valueName: "addr"),
        transform: Address.option
    )
    var admin: Address?

    @Option(help: ArgumentHelp("The file in which objects and answers are kept.", valueName: "file"))
    var store: String?

    @Option(help: ArgumentHelp("online or offline (answer from what is known, never ask).", valueName: "mode"))
    var mode: Configuration.Mode?

    @Option(help: ArgumentHelp("Event loops that serve clients. (default: one per core, four at most)", valueName: "n"))
    var workers: Int?

    @Option(
        help: ArgumentHelp("trace, debug, info, notice, warning or error. (default: info)", valueName: "level")
    )
    var logLevel: Configuration.Log.Level?

    @Flag(help: "For programs: write each log line as a JSON object.")
    var json = false

    func validate() throws {
        if let workers, !(1...64).contains(workers) {
            throw ValidationError("--workers: \(workers) is not a number from 1 to 64")
        }
    }

    func run() throws {
        HarmlessSignals.ignore()
        let settings = try settings(environment: Environment.variables)
        LogSetup.start(json ? .json : .suitable(for: Environment.variables), level: settings.log.level)
        throw ExitCode(try runDaemon(settings))
    }

    /// The settings; warnings are told, errors end the command.
    func settings(environment: [String: String]) throws -> Configuration {
        let overrides = ConfigOverrides(
            listen: listen,
            admin: admin,
            storePath: store,
            mode: mode,
            workers: workers,
            logLevel: logLevel
        )
        var settings = try source.file(overrides, environment: environment).usable()
        if settings.store.path == nil { settings.store.path = Defaults(environment: environment).storePath }
        guard settings.store.path != nil else {
            Terminal.complain(
                "there is no place for the store: neither STATE_DIRECTORY nor HOME is set; name one by --store FILE"
            )
            throw ExitCode.badConfig
        }
        return settings
    }
}

extension Configuration.Mode: ExpressibleByArgument {}
extension Configuration.Log.Level: ExpressibleByArgument {}
