import Foundation
import TestSupport
import Testing

/// What `make soak` asks for, in the environment.
struct SoakOptions: Sendable {
    /// How many steps all histories have together.
    var steps = 1_000_000
    var minutes: Double?
    /// The first seed; with it alone, only its history is run.
    var seed: UInt64?

    /// Nil where nobody asked for a soak.
    static let current: SoakOptions? = {
        let environment = ProcessInfo.processInfo.environment
        guard environment["LARDER_SOAK"] != nil else { return nil }
        var options = SoakOptions()
        if let steps = environment["LARDER_SOAK_STEPS"].flatMap(Int.init) { options.steps = steps }
        options.minutes = environment["LARDER_SOAK_MINUTES"].flatMap(Double.init)
        options.seed = environment["LARDER_SOAK_SEED"].flatMap(UInt64.init)
        return options
    }()
}

@Suite(.scripts) struct SoakTests {
    @Test(.enabled(if: SoakOptions.current != nil, "make soak runs it"))
    func `millions of steps, each answered as the laws allow`() throws {
        let options = try #require(SoakOptions.current)
        var soak = Soak()
        let began = ContinuousClock.now
        var seed = options.seed ?? UInt64.random(in: 1...1_000_000_000)
        var steps = 0
        var reported = began
        while steps < options.steps {
            if let failure = soak.run(seed: seed) {
                FileHandle.standardError.write(Data("\(failure)\n".utf8))
                Issue.record("seed \(seed) fails")
                return
            }
            steps += soak.length
            let isOver = options.minutes.map { ContinuousClock.now - began > .seconds($0 * 60) } ?? false
            if isOver || options.seed != nil || ContinuousClock.now - reported > .seconds(5) || steps >= options.steps {
                reported = .now
                let seconds = (reported - began).components.seconds
                let figures = soak.figures
                let line =
                    "soak: \(steps) steps in \(seconds) s; \(figures.answers) answers, \(figures.hits) hits, "
                    + "\(figures.composed) composed, \(figures.revalidated) revalidated, \(figures.collapsed) collapsed; "
                    + "last seed \(seed)\n"
                FileHandle.standardError.write(Data(line.utf8))
            }
            if isOver || options.seed != nil { return }
            seed += 1
        }
    }
}
