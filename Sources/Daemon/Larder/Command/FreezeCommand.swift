import Admin
import ArgumentParser
import Glibc
import HTTPSemantics
import Recording
import Settings

struct FreezeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "freeze",
        abstract: "Make a recording of what is stored.",
        discussion: """
            Each stored response becomes an exchange, as a client would get it now:

              larder freeze fixtures
              larder freeze fixtures --model User --max-age 1h
              larder freeze fixtures --route 'repos/*/*/issues'
              larder freeze fixtures --principal p-1a2b3c4d

            A recording is of one user. If responses of several are stored, name one, or anonymous. Secrets are replaced as \
            in every recording.
            """
    )

    @Argument(help: .value("folder", "The folder to make.")) var folder: String
    @Option(help: .value("name", "Only responses that show an object of this model.")) var model: String?
    @Option(help: .value("path", "Only responses of the route with this path in the config.")) var route: String?
    @Option(help: .value("label", "Only responses of the principal with this label.")) var principal: String?

    @Option(help: .value("duration", "Only responses that came no longer ago than this: 90s, 12h, 30d."))
    var maxAge: String?

    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.check([
            "the folder": folder, "--model": model, "--route": route, "--principal": principal, "--max-age": maxAge,
        ])
    }

    func run() throws {
        let target = RecordingFolder(folder)
        guard !target.exists else {
            throw CommandFailure("\(target.path): there is a recording already; name a new folder")
        }
        // The daemon creates it beside its store, and this command fetches it from there.
        let name = "freeze-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let body = ["name": name, "model": model, "route": route, "principal": principal, "max_age": maxAge]
        let response = try options.ask("POST", "/freeze", body: body.compactMapValues(\.self))
        defer { _ = try? options.client().send("DELETE", Target.make(["recordings", name])) }
        let frozen = try options.decode(RecordingStopped.self, response)
        _ = try options.copyRecording(name, to: target)
        guard !options.json else {
            return Terminal.out([
                "folder": .string(target.path), "exchanges": .integer(frozen.exchanges),
                "notices": .array(frozen.notices.map { .string($0) }),
            ])
        }
        let count = HumanText.count(frozen.exchanges, "exchange")
        Terminal.out((["recorded \(count) in \(target.path)"] + frozen.notices).joined(separator: "\n"))
    }
}
