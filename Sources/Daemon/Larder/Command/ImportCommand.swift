import ArgumentParser
import Foundation
import HTTPSemantics
import Recording
import Settings

struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Make a recording of HARs, VCR cassettes or WireMock's mappings.",
        discussion: """
            A file is recognised by what is in it. Of a folder all files are imported:

              larder import session.har fixtures
              larder import cassettes/ more.yaml fixtures
              larder import wiremock/ fixtures --origin https://api.example.com
              larder import later.har --into fixtures

            Secrets are replaced as in a recording of Larder's own. What the recording cannot hold is listed.
            """
    )

    @Argument(
        help: .value("path", "Files and folders to import; without --into, the last one is the folder to make."),
        completion: .file()
    )
    var paths: [String]

    @Option(help: .value("folder", "Add to the recording in this folder."), completion: .directory) var into: String?

    @Option(
        help: .value(
            "url[=prefix]",
            "The API to import, where the file has several or none, and the path under which programs will find it."
        )
    )
    var origin: [String] = []

    @Flag(help: "For programs: what was imported and what was left out, as a JSON object.") var json = false

    func validate() throws {
        for path in paths { try GivenText.check(["a path": path]) }
        try GivenText.check(["--into": into])
        if into == nil, paths.count < 2 {
            throw ValidationError("say what to import and the folder to make: larder import FILE ... FOLDER")
        }
        if into != nil, !origin.isEmpty {
            throw ValidationError("--origin is for a new recording; leave it out with --into, which has its upstreams")
        }
        for text in origin { _ = try given(text, for: "--origin", RecordingImport.Origin.init) }
    }

    func run() throws {
        let target = RecordingFolder(into ?? paths[paths.count - 1])
        let files = try (into == nil ? paths.dropLast() : paths[...]).flatMap { try ForeignRecording.read($0) }
        let result =
            into == nil
            ? try RecordingImport(files, origins: try origin.map { try RecordingImport.Origin($0) }, into: target)
            : try RecordingImport(files, addedTo: target)
        guard !json else {
            let losses: [JSONText] = result.losses.kinds.map {
                ["what": .string($0.text), "count": .integer($0.count), "first": .string($0.first)]
            }
            return Terminal.out([
                "folder": .string(target.path), "exchanges": .integer(result.count), "left_out": .array(losses),
                "look_secret": .counts(result.lookalikes),
            ])
        }
        var summary = RecordingSummary()
        (summary.count, summary.lookalikes) = (result.count, result.lookalikes)
        for sentence in summary.sentences(folder: target.path) { Terminal.say(sentence) }
        for loss in result.losses.sentences { Terminal.out("left out: \(loss)") }
    }
}
