import ArgumentParser
import HTTPSemantics
import Recording
import Settings

struct RecordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record",
        abstract: "Proxy an API, and record its requests and responses.",
        discussion: """
            Every request goes to the API, and each client gets its response. Both are written into a folder that people \
            can read, edit and commit:

              larder record fixtures --upstream https://api.example.com
              larder record fixtures --preset github

            It ends with SIGINT or SIGTERM, and says what it has recorded. A folder that has a recording already is added \
            to. Credentials and cookies are replaced before anything is written.
            """
    )

    @Argument(help: .value("folder", "The folder to record into."), completion: .directory) var folder: String
    @OptionGroup var source: ConfigOptions
    @OptionGroup var addresses: ServeOptions
    @Flag(help: "For programs: what was recorded, and each log line, as JSON objects.") var json = false

    func validate() throws { try GivenText.check(["the folder": folder]) }

    func run() throws {
        HarmlessSignals.hold()
        let environment = Environment.variables
        let target = RecordingFolder(folder)
        var settings = try source.file(addresses.overrides(environment: environment), environment: environment).usable()
        let config = try source.portable(settings, environment: environment)
        if target.exists { try RecordingManifest.read(target).warnOfOtherUpstreams(settings, in: target) }
        LogSetup.start(json ? .json : .suitable(for: environment), level: settings.log.level)
        let store = try TemporaryStore(environment: environment)
        defer { store.remove() }
        settings = settings.asksAlways
        if addresses.store == nil { settings.store.path = store.store }
        var role = RecordingRole()
        role.target = (target, config)
        var summary = RecordingSummary()
        try runDaemon(settings, role: role, ended: { summary = $0.summary ?? summary })
        if json {
            Terminal.out(summary.json(folder: target.path))
        } else {
            let place = target.exists ? target.path : nil
            for sentence in summary.sentences(folder: place) { Terminal.complain("larder: \(sentence)") }
            if place == nil { Terminal.complain("larder: nothing was recorded, so there is no recording") }
        }
        if summary.failure != nil { throw ExitCode.failed }
    }
}

extension RecordingManifest {
    /// Warns if exchanges with other addresses are about to be added: they may belong to another API.
    func warnOfOtherUpstreams(_ settings: Configuration, in folder: RecordingFolder) {
        func list(_ settings: Configuration) -> String {
            settings.upstreams.map { "\($0.url)" }.joined(separator: ", ")
        }
        guard let known = try? ConfigFile.parse(config, file: folder.manifest, environment: [:]).usable(),
            list(known) != list(settings)
        else { return }
        Terminal.complain(
            "larder: \(folder.path) was recorded from \(list(known)), and exchanges with \(list(settings)) are added to it"
        )
    }
}
