import Admin
import ArgumentParser
import Foundation
import HTTPSemantics
import Settings

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the daemon: serve an API from the cache.",
        discussion: """
            With a URL alone it is a careful HTTP cache for any REST API:

              larder serve --upstream https://api.example.com

            Many servers say nothing of caching. Then only you can know how long their responses may be used:

              larder serve --upstream https://api.example.com --fresh 60s

            A preset adds models and routes, so that Larder knows the objects in the responses:

              larder serve --preset github

            A config of your own can do all of this; `larder check` finds its mistakes:

              larder serve --config larder.yaml --listen unix:/run/user/1000/larder.sock

            Flags override the config, and the config overrides the defaults. Without --config, --preset and --upstream, the \
            environment variables LARDER_CONFIG, LARDER_PRESET and LARDER_UPSTREAM say the same. If none of them is set, the \
            config is ~/.config/larder/larder.yaml or, if there is none, /etc/larder/larder.yaml. LARDER_FRESH stands for \
            --fresh, LARDER_HOSTS adds to hosts of every upstream, LARDER_BIND is the IP address of the default addresses, and \
            LARDER_ADMIN_TOKEN is accepted on the admin side. They are meant for containers.

            SIGTERM and SIGINT stop the daemon after the requests in flight; a second signal stops it at once. SIGHUP \
            reads the config again, as `larder reload` does; SIGUSR1 reopens the file of the access log.
            """
    )

    @OptionGroup var source: ConfigOptions

    @Option(
        help: .value(
            "addr",
            "The address for programs: HOST:PORT or unix:PATH; may be repeated. (default: 127.0.0.1:8787)"
        ),
        transform: Address.option
    )
    var listen: [Address] = []

    @Option(
        help: .value(
            "addr",
            "The admin address, which the other commands use; may be repeated. (default: 127.0.0.1:8788)"
        ),
        transform: Address.option
    )
    var admin: [Address] = []

    @Option(help: .value("file", "The file that stores objects and responses."), completion: .file()) var store: String?

    @Option(
        help: .value(
            "mode",
            "auto, online, or offline: serve what is stored, and never ask the upstream. (default: auto)"
        )
    )
    var mode: Configuration.Mode?

    @Option(help: .value("n", "The number of event loops that serve clients. (default: one per core, at most four)"))
    var workers: Int?

    @Option(
        help: .value(
            "time",
            "How long responses that say nothing of caching are fresh: fresh_unsaid of every upstream. (default: that of the config)"
        ),
        transform: { try ConfigOverrides.wholeSeconds($0) }
    )
    var fresh: Duration?

    @Option(
        help: .value(
            "level",
            "The least severe log messages: trace, debug, info, notice, warning or error. (default: info)"
        )
    )
    var logLevel: Configuration.Log.Level?

    @Option(
        help: .value(
            "format",
            "A line for each request: off, short, common or json. (default: short on a terminal, else off)"
        )
    )
    var accessLog: Configuration.AccessLog.Format?

    @Flag(help: "Write each log line as a JSON object, for programs.") var json = false

    func validate() throws { if let workers { try GivenNumber.check("--workers", workers, in: 1...64) } }

    func run() throws {
        HarmlessSignals.hold()
        StandardDescriptors.open()
        let environment = Environment.variables
        let settings = try settings(environment: environment)
        let form = json ? LogForm.json : .suitable(for: environment)
        LogSetup.start(form, level: settings.log.level)
        var role = RecordingRole.none
        role.config = try source.portable(settings, environment: environment)
        try runDaemon(
            settings,
            role: role,
            source: try configSource(environment: environment),
            // Who starts it in a mode means that.
            remembersMode: mode == nil,
            logForm: form
        )
    }

    /// The settings; warnings are printed, errors end the command.
    func settings(environment: [String: String]) throws -> Configuration {
        for mistake in EnvironmentMistakes.find(in: environment) { Terminal.complain("larder: \(mistake)") }
        if let (path, variable) = source.passedOver(environment: environment) {
            Terminal.complain(
                "larder: \(path) is not read, because \(variable) is set; LARDER_CONFIG=\(path) would have it read"
            )
        }
        let file = try file(environment: environment)
        let settings = try file.usable()
        guard settings.store.path != nil else {
            Terminal.complain(
                "larder: there is no place for the store: neither STATE_DIRECTORY nor HOME is set; name a file with --store FILE"
            )
            throw ExitCode.badConfig
        }
        return settings
    }

    /// The config with the flags and with defaults that depend on the environment.
    private func file(environment: [String: String]) throws -> ConfigFile {
        var overrides = ConfigOverrides(listen: listen, admin: admin, storePath: store)
        try overrides.takeReach(from: environment)
        (overrides.mode, overrides.workers) = (mode, workers)
        (overrides.logLevel, overrides.accessLog) = (logLevel, accessLog)
        overrides.freshUnsaid = try fresh ?? ConfigOverrides.fresh(environment)
        return try source.file(overrides, environment: environment).completed { settings in
            if settings.store.path == nil { settings.store.path = Defaults(environment: environment).storePath }
            // An operator at a terminal wants to see the requests.
            if settings.accessLog == Configuration.AccessLog(), isatty(2) == 1 {
                settings.accessLog.format = json ? .json : .short
            }
        }
    }

    private func configSource(environment: [String: String]) throws -> ConfigSource {
        let command = self
        return ConfigSource(
            path: try source.path(environment: environment).map { URL(fileURLWithPath: $0).path }
        ) {
            let file = try command.file(environment: environment)
            return (file, try command.source.portable(file.settings, environment: environment))
        }
    }
}

extension Configuration.Mode: ExpressibleByArgument {}
extension Configuration.Log.Level: ExpressibleByArgument {}
extension Configuration.AccessLog.Format: ExpressibleByArgument {}

/// The addresses of a daemon that a command starts for a recording.
struct ServeOptions: ParsableArguments {
    @Option(
        help: .value(
            "addr",
            "Where programs reach it: HOST:PORT or unix:PATH; may be repeated. (default: 127.0.0.1:8787)"
        ),
        transform: Address.option
    )
    var listen: [Address] = []

    @Option(
        help: .value("addr", "Where the admin side listens; may be repeated. (default: 127.0.0.1:8788)"),
        transform: Address.option
    )
    var admin: [Address] = []

    @Option(
        help: .value("file", "The file in which objects and responses are kept. (default: a temporary one)"),
        completion: .file()
    )
    var store: String?

    func validate() throws { try GivenText.check(["--store": store]) }

    func overrides(environment: [String: String]) throws -> ConfigOverrides {
        var overrides = ConfigOverrides(listen: listen, admin: admin, storePath: store)
        try overrides.takeReach(from: environment)
        return overrides
    }
}
