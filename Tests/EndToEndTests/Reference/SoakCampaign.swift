import Foundation
import TestSupport

/// What `make soak` asks for, in the environment.
struct SoakOptions: Sendable {
    /// How many steps all histories have together.
    var steps = 1_000_000
    var minutes: Double?
    /// The first seed; with it alone, only its history is run.
    var seed: UInt64?
    /// How many histories run from that seed on, if not one.
    var seeds: Int?
    /// How many run at a time: they mostly wait.
    var jobs = 3 * ProcessInfo.processInfo.activeProcessorCount

    /// For how many seconds a shorter history is looked for.
    var patience = 60.0

    /// Nil where nobody asked for a soak.
    static let current: SoakOptions? = {
        let environment = ProcessInfo.processInfo.environment
        guard environment["LARDER_SOAK"] != nil else { return nil }
        var options = SoakOptions()
        if let steps = environment["LARDER_SOAK_STEPS"].flatMap(Int.init) { options.steps = steps }
        options.minutes = environment["LARDER_SOAK_MINUTES"].flatMap(Double.init)
        options.seed = environment["LARDER_SOAK_SEED"].flatMap(UInt64.init)
        options.seeds = environment["LARDER_SOAK_SEEDS"].flatMap(Int.init)
        if let patience = environment["LARDER_SOAK_PATIENCE"].flatMap(Double.init) { options.patience = patience }
        if let jobs = environment["LARDER_SOAK_JOBS"].flatMap(Int.init) { options.jobs = max(1, jobs) }
        return options
    }()
}

/// Histories of one seed after the other, several at a time, until one fails or there have been enough.
struct SoakCampaign {
    let options: SoakOptions

    /// Runs it on threads of its own, telling every few seconds how far it is.
    ///
    /// - Returns: what fails.
    func run() -> [String] {
        let progress = Monitor(SoakProgress(options))
        for _ in 0..<options.jobs {
            progress.withLock { $0.running += 1 }
            startThread {
                while let seed = progress.withLock({ $0.nextSeed() }) {
                    var soak = Soak()
                    soak.patience = options.patience
                    soak.isWanted = { progress.withLock { $0.failures.isEmpty } }
                    let failure = soak.run(seed: seed)
                    progress.withLock { $0.note(soak, failure) }
                }
                progress.withLock { $0.running -= 1 }
            }
        }
        while !progress.wait(.seconds(5), until: { $0.running == 0 }) { Self.say(progress.current.line) }
        let last = progress.current
        Self.say(last.line)
        for failure in last.failures { Self.say(failure) }
        return last.failures
    }

    private static func say(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }
}

/// How far the histories of a soak are.
private struct SoakProgress: Sendable {
    let options: SoakOptions
    let first: UInt64
    let began = ContinuousClock.now
    /// How many histories were begun, and how many are over.
    private var begun = 0
    private var ended = 0
    var running = 0
    private var steps = 0
    private var figures = ReferenceRun.Figures()
    private(set) var failures: [String] = []

    init(_ options: SoakOptions) {
        self.options = options
        first = options.seed ?? UInt64.random(in: 1...1_000_000_000)
    }

    /// The seed of the history to be run next; nil when there have been enough.
    mutating func nextSeed() -> UInt64? {
        let isEnough =
            if options.seed != nil { begun >= options.seeds ?? 1 } else { begun * Soak().length >= options.steps }
        let isOver = options.minutes.map { ContinuousClock.now - began > .seconds($0 * 60) } ?? false
        guard !isEnough, !isOver, failures.isEmpty else { return nil }
        begun += 1
        return first + UInt64(begun - 1)
    }

    mutating func note(_ soak: Soak, _ failure: String?) {
        ended += 1
        steps += soak.steps
        figures += soak.figures
        if let failure { failures.append(failure) }
    }

    var line: String {
        let seconds = (ContinuousClock.now - began) / .seconds(1)
        let rate = Int(Double(steps) / max(seconds, 0.001))
        return
            "soak: \(steps) steps in \(Int(seconds)) s, \(rate) a second; \(ended) seeds from \(first) on; \(figures)"
    }
}
