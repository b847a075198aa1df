import Basics
import Mapping
import Synchronization

struct Job: Sendable {
    /// What it does, for the log and the metrics.
    enum Kind: String, CaseIterable, Sendable {
        /// Stores a response, or what a write's response shows and invalidates.
        case response, write
        case seed
        case absence
        /// Drops what shows an object that an upstream has sent on its own.
        case delivery
        /// Applies what another machine has announced.
        case sharing
        case invalidation, removal, freshening
        /// Notes a write before it is sent, or that it is over.
        case suspect
        case principal, event, clean, copy, load, erasure
        /// Brings objects to the current version of their models.
        case migration
        /// Notes uses and warnings, which may be lost.
        case note
        /// Does nothing: somebody waits for the jobs before it.
        case flush
    }

    enum Urgency: Sendable, Equatable {
        case batched
        case prompt
        /// Like `prompt`, but before everything queued, and in a transaction of its own.
        case express
        /// Like `express`, and on disk before it is reported as done.
        case durable

        /// Whether it goes ahead of queued jobs.
        var isExpress: Bool { self == .express || self == .durable }
    }

    let kind: Kind
    let urgency: Urgency
    var isAlone = false
    /// About how much it adds to the file.
    var bytes = 0
    /// Whether it may be dropped when the store is being closed and its time limit has passed.
    var isDispensable = false
    /// Does the work, and returns a function to call after the commit; runs again if its batch had to be rolled back.
    let work: @Sendable (WriterSession) throws -> @Sendable () -> Void
    let failed: @Sendable (StoreError) -> Void
}

/// The queue in which any thread posts jobs for the writer's thread, which waits by the monotonic clock.
final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var waiting: [Element] = []
        /// The elements that go ahead of `waiting`.
        var express: [Element] = []
        var isUrgent = false
        var isFinished = false

        var count: Int { waiting.count + express.count }
    }

    private let state = Mutex(State())
    // Signalled for the first element, for urgent ones, and at the end. Only the writer waits, and rechecks each time.
    private let wake = TimedSemaphore()

    /// Adds an element, an express one before all others that are not express; false once the mailbox is finished.
    func submit(_ element: Element, urgent: Bool, express isExpress: Bool = false) -> Bool {
        let (isAccepted, isFirst) = state.withLock { state in
            guard !state.isFinished else { return (false, false) }
            if isExpress { state.express.append(element) } else { state.waiting.append(element) }
            state.isUrgent = state.isUrgent || urgent
            return (true, state.count == 1)
        }
        if isAccepted, isFirst || urgent { wake.signal() }
        return isAccepted
    }

    var count: Int { state.withLock(\.count) }

    /// Whether there are elements that go ahead of all others.
    var hasExpress: Bool { state.withLock { !$0.express.isEmpty } }

    func takeExpress() -> [Element] {
        state.withLock { state in
            defer { state.express = [] }
            return state.express
        }
    }

    /// Accepts no more elements; those already waiting are still delivered.
    func finish() {
        state.withLock { $0.isFinished = true }
        wake.signal()
    }

    /// Takes all elements, once the first has waited for `delay` microseconds or an urgent one has arrived; one thread
    /// only.
    ///
    /// The result is empty if nothing arrived within `idle` microseconds, and nil once the mailbox is finished and
    /// empty.
    func take(delay: Int64, idle: Int64) -> [Element]? {
        wait(for: idle) { $0.count > 0 || $0.isFinished }
        guard state.withLock({ $0.count > 0 }) else { return state.withLock(\.isFinished) ? nil : [] }
        wait(for: delay) { $0.isUrgent || $0.isFinished }
        return state.withLock { state in
            defer { (state.waiting, state.express, state.isUrgent) = ([], [], false) }
            return state.express + state.waiting
        }
    }

    private func wait(for microseconds: Int64, until isDone: (State) -> Bool) {
        let deadline = ContinuousClock.now + .microseconds(microseconds)
        while !state.withLock({ isDone($0) }), wake.wait(until: deadline) {}
    }
}

/// A limit on number and bytes, for queued responses and for decomposed ones.
final class QueueLimit: Sendable {
    private struct State {
        var count = 0
        var bytes = 0
        var byteLimit: Int
        var waiters: [(bytes: Int, admit: @Sendable () -> Void)] = []
    }

    private let countLimit: Int
    private let state: Mutex<State>

    init(count: Int, bytes: Int) {
        countLimit = max(count, 1)
        state = Mutex(State(byteLimit: bytes))
    }

    /// Sets the limit on bytes; those who wait are admitted when the next one leaves.
    func setLimit(bytes: Int) { state.withLock { $0.byteLimit = bytes } }

    var queued: Int { state.withLock(\.count) }

    /// Takes room as soon as it is available, in the order of the calls, and then calls `admit`; at once if there is room now.
    func enter(bytes: Int, admit: @escaping @Sendable () -> Void) {
        let isAdmitted = state.withLock { state in
            guard state.waiters.isEmpty, hasRoom(for: bytes, in: state) else {
                state.waiters.append((bytes, admit))
                return false
            }
            state.count += 1
            state.bytes += bytes
            return true
        }
        if isAdmitted { admit() }
    }

    func leave(bytes: Int) {
        let admitted = state.withLock { state in
            state.count -= 1
            state.bytes -= bytes
            var admitted: [@Sendable () -> Void] = []
            while let first = state.waiters.first, hasRoom(for: first.bytes, in: state) {
                state.waiters.removeFirst()
                state.count += 1
                state.bytes += first.bytes
                admitted.append(first.admit)
            }
            return admitted
        }
        for admit in admitted { admit() }
    }

    // A single body always fits: one larger than the bound must not wait forever.
    private func hasRoom(for bytes: Int, in state: State) -> Bool {
        state.count == 0 || (state.count < countLimit && state.bytes + bytes <= state.byteLimit)
    }
}

/// A response that is queued to be stored; in one place, because many hold it until its commit.
final class QueuedResponse: Sendable {
    let document: ReceivedDocument
    /// When it was queued, in µs of the store's clock.
    let time: Int64
    let pathHash: Int64
    private let foreseen: (@Sendable () -> Void)?
    private let done: @Sendable (Result<Receipt, StoreError>) -> Void

    init(
        _ document: ReceivedDocument,
        in core: StoreCore,
        foreseen: (@Sendable () -> Void)?,
        done: @escaping @Sendable (Result<Receipt, StoreError>) -> Void
    ) {
        (self.document, self.foreseen, self.done) = (document, foreseen, done)
        pathHash = core.hasher.pathHash(upstream: document.key.upstream, url: document.key.url)
        time = core.clock.now()
    }

    var byteCount: Int { document.body.count + document.head.count + document.policy.count }

    /// Whether somebody waits to hear that it will be stored.
    var isForeseeable: Bool { foreseen != nil }

    /// Reports that it shows all that is known, and that only storing it is left to do.
    func foresee() { foreseen?() }

    /// Reports its commit, or that there is none, and gives up its place in the queue, and that of its decomposed body.
    func end(_ result: Result<Receipt, StoreError>, weight: Int?, in core: StoreCore) {
        if let weight { core.preparedBodies.leave(bytes: weight) }
        // `close` counts abandoned responses as still queued.
        let isGivenUp = if case .failure(.closed) = result { true } else { false }
        let waited = Double(core.clock.now() - time) / 1_000_000
        if case .success = result { core.updateStatistics { $0.responseTimes.record(seconds: waited) } }
        if !isGivenUp { core.queuedResponses.leave(self) }
        // This precedes leaving the queue: an empty queue means that every `done` has run.
        done(result)
        core.queueLimit.leave(bytes: document.body.count)
    }
}

/// The responses that are queued to be stored.
///
/// The effects of a write go ahead of them, unless one of them may be needed to identify the written object.
final class QueuedResponses: Sendable {
    private struct State {
        var count = 0
        var upstreams: [UpstreamKey: Int] = [:]
        /// How many of them represent a single object, by the hashes of their paths.
        var paths: [Int64: Int] = [:]
    }

    private let state = Mutex(State())

    var count: Int { state.withLock(\.count) }

    func enter(_ response: QueuedResponse) {
        state.withLock { state in
            state.count += 1
            guard let isList = response.document.rule?.isList else { return }
            state.upstreams[response.document.key.upstream, default: 0] += 1
            if !isList { state.paths[response.pathHash, default: 0] += 1 }
        }
    }

    func leave(_ response: QueuedResponse) {
        state.withLock { state in
            state.count -= 1
            guard let isList = response.document.rule?.isList else { return }
            Self.decrement(&state.upstreams[response.document.key.upstream])
            if !isList { Self.decrement(&state.paths[response.pathHash]) }
        }
    }

    /// Whether one of them may show which object a path represents.
    func mayIdentify(_ pathHash: Int64) -> Bool { state.withLock { $0.paths[pathHash] != nil } }

    /// Whether one of them may show which object of an upstream has a key.
    func mayHaveKeys(of upstream: UpstreamKey) -> Bool { state.withLock { $0.upstreams[upstream] != nil } }

    private static func decrement(_ count: inout Int?) { count = count.flatMap { $0 > 1 ? $0 - 1 : nil } }
}
