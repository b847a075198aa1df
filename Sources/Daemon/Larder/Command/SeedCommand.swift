import Admin
import ArgumentParser
import Foundation
import Glibc
import Settings
import Upstream

struct SeedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "seed",
        abstract: "Store objects from a file, as if a response had just shown them.",
        discussion: """
            The file has one JSON object as the API would send it, a list of them, or one per line (NDJSON); - reads the \
            standard input:

              larder seed User users.json
              jq -c '.users[]' dump.json | larder seed User -
              larder seed Issue issues.ndjson --upstream github --principal p-1a2b3c4d

            Stored responses that show the objects show the new values from then on. The API is not asked, and what it says \
            later counts as newer. Objects belong to requests without credentials unless --principal names the label of \
            others, as `larder objects` shows it.

            The file is stored in batches, each whole or not at all. If something is wrong, the batches before it stay. \
            Objects without an identity are skipped.
            """
    )

    @Argument(help: "The model's name.", completion: .models) var model: String
    @Argument(help: .value("file", "The file, or - for the standard input."), completion: .file()) var file: String
    @Option(help: .value("name", "The upstream, where several have the model."), completion: .upstreams)
    var upstream: String?
    @Option(help: .value("label", "The principal whose objects they are. (default: anonymous)")) var principal: String?
    @OptionGroup var fields: FieldOptions
    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.require(["model": model, "file": file])
        try GivenText.check(["--upstream": upstream, "--principal": principal])
        try GivenText.check(["--header": fields.header])
    }

    func run() throws {
        let input = file == "-" ? 0 : open(file, O_RDONLY | O_CLOEXEC)
        guard input >= 0 else { throw CommandFailure("cannot read \(file): \(systemMessage(errno))") }
        defer { if input > 0 { close(input) } }
        var status = stat()
        guard fstat(input, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            throw CommandFailure("cannot read \(file): it is a folder")
        }
        let length = status.st_mode & S_IFMT == S_IFREG && input > 0 ? Int(status.st_size) : nil
        var bytes: [UInt8] = []
        try send(input, length) { bytes += $0 }
        let response = try options.decode(SeedResponse.self, bytes)
        try options.present(SeedResponse.self, bytes) { $0.text }
        // Nothing was stored, so it did not work.
        if response.skipped == response.values { throw ExitCode.failure }
    }

    private func send(_ input: Int32, _ length: Int?, received: (UnsafeRawBufferPointer) -> Void) throws {
        let query = [("upstream", upstream), ("principal", principal)] + fields.header.map { ("header", Optional($0)) }
        let progress = UploadProgress(of: length, isShown: !options.json && isatty(2) == 1)
        defer { progress.end() }
        let upload = CurlExchange.Upload(descriptor: input, length: length) { progress.sent($0) }
        try options.client().transfer(Target.make(["objects", model], query), upload: upload, received: received)
    }
}

/// Shows how much of a file is sent, once that takes longer than a second.
private final class UploadProgress {
    private let length: Int?
    private let isShown: Bool
    private let begun = ContinuousClock.now
    private var last: ContinuousClock.Instant?

    init(of length: Int?, isShown: Bool) { (self.length, self.isShown) = (length, isShown) }

    func sent(_ count: Int) {
        let now = ContinuousClock.now
        guard isShown, now - begun > .seconds(1), last.map({ now - $0 > .milliseconds(300) }) ?? true else { return }
        last = now
        Terminal.progress("sent \(HumanText.bytes(count))" + (length.map { " of \(HumanText.bytes($0))" } ?? ""))
    }

    func end() { if last != nil { Terminal.progress("") } }
}

extension SeedResponse {
    fileprivate var text: String {
        let stored = values - skipped
        let parts = [
            "\(created) created", "\(changed) changed",
            unchanged > 0 ? "\(HumanText.count(unchanged, "value")) unchanged" : nil,
        ]
        var lines = ["seeded \(HumanText.count(stored, "value")): \(parts.compactMap(\.self).joined(separator: ", "))"]
        if skipped > 0 { lines.append("skipped \(HumanText.count(skipped, "value")):") }
        lines += reasons.map { "  \($0.text)" }
        if !warnings.isEmpty { lines.append("warnings:") }
        lines += warnings.map { "  \($0.text)" }
        return lines.joined(separator: "\n")
    }
}

extension SeedResponse.Finding {
    fileprivate var text: String {
        let place = pointer.map { $0.isEmpty ? "" : " at \($0)" } ?? ""
        let times = count > 1 ? " (\(count) times)" : ""
        return "line \(line)\(place): \(message) [\(kind)]\(times)"
    }
}
