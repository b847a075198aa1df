import ArgumentParser
import Foundation
import HTTPSemantics
import Recording
import Settings

struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a recording of a HAR, a VCR cassette or WireMock's mappings.",
        discussion: """
            The file is recognised by what is in it:

              larder import session.har fixtures
              larder import cassettes/users.yaml fixtures
              larder import wiremock/ fixtures --origin https://api.example.com

            Secrets are replaced as in a recording of Larder's own. What the recording cannot hold is listed.
            """
    )

    @Argument(help: .value("file", "The file, or WireMock's folder."), completion: .file()) var file: String
    @Argument(help: .value("folder", "The folder to make."), completion: .directory) var folder: String

    @Option(
        help: .value(
            "url[=prefix]",
            "The API to import, where the file has several or none, and the path under which programs will find it."
        )
    )
    var origin: [String] = []

    @Flag(help: "For programs: what was imported and what was left out, as a JSON object.") var json = false

    func validate() throws {
        try GivenText.check(["the file": file, "the folder": folder])
        for text in origin { _ = try given(text, for: "--origin", RecordingImport.Origin.init) }
    }

    func run() throws {
        let target = RecordingFolder(folder)
        let result = try RecordingImport(
            try ForeignRecording.read(file),
            file,
            origins: try origin.map { try RecordingImport.Origin($0) },
            into: target
        )
        guard !json else {
            let losses: [JSONText] = result.losses.map { ["what": .string($0.text), "count": .integer($0.count)] }
            return Terminal.out([
                "folder": .string(target.path), "exchanges": .integer(result.count), "left_out": .array(losses),
                "look_secret": .counts(result.lookalikes),
            ])
        }
        var summary = RecordingSummary()
        (summary.count, summary.lookalikes) = (result.count, result.lookalikes)
        for sentence in summary.sentences(folder: target.path) { Terminal.say(sentence) }
        for loss in result.losses { Terminal.out("left out: \(loss.text) (\(loss.count))") }
    }
}
