import Foundation
import TestSupport

/// Daemons that record and replay.
extension Larder {
    /// Records what is asked of an origin into a folder.
    static func recording(
        _ origin: Origin,
        into recording: String,
        config: String? = nil,
        _ arguments: String...
    ) throws -> Larder {
        let folder = TemporaryFolder()
        let source =
            try config.map { ["--config", try folder.write($0, to: "larder.yaml")] } ?? ["--upstream", origin.url]
        return try Larder(arguments: source + arguments, folder: folder, verb: ["record", recording])
    }

    /// Answers from the recording in a folder.
    static func replaying(_ recording: String, _ arguments: String...) throws -> Larder {
        try Larder(arguments: arguments, folder: TemporaryFolder(), verb: ["replay", recording])
    }

    /// Runs a command of the binary, without any daemon.
    static func run(
        _ arguments: [String],
        environment: [String: String] = [:],
        limit: Duration = .seconds(600)
    ) throws -> (end: TestProcess.End?, output: String, errors: String) {
        let process = try TestProcess(binary, arguments, environment: self.environment.merging(environment) { $1 })
        return (process.waitForEnd(limit), process.output, process.errors)
    }
}

/// A recording in a folder of its own, and what is in it.
final class RecordedFolder {
    private let folder = TemporaryFolder()
    let path: String

    init() { path = folder.file("recording") }

    /// The lines of `exchanges.jsonl`.
    var lines: [String] {
        ((try? String(contentsOfFile: "\(path)/exchanges.jsonl", encoding: .utf8)) ?? "")
            .split(separator: "\n").map(String.init)
    }

    /// The files in it, with their bytes.
    var files: [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in FileManager.default.enumerator(atPath: path)?.allObjects as? [String] ?? [] {
            if let data = FileManager.default.contents(atPath: "\(path)/\(name)") { files[name] = Array(data) }
        }
        return files
    }

    func write(_ text: String, to name: String) throws {
        try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8)
    }

    /// Records what is asked of an origin.
    @discardableResult
    func record(_ origin: Origin, config: String? = nil, _ ask: (Larder) throws -> Void) throws -> String {
        let larder = try Larder.recording(origin, into: path, config: config)
        try ask(larder)
        larder.terminate()
        return larder.log
    }
}
