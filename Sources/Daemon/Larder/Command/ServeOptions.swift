import ArgumentParser
import Settings

/// Where a daemon listens, for the commands that start one for a recording.
struct ServeOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where programs reach it: HOST:PORT or unix:PATH; may be repeated. (default: 127.0.0.1:8787)",
            valueName: "addr"
        ),
        transform: Address.option
    )
    var listen: [Address] = []

    @Option(
        help: ArgumentHelp(
            "Where the admin side listens; may be repeated. (default: 127.0.0.1:8788)",
            valueName: "addr"
        ),
        transform: Address.option
    )
    var admin: [Address] = []

    @Option(
        help: ArgumentHelp(
            "The file in which objects and responses are kept. (default: a temporary one)",
            valueName: "file"
        ),
        completion: .file()
    )
    var store: String?

    func validate() throws { try GivenText.check(["--store": store]) }

    var overrides: ConfigOverrides { ConfigOverrides(listen: listen, admin: admin, storePath: store) }
}

extension ConfigFile {
    /// The settings; warnings are printed, errors end the command.
    func usable() throws -> Configuration {
        for diagnostic in diagnostics { Terminal.complain(diagnostic.description) }
        guard !diagnostics.contains(where: { $0.severity == .error }) else { throw ExitCode.badConfig }
        return settings
    }
}
