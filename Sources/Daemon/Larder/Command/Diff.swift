import ArgumentParser
import Foundation
import HTTPSemantics
import Mapping
import Proxy
import Recording
import Settings

/// `larder diff`: compares a recording with the API or with another recording.
struct Diff: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Compare a recording with the API as it is now, or with another recording.",
        discussion: """
            Sends the recording's GET and HEAD requests to the API, and says what is different:

              larder diff fixtures --header "Authorization=@TOKEN"
              larder diff fixtures other-fixtures

            breaking: another status, members that are gone or of another type. notice: new members. info: other values. \
            The exit code is 1 if anything is breaking.
            """
    )

    @Argument(help: ArgumentHelp("The folder with the recording.", valueName: "folder"), completion: .directory)
    var folder: String

    @Argument(help: ArgumentHelp("Another recording, to be compared instead of the API.", valueName: "other"))
    var other: String?

    @Option(help: ArgumentHelp("The API to ask, in the place of the recorded one.", valueName: "url"))
    var upstream: String?

    @Option(
        help: ArgumentHelp(
            "A field to send with each request; what begins with \"@\" is the name of a variable.",
            valueName: "name=@env"
        )
    )
    var header: [String] = []

    @Flag(help: "Take the new responses over into the recording.")
    var update = false

    @Flag(help: "For programs: all differences as a JSON object.")
    var json = false

    func validate() throws {
        try GivenText.check(["the folder": folder, "the other folder": other, "--upstream": upstream])
        if other != nil, upstream != nil || !header.isEmpty {
            throw ValidationError("--upstream and --header are for asking the API; leave them out with two recordings")
        }
        _ = try fields()
    }

    func run() throws {
        let recording = try orComplain { try Recording(RecordingFolder(folder)) }
        var overrides = ConfigOverrides()
        if let upstream {
            do {
                overrides.upstream = try UpstreamURL(upstream)
            } catch {
                throw ValidationError("--upstream: \(error.description)")
            }
        }
        let settings = try recording.settings(nil, overrides, environment: [:])
        let upstreams = try settings.upstreams.enumerated().map { ProxiedUpstream(index: $0, try CompiledUpstream($1)) }
        let comparison = try orComplain {
            if let other { return try RecordingComparison(recording, try Recording(RecordingFolder(other))) }
            return try asked(recording, settings)
        }
        if update { try orComplain { try comparison.update(recording, upstreams: upstreams) } }
        show(comparison)
        if comparison.isBreaking || comparison.compared == 0 && !comparison.skipped.isEmpty { throw ExitCode.failed }
    }

    /// The fields given on the command line.
    private func fields() throws -> Fields {
        var fields = Fields()
        for text in header {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw ValidationError("--header: \"\(text)\" is no field; write NAME=@VARIABLE")
            }
            guard parts[1].hasPrefix("@") else {
                fields.append(parts[0], parts[1])
                continue
            }
            guard let value = Environment.variables[String(parts[1].dropFirst())] else {
                throw ValidationError("--header: the variable \(parts[1].dropFirst()) is not set")
            }
            fields.append(parts[0], value)
        }
        return fields
    }

    /// Requests each safe request once from the API, and compares the response with the last recorded one.
    private func asked(_ recording: Recording, _ settings: Configuration) throws -> RecordingComparison {
        var comparison = RecordingComparison()
        var last: [String: Int] = [:]
        for (number, exchange) in recording.exchanges.enumerated()
        where MethodNames.safe.contains(exchange.request.method) {
            last["\(exchange.upstream) \(exchange.title) \(exchange.request.fields ?? [])"] = number
        }
        let own = try fields()
        let questions = try UpstreamQuestions(settings)
        for number in last.values.sorted() {
            let exchange = recording.exchanges[number]
            guard let upstream = settings.upstreams.first(where: { $0.name == exchange.upstream }) else { continue }
            guard !exchange.request.target.contains("REDACTED") else {
                comparison.skipped.append((exchange.title, "a parameter of it is redacted"))
                continue
            }
            var fields = Fields(recorded: exchange.request.fields ?? [])
            fields.lines.removeAll { line in
                line.text.contains("REDACTED") || own.contains(line.lowercasedName)
            }
            fields.lines += own.lines
            do {
                let url = upstream.url.origin + exchange.request.target
                let response = try questions.ask(upstream, exchange.request.method, url, fields)
                try comparison.compare(number, of: recording, with: response)
            } catch let error as UpstreamQuestions.Failure {
                comparison.skipped.append((exchange.title, error.message))
            }
        }
        return comparison
    }

    private func show(_ comparison: RecordingComparison) {
        guard !json else { return Terminal.out(comparison.json(isUpdated: update).text) }
        for finding in comparison.findings {
            Terminal.out(finding.request)
            for drift in finding.drifts { Terminal.out("  \(drift.severity.rawValue): \(drift.text)") }
        }
        for skipped in comparison.skipped {
            Terminal.complain("larder: not compared: \(skipped.request): \(skipped.reason)")
        }
        let count = comparison.findings.count
        Terminal.complain("larder: \(comparison.compared) compared, \(count) \(count == 1 ? "differs" : "differ")")
        if update {
            let responses = HumanText.count(comparison.updates.count, "response")
            Terminal.complain("larder: took over \(responses) into \(RecordingFolder(folder).path)")
        }
    }
}

private enum MethodNames {
    static let safe: Set<String> = ["GET", "HEAD"]
}

extension RecordingComparison {
    /// For programs.
    fileprivate func json(isUpdated: Bool) -> JSONText {
        .object([
            ("compared", .integer(compared)), ("taken_over", .integer(isUpdated ? updates.count : 0)),
            (
                "differences",
                .array(
                    findings.map { finding in
                        .object([
                            ("request", .string(finding.request)),
                            (
                                "drifts",
                                .array(
                                    finding.drifts.map {
                                        .object([
                                            ("severity", .string($0.severity.rawValue)), ("text", .string($0.text)),
                                        ])
                                    }
                                )
                            ),
                        ])
                    }
                )
            ),
            (
                "not_compared",
                .array(skipped.map { .object([("request", .string($0.request)), ("reason", .string($0.reason))]) })
            ),
        ])
    }
}
