import ArgumentParser
import EventLoops
import Foundation
import HTTPSemantics
import Mapping
import Proxy
import Recording
import Settings
import Synchronization
import Upstream

struct DiffCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Compare a recording with the API as it is now, or with another recording.",
        discussion: """
            Sends the recording's GET and HEAD requests to the API, and says what is different:

              larder diff fixtures --header "Authorization=@TOKEN"
              larder diff fixtures other-fixtures

            breaking: another status, members that are gone or of another type. notice: new members. info: other values. \
            Requests that follow a recorded write to their path are left out: the API does not have what the write has \
            made.

            The exit code is 1 if anything is breaking that --update has not taken over, if a response was not updated, or \
            if nothing could be compared.
            """
    )

    @Argument(help: .value("folder", "The folder with the recording."), completion: .directory) var folder: String
    @Argument(help: .value("other", "Another recording, to be compared instead of the API.")) var other: String?
    @Option(help: .value("url", "The API's URL, instead of the recorded one.")) var upstream: String?

    @Option(
        help: .value(
            "name=@env",
            "A field to send with each request; what begins with \"@\" is the name of a variable."
        )
    )
    var header: [String] = []

    @Flag(help: "Store the new responses in the recording, except those with breaking changes.") var update = false
    @Flag(help: "With --update: also those with breaking changes.") var acceptBreaking = false
    @Flag(help: "For programs: all differences as a JSON object.") var json = false

    func validate() throws {
        try GivenText.check(["the folder": folder, "the other folder": other, "--upstream": upstream])
        if other != nil, upstream != nil || !header.isEmpty {
            throw ValidationError("--upstream and --header are for asking the API; leave them out with two recordings")
        }
        if acceptBreaking, !update { throw ValidationError("--accept-breaking is for --update; add it") }
        _ = try fields()
    }

    func run() throws {
        let recording = try RecordingContents(RecordingFolder(folder))
        for notice in recording.notices { Terminal.complain("larder: \(notice)") }
        let overrides = ConfigOverrides(upstream: try upstream.map(UpstreamURL.option))
        let settings = try recording.settings(nil, overrides, environment: [:])
        var comparison =
            if let other {
                try RecordingComparison(recording, try RecordingContents(RecordingFolder(other)))
            } else {
                try asked(recording, settings)
            }
        if update {
            comparison.keepRecorded(recording, acceptsBreaking: acceptBreaking)
            try comparison.update(recording, upstreams: settings.compiledUpstreams, credentials: try fields())
        }
        show(comparison)
        let isNothing = comparison.compared == 0 && !comparison.skipped.isEmpty
        if comparison.isBreaking(isUpdated: update) || !comparison.kept.isEmpty || isNothing { throw ExitCode.failed }
    }

    private func fields() throws -> Fields {
        var fields = Fields()
        for text in header {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw ValidationError("--header: \"\(text)\" is not a field; write NAME=@VARIABLE")
            }
            let variable = parts[1].hasPrefix("@") ? String(parts[1].dropFirst()) : nil
            guard let value = variable.map({ Environment.variables[$0] }) ?? parts[1] else {
                throw ValidationError("--header: the variable \(parts[1].dropFirst()) is not set")
            }
            fields.append(parts[0], value)
        }
        return fields
    }

    /// Requests each safe request once from the API, and compares the response with the recorded ones.
    private func asked(_ recording: RecordingContents, _ settings: Configuration) throws -> RecordingComparison {
        var comparison = RecordingComparison()
        let own = try fields()
        let client = try BlockingClient(settings)
        let compiled = try settings.compiledUpstreams
        for candidate in comparison.comparable(recording) {
            let exchange = recording.exchanges[candidate.number]
            guard let upstream = settings.upstreams.first(where: { $0.name == exchange.upstream }) else { continue }
            guard !exchange.request.target.contains("REDACTED") else {
                comparison.skip(exchange.title, "a parameter of it is redacted")
                continue
            }
            var fields = Fields(recorded: exchange.request.fields ?? [])
            fields.lines.removeAll { line in line.text.contains("REDACTED") || own.contains(line.lowercasedName) }
            fields.lines += own.lines
            do {
                let url = upstream.url.origin + exchange.request.target
                let request = UpstreamRequest(method: exchange.request.method, url: url, fields: fields)
                var response = try client.send(request, to: upstream)
                // Only that of a HEAD says more than the body.
                if exchange.request.method != "HEAD" { response.fields.remove("content-length") }
                let owner = compiled.first { $0.name == exchange.upstream }
                let isAnonymous = owner?.credentials(target: exchange.request.target, fields: fields) == nil
                try comparison.compare(candidate, of: recording, with: response, isAnonymous: isAnonymous)
            } catch let error as BlockingClient.Failure { comparison.skip(exchange.title, error.message) }
        }
        return comparison
    }

    private func show(_ comparison: RecordingComparison) {
        guard !json else { return Terminal.out(comparison.json(isUpdated: update)) }
        for finding in comparison.findings {
            Terminal.out(finding.request)
            for drift in finding.drifts { Terminal.out("  \(drift.severity.rawValue): \(drift.text)") }
        }
        for skipped in comparison.skipped {
            Terminal.complain("larder: not compared: \(skipped.request): \(skipped.reason)")
        }
        let count = comparison.findings.count
        Terminal.complain("larder: \(comparison.compared) compared, \(count) \(count == 1 ? "differs" : "differ")")
        for kept in comparison.kept { Terminal.complain("larder: not updated: \(kept.request): \(kept.reason)") }
        if update {
            let responses = HumanText.count(comparison.updates.count, "response")
            Terminal.complain("larder: updated \(responses) in \(RecordingFolder(folder).path)")
        }
    }
}

extension RecordingComparison {
    fileprivate func json(isUpdated: Bool) -> JSONText {
        let requests: [JSONText] = findings.map { finding in
            let drifts: [JSONText] = finding.drifts.map {
                ["severity": .string($0.severity.rawValue), "text": .string($0.text)]
            }
            return ["request": .string(finding.request), "differences": .array(drifts)]
        }
        return [
            "compared": .integer(compared), "taken_over": .integer(isUpdated ? updates.count : 0),
            "requests": .array(requests),
            "not_compared": .array(skipped.map(Self.json)), "not_updated": .array(kept.map(Self.json)),
        ]
    }

    private static func json(_ omission: Omission) -> JSONText {
        ["request": .string(omission.request), "reason": .string(omission.reason)]
    }
}

/// Sends requests to upstreams for a command, which waits for each response; it lives as long as the process.
actor BlockingClient {
    struct Failure: Error { let message: String }

    private nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }
    private let settings: Configuration
    private var clients: [String: UpstreamClient] = [:]

    init(_ settings: Configuration) throws {
        signal(SIGPIPE, SIG_IGN)
        self.settings = settings
        loop = try EventLoop(name: "upstream")
        loop.start()
        // Never released: clients may only be destroyed on the loop's thread, which ends with the process.
        _ = Unmanaged.passRetained(self)
    }

    nonisolated func send(
        _ request: UpstreamRequest,
        to upstream: Configuration.Upstream
    ) throws -> WholeExchange.Response {
        let response = CollectedResponse()
        loop.enqueue { self.assumeIsolated { _ = $0.client(for: upstream).start(request, response) } }
        return try response.wait()
    }

    private func client(for upstream: Configuration.Upstream) -> UpstreamClient {
        if let client = clients[upstream.name] { return client }
        let client = UpstreamClient(loop: loop, options: settings.options(for: upstream))
        clients[upstream.name] = client
        return client
    }

    private final class CollectedResponse: TransferDelegate, Sendable {
        private struct State {
            var response = WholeExchange.Response()
            var failure: String?
        }

        private let state = Mutex(State())
        private let isDone = DispatchSemaphore(value: 0)

        func informational(status: Int, fields: Fields) {}

        func received(head: UpstreamHead) {
            state.withLock { $0.response = .init(status: head.status, fields: head.fields) }
        }

        func received(body: UnsafeRawBufferPointer) -> Flow {
            let bytes = Array(body)
            return state.withLock { state in
                guard state.response.body.count + bytes.count <= RecordingFolder.bodyLimit else {
                    state.failure = "the response is larger than 256 MiB"
                    return .proceed
                }
                state.response.body += bytes
                return .proceed
            }
        }

        func completed(_ result: Result<TransferSummary, UpstreamError>) {
            state.withLock { state in
                switch result {
                case .failure(let error): state.failure = error.message
                case .success(let summary): if summary.defect != nil { state.failure = "the response broke off" }
                }
            }
            isDone.signal()
        }

        func wait() throws -> WholeExchange.Response {
            isDone.wait()
            let state = state.withLock { $0 }
            if let failure = state.failure { throw Failure(message: failure) }
            var response = state.response
            response.fields = response.fields.withoutHopByHop()
            for name in ["age", "alt-svc"] { response.fields.remove(name) }
            return response
        }
    }
}
