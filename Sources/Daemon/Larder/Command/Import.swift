import ArgumentParser
import Foundation
import HTTPSemantics
import Recording
import Settings

/// `larder import`: a recording made of another tool's.
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

    @Argument(help: ArgumentHelp("The file, or WireMock's folder.", valueName: "file"), completion: .file())
    var file: String

    @Argument(help: ArgumentHelp("The folder to make.", valueName: "folder"), completion: .directory)
    var folder: String

    @Option(
        help: ArgumentHelp(
            "The API to import, where the file has several or none, and the path under which programs will find it.",
            valueName: "url[=prefix]"
        )
    )
    var origin: [String] = []

    @Flag(help: "For programs: what was imported and what was left out, as a JSON object.")
    var json = false

    func validate() throws {
        try GivenText.check(["the file": file, "the folder": folder])
        for text in origin {
            do {
                _ = try RecordingImport.Origin(text)
            } catch {
                throw ValidationError("--origin: \(error.description)")
            }
        }
    }

    func run() throws {
        let target = RecordingFolder(folder)
        let result = try orComplain {
            try RecordingImport(
                try ForeignRecording.read(file),
                file,
                origins: try origin.map { try RecordingImport.Origin($0) },
                into: target
            )
        }
        guard !json else {
            let losses: [JSONText] = result.losses.map {
                .object([("what", .string($0.text)), ("count", .integer($0.count))])
            }
            let suspects = result.suspects.sorted { $0.key < $1.key }
            return Terminal.out(
                JSONText.object([
                    ("folder", .string(target.path)), ("exchanges", .integer(result.count)),
                    ("left_out", .array(losses)),
                    ("look_secret", .object(suspects.map { (name: $0.key, value: .integer($0.value)) })),
                ]).text
            )
        }
        var summary = RecordingSummary()
        (summary.count, summary.suspects) = (result.count, result.suspects)
        for sentence in summary.sentences(folder: target.path) { Terminal.say(sentence) }
        for loss in result.losses { Terminal.out("left out: \(loss.text) (\(loss.count))") }
    }
}
