import Admin
import ArgumentParser
import Recording

struct RecordingCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recording",
        abstract: "Record what goes through the running daemon.",
        discussion: """
            What each client receives is recorded, from the cache or from the API, until the recording is stopped:

              larder recording start monday
              larder recording stop monday
              larder recording get monday fixtures
              larder recording remove monday

            With --session only requests that have the field Larder-Session with that value are recorded. Starting a finished \
            recording again adds to it.
            """,
        subcommands: [Start.self, Stop.self, List.self, Get.self, Remove.self]
    )

    struct Start: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Begin to record.")

        @Argument(help: "What the recording is called.") var name: String
        @Option(help: .value("name", "Record requests with this Larder-Session only.")) var session: String?
        @OptionGroup var options: AdminOptions

        func validate() throws { try GivenText.check(["the name": name, "--session": session]) }

        func run() throws {
            let start = RecordingStart(name: name, session: session)
            try options.show("/recordings", as: RecordingStart.self, method: "POST", body: start) {
                "recording \($0.name); end it with: larder recording stop \($0.name)"
            }
        }
    }

    struct Stop: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "End a recording.")

        @Argument(help: "What the recording is called.") var name: String
        @OptionGroup var options: AdminOptions

        func validate() throws { try GivenText.check(["the name": name]) }

        func run() throws {
            let target = Target.make(["recordings", name, "stop"])
            try options.show(target, as: RecordingStopped.self, method: "POST") { stopped in
                let count = HumanText.count(stopped.exchanges, "exchange")
                return (["recorded \(count) as \(stopped.name)"] + stopped.notices).joined(separator: "\n")
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the recordings of the daemon.")

        @OptionGroup var options: AdminOptions

        func run() throws {
            try options.show("/recordings", as: RecordingsResponse.self) { listed in
                let lines = listed.recordings.map { entry in
                    let state = entry.running ? "running, \(entry.exchanges ?? 0) so far" : "complete"
                    return "\(entry.name)  \(state)\(entry.session.map { ", session \($0)" } ?? "")"
                }
                return lines.isEmpty ? "there is no recording" : lines.joined(separator: "\n")
            }
        }
    }

    struct Get: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Copy a recording into a folder.")

        @Argument(help: "What the recording is called.") var name: String
        @Argument(help: .value("folder", "The folder to make.")) var folder: String
        @OptionGroup var options: AdminOptions

        func validate() throws { try GivenText.check(["the name": name, "the folder": folder]) }

        func run() throws {
            let target = RecordingFolder(folder)
            let copied = try options.copyRecording(name, to: target)
            let state = copied.exchanges.map { "; it is still running, \(HumanText.count($0, "exchange")) so far" }
            let done = Copied(folder: target.path, files: copied.files.count, running: copied.exchanges != nil)
            options.report(done, "copied \(name) to \(target.path)\(state ?? "")")
        }

        private struct Copied: Encodable {
            var folder: String
            var files: Int
            var running: Bool
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Remove a recording from the daemon.")

        @Argument(help: "What the recording is called.") var name: String
        @OptionGroup var options: AdminOptions

        func validate() throws { try GivenText.check(["the name": name]) }

        func run() throws {
            let target = Target.make(["recordings", name])
            try options.show(target, as: RecordingRemoved.self, method: "DELETE") { "removed \($0.name)" }
        }
    }
}

extension AdminOptions {
    /// Copies a recording of the daemon into a new folder; returns what the daemon says of it.
    func copyRecording(_ name: String, to target: RecordingFolder) throws -> RecordingFilesResponse {
        func file(_ file: String) throws -> [UInt8] {
            try ask("GET", Target.make(["recordings", name], [("file", file)]))
        }
        // The lines first: the bodies that they name have been written before, also while it is running.
        let lines = try file(RecordingFolder.exchangesName)
        let listed = try decode(RecordingFilesResponse.self, try ask("GET", Target.make(["recordings", name])))
        try target.copy(listed.files) { $0 == RecordingFolder.exchangesName ? lines : try file($0) }
        return listed
    }
}
