import ArgumentParser
import Basics
import Foundation
import HTTPSemantics
import HTTPServer
import Recording
import Settings
import Synchronization

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Run a command against a recording.",
        discussion: """
            Starts a replay on a free port, passes its address to the command, and ends with the command's exit status:

              larder run fixtures -- pytest
              larder run fixtures --env GITHUB_API_URL=@ -- npm test
              larder run fixtures --record once --upstream https://api.example.com -- ./tests.sh

            The command finds the address in LARDER_URL, without a slash at its end; in --env NAME=@/path, "@" stands for \
            it. Afterwards larder says what was asked for and not recorded, and what was recorded and never asked for.

            --record none replays only. once records if there is no recording. new replays what is known and records the \
            rest. all records everything again.
            """
    )

    enum Mode: String, ExpressibleByArgument, CaseIterable { case none, once, new, all }

    @Argument(help: .value("folder", "The folder with the recording."), completion: .directory) var folder: String
    @Option(help: .value("mode", "none, once, new or all.")) var record = Mode.none

    @Option(help: .value("name=@", "A variable for the command, in which \"@\" at the beginning is the address."))
    var env: [String] = []

    @OptionGroup var source: ConfigOptions
    @OptionGroup var options: ReplayOptions

    @Flag(help: "For programs: what was not recorded and what was not used, as a JSON object on standard error.")
    var json = false

    @Argument(parsing: .postTerminator, help: .value("command", "The command and its arguments."))
    var command: [String] = []

    func validate() throws {
        try GivenText.check(["the folder": folder])
        guard !command.isEmpty else {
            throw ValidationError("say what to run: larder run \(folder) -- COMMAND [ARGUMENT ...]")
        }
        for variable in env where variable.firstIndex(of: "=").map({ $0 == variable.startIndex }) ?? true {
            throw ValidationError("--env: \"\(variable)\" is not a variable; write NAME=@ or NAME=@/path")
        }
        for variable in env {
            let (name, value) = (variable.prefix { $0 != "=" }, variable.drop { $0 != "=" }.dropFirst())
            guard value.dropFirst().contains("@") else { continue }
            throw ValidationError(
                "--env: \"@\" stands for the whole address, such as http://127.0.0.1:8787, and is only understood at the "
                    + "beginning; for \"\(variable)\" write \(name)=@ or \(name)=@/path"
            )
        }
    }

    func run() throws {
        HarmlessSignals.hold()
        let environment = Environment.variables
        let plan = try RunPlan(self, environment: environment)
        LogSetup.start(.suitable(for: environment), level: .warning)
        let store = try TemporaryStore(environment: environment)
        defer { store.remove() }
        var settings = plan.settings
        settings.store.path = store.store
        let child = ChildCommand(command)
        var (summary, report): (RecordingSummary?, ReplayReport?) = (nil, nil)
        try runDaemon(
            settings,
            role: plan.role,
            begun: { daemon in
                daemon.takesSignal = { child.pass($0) }
                child.start(variables(daemon, environment), ended: daemon.stopper)
            },
            ended: { daemon in
                summary = daemon.summary
                // What was missing has been recorded, if that was asked for.
                let isAdded = plan.role.target != nil
                report = daemon.report.map { ReplayReport(missing: isAdded ? [] : $0.missing, unused: $0.unused) }
            }
        )
        // A command that did not start asked for nothing, and to list everything would hide why.
        let shown = json || child.hasStarted ? report : nil
        show(summary, shown, try plan.finish(summary, hasSucceeded: child.status == 0))
        let isUnclean = options.strict && report.map { !$0.lines.isEmpty } ?? false
        throw ExitCode(child.status == 0 && (isUnclean || summary?.failure != nil) ? 1 : child.status)
    }

    private func variables(_ daemon: LarderDaemon, _ environment: [String: String]) -> [String: String] {
        var variables = environment
        let url = daemon.addresses.data.first.map { "http://\($0)" } ?? ""
        variables["LARDER_URL"] = url
        variables["LARDER_ADMIN"] = daemon.addresses.admin.first.map { "\($0)" }
        variables["LARDER_ADMIN_TOKEN"] = daemon.adminToken
        // A proxy that is meant for other hosts must not get what is meant for Larder.
        for (name, other) in [("no_proxy", "NO_PROXY"), ("NO_PROXY", "no_proxy")] {
            let hosts = environment[name] ?? environment[other] ?? ""
            variables[name] = hosts == "*" ? hosts : (hosts.isEmpty ? "" : "\(hosts),") + "127.0.0.1"
        }
        for variable in env {
            let parts = variable.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            variables[String(parts[0])] = parts[1].hasPrefix("@") ? url + parts[1].dropFirst() : String(parts[1])
        }
        return variables
    }

    private func show(_ summary: RecordingSummary?, _ report: ReplayReport?, _ recorded: RunPlan.Recorded) {
        if json {
            let recorded = summary?.json(folder: recorded.folder)
            Terminal.complain(json: .object(present: ["recorded": recorded, "replayed": report?.json]))
        } else {
            for line in report?.lines ?? [] { Terminal.complain("larder: \(line)") }
            for line in summary?.sentences(folder: recorded.folder) ?? [] { Terminal.complain("larder: \(line)") }
        }
        if let notice = recorded.notice { Terminal.complain("larder: \(notice)") }
    }
}

/// What a run does with its folder, by its mode.
private struct RunPlan {
    let settings: Configuration
    var role: RecordingRole
    private let folder: RecordingFolder
    /// A new recording, until it takes the place of the old one.
    private var replacement: RecordingReplacement?

    /// What became of what was recorded.
    struct Recorded {
        /// Where it is; nil if nothing was recorded anew.
        var folder: String?
        var notice: String?
    }

    init(_ run: RunCommand, environment: [String: String]) throws {
        folder = RecordingFolder(run.folder)
        role = run.options.role
        let anyPort = [Address.tcp(host: "127.0.0.1", port: 0)]
        let free = ConfigOverrides(listen: anyPort, admin: anyPort)
        let isGiven = run.source.config != nil || run.source.preset != nil || run.source.upstream != nil
        let mode =
            run.record == .once
            ? (folder.exists ? .none : .all) : run.record == .new && !folder.exists ? .all : run.record
        switch mode {
        case .none, .once, .new:
            let recording = try RecordingContents(folder)
            role.recording = recording
            let own = isGiven ? try run.source.file(free, environment: environment).usable() : nil
            let known = try own ?? recording.settings(nil, free, environment: environment)
            if mode == .new { recording.manifest.warnOfOtherUpstreams(known, in: folder) }
            settings = mode == .new ? (own ?? known.withoutBrowserAccess).asksAlways : known
            if mode == .new { role.target = (folder, recording.manifest.config) }
        case .all:
            let known: Configuration
            let config: String
            if !isGiven, folder.hasManifest {
                let manifest = try RecordingContents(folder).manifest
                config = manifest.config
                known = try ConfigFile.parse(config, file: folder.manifest, environment: [:], overriding: free).usable()
                    .withoutBrowserAccess
            } else {
                known = try run.source.file(free, environment: environment).usable()
                config = try run.source.portable(known, environment: environment)
            }
            settings = known.asksAlways
            let replacement = try RecordingReplacement(folder)
            role.target = (replacement.draft, config)
            self.replacement = replacement
        }
    }

    /// Puts a new recording in the place of the old one, unless that would lose data.
    func finish(_ summary: RecordingSummary?, hasSucceeded: Bool) throws -> Recorded {
        guard let replacement else { return Recorded(folder: folder.path) }
        let isThere = folder.exists
        guard let summary, summary.count > 0 else {
            let old = isThere ? "\(folder.path) stays as it was" : "there is no recording"
            return Recorded(notice: "nothing was recorded, so \(old)")
        }
        if isThere, !hasSucceeded || summary.failure != nil {
            replacement.leave()
            let reason = hasSucceeded ? "the new recording is not complete" : "the command failed"
            return Recorded(
                folder: replacement.draft.path,
                notice: "\(reason), so \(folder.path) stays as it was; the next --record all removes what was recorded"
            )
        }
        try replacement.commit()
        let advice = "the command failed, so \(folder.path) may lack exchanges; --record all records it again"
        return Recorded(folder: folder.path, notice: hasSucceeded ? nil : advice)
    }
}

/// A child process that may run for any time, and gets the signals.
final class ChildCommand: Sendable {
    private let command: [String]
    private let state = Mutex(State())

    private struct State {
        var pid: pid_t?
        var status: Int32 = 0
        var hasEnded = false
    }

    init(_ command: [String]) { self.command = command }

    /// The exit status as in a shell: 127 if there is no such command, 128 plus the signal if one ended it.
    var status: Int32 { state.withLock { $0.status } }

    var hasStarted: Bool { state.withLock { $0.pid != nil } }

    /// Starts it; `ended` is called once, on a thread of its own, when it has ended or could not be started.
    func start(_ variables: [String: String], ended: @escaping @Sendable () -> Void) {
        let pid: pid_t
        do {
            pid = try ChildProcess.start(command, variables)
        } catch {
            Terminal.complain("larder: \(command[0]): \(systemMessage(error.code))")
            state.withLock { ($0.status, $0.hasEnded) = (error.code == ENOENT ? 127 : 126, true) }
            return ended()
        }
        state.withLock { $0.pid = pid }
        Thread.detachNewThread { [self] in
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7F
            state.withLock { ($0.status, $0.hasEnded) = (signal == 0 ? (status >> 8) & 0xFF : 128 + signal, true) }
            ended()
        }
    }

    /// Passes a signal on; returns false if the command is not running.
    func pass(_ signal: Int32) -> Bool {
        state.withLock { state in
            guard let pid = state.pid, !state.hasEnded else { return false }
            // A terminal signals all of its foreground processes, including the command.
            if signal == SIGINT, tcgetpgrp(0) == getpgrp() { return true }
            kill(pid, signal)
            return true
        }
    }
}
