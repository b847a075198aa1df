import ArgumentParser
import Foundation
import HTTPSemantics
import Recording
import Settings

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a recording as a HAR or as a VCR cassette.",
        discussion: """
            The file's extension chooses the format: .har for HAR 1.2, .yaml for a cassette of VCR.

              larder export fixtures session.har
              larder export fixtures cassettes/users.yaml
            """
    )

    @Argument(help: .value("folder", "The folder with the recording."), completion: .directory) var folder: String
    @Argument(help: .value("file", "The file to write."), completion: .file()) var file: String
    @Flag(help: "Replace the file if there is one.") var force = false
    @Flag(help: "For programs: what was written and what was left out, as a JSON object.") var json = false

    func validate() throws { try GivenText.check(["the folder": folder, "the file": file]) }

    func run() throws {
        guard force || access(file, F_OK) != 0 else {
            throw CommandFailure("\(file): there is a file already; --force replaces it")
        }
        let recording = try RecordingContents(RecordingFolder(folder))
        for notice in recording.notices { Terminal.complain("larder: \(notice)") }
        let settings = try recording.settings(nil, ConfigOverrides(), environment: [:])
        let (bytes, losses) = try RecordingExport.write(recording, to: file, upstreams: settings.upstreams)
        let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        guard FileManager.default.createFile(atPath: file, contents: Data(bytes), attributes: attributes) else {
            throw CommandFailure("\(file) cannot be written: \(systemMessage(errno))")
        }
        let count = recording.exchanges.count
        guard !json else {
            return Terminal.out([
                "file": .string(file), "exchanges": .integer(count), "left_out": .array(losses.map { .string($0) }),
            ])
        }
        Terminal.out("wrote \(HumanText.count(count, "exchange")) to \(file)")
        for loss in losses { Terminal.out("left out: \(loss)") }
    }
}
