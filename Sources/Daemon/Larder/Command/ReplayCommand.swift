import Admin
import ArgumentParser
import Foundation
import HTTPSemantics
import Recording
import Settings

struct ReplayCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Serve the responses of a recording, without any upstream.",
        discussion: """
            Each request gets the response that was recorded for it, in the same order. What is not in the recording gets \
            504 and the names of the nearest recorded requests:

              larder replay fixtures
              larder replay fixtures --listen 127.0.0.1:9000 --strict

            For tests, prefer `larder run`.
            """
    )

    @Argument(help: .value("folder", "The folder with the recording."), completion: .directory) var folder: String
    @Option(help: .value("file", "A config instead of the recording's own.")) var config: String?
    @OptionGroup var addresses: ServeOptions
    @OptionGroup var options: ReplayOptions
    @Flag(help: "For programs: write each log line as a JSON object.") var json = false

    func validate() throws { try GivenText.check(["the folder": folder, "--config": config]) }

    func run() throws {
        HarmlessSignals.hold()
        let environment = Environment.variables
        let recording = try RecordingContents(RecordingFolder(folder))
        let overrides = try addresses.overrides(environment: environment)
        var settings = try recording.settings(config, overrides, environment: environment)
        LogSetup.start(json ? .json : .suitable(for: environment), level: settings.log.level)
        let store = try TemporaryStore(environment: environment)
        defer { store.remove() }
        if addresses.store == nil { settings.store.path = store.store }
        var role = options.role
        role.recording = recording
        if !json {
            role.missed = { miss in ReplayReport(missing: [miss], unused: []).lines.forEach(Terminal.complain) }
        }
        try runDaemon(settings, role: role)
    }
}

struct ReplayOptions: ParsableArguments {
    enum Clock: String, ExpressibleByArgument, CaseIterable { case recorded, now }

    @Flag(help: "Use each recorded response once; further requests get 504.") var strict = false
    @Flag(help: "Respond at once, also where the recording has delays.") var noDelays = false

    @Option(help: .value("clock", "recorded: dates stay as they were. now: they are shifted to today."))
    var clock = Clock.recorded

    var role: RecordingRole {
        var role = RecordingRole()
        role.isStrict = strict
        role.isDelayed = !noDelays
        role.clock = clock == .now ? Int64(Date().timeIntervalSince1970) : nil
        return role
    }
}

extension RecordingContents {
    /// The settings of a replay: the recording's own, or those of a given config.
    func settings(_ config: String?, _ overrides: ConfigOverrides, environment: [String: String]) throws
        -> Configuration
    {
        let file =
            config.map { ConfigFile.read($0, environment: environment, overriding: overrides) }
            ?? ConfigFile.parse(manifest.config, file: folder.manifest, environment: [:], overriding: overrides)
        return try file.usable()
    }
}

extension RecordingSummary {
    /// The summary for programs; without a folder if nothing was recorded.
    func json(folder: String?) -> JSONText {
        let reasons = skipped.map { ("\($0)".snakeCased, $1) }
        return .object(present: [
            "folder": folder.map { .string($0) }, "exchanges": .integer(count),
            "not_recorded": .counts(Dictionary(uniqueKeysWithValues: reasons)), "look_secret": .counts(lookalikes),
            "failure": failure.map { .string($0) }, "problem": problem.map { .string($0) },
        ])
    }
}

extension JSONText {
    /// An object with a number for each name.
    static func counts(_ counts: [String: Int]) -> JSONText {
        .object(counts.sorted { $0.key < $1.key }.map { (name: $0.key, value: .integer($0.value)) })
    }
}

/// The report of a replay, for people and for programs.
struct ReplayReport {
    let missing: [Replayer.Miss]
    let unused: [String]

    private static let shownRequests = 20

    /// Lines for people; empty if everything went as recorded.
    var lines: [String] {
        var lines: [String] = []
        if !missing.isEmpty {
            lines.append("asked for, and not recorded:")
            lines += Self.listed(missing.map(\.request)) { title in
                guard let miss = missing.first(where: { $0.request == title }) else { return [] }
                let times = miss.recorded == 1 ? "once" : "\(miss.recorded) times"
                return (miss.recorded > 0 ? ["    recorded \(times), and asked for more often"] : [])
                    + miss.nearest.flatMap { near in
                        ["    nearest: \(near.request)"] + near.differences.map { "      \($0)" }
                    }
            }
        }
        if !unused.isEmpty { lines += ["recorded, and never asked for:"] + Self.listed(unused) { _ in [] } }
        return lines
    }

    private static func listed(_ titles: [String], _ details: (String) -> [String]) -> [String] {
        let all = titles.counted
        let lines = all.prefix(shownRequests).flatMap { title, count in
            ["  \(title)\(count > 1 ? " (\(count) times)" : "")"] + details(title)
        }
        return all.count > shownRequests ? lines + ["  … and \(all.count - shownRequests) more"] : lines
    }

    var json: JSONText {
        let misses: [JSONText] = missing.map { miss in
            let nearest: [JSONText] = miss.nearest.map {
                ["request": .string($0.request), "differences": .array($0.differences.map { .string($0) })]
            }
            return ["request": .string(miss.request), "recorded": .integer(miss.recorded), "nearest": .array(nearest)]
        }
        return ["not_recorded": .array(misses), "never_used": .array(unused.map { .string($0) })]
    }
}
