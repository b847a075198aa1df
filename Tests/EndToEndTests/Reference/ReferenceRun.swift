import Glibc
import TestSupport

/// What was observed is not what the laws allow.
struct Violation: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// One history, run against the real daemon and the model at once.
///
/// Only the thread that runs it uses it. A clock that counts events stands for time: what one step does is over before
/// the next begins, but for the responses that are held.
final class ReferenceRun {
    /// A request whose response is still to come.
    struct Open {
        let ask: Ask
        let client: Client
        let sent: Int
        /// What was known of the last write when it was sent: no flight begun before may answer it (law 10).
        let lastWrite: Int
        /// The ETags it named, to be told of nothing that it has, or to be given a part of that alone.
        let tags: [String]
        var rangeTag: String?
        /// What may have been stored of it then: a hit that is read late may show it.
        var known: [StoredDocuments.Document] = []
        /// What its principal had seen then.
        var seen = ReadLog()
    }

    /// What was counted, so that a run that shows nothing is noticed.
    struct Figures: Sendable {
        var answers = 0
        var hits = 0
        var composed = 0
        var revalidated = 0
        var collapsed = 0
        /// Hits that said that they are in doubt.
        var doubted = 0
        /// Documents of which streams told to the end.
        var followed = 0
    }

    let setting: Setting
    let reference: ReferenceOrigin
    let larder: Larder
    /// Holds commits before memory has them; nil where the setting, or the binary, has no such gate.
    let gate: CommitBlocker?
    var documents = StoredDocuments()
    var seen = ReadLog()
    /// The documents that went back themselves.
    var returns: [ReadLog.Return] = []
    /// The responses that Larder received of each target, in their order.
    var words: [Key: [Word]] = [:]
    /// What of it a crash does not undo.
    var durablySeen = ReadLog()
    var open: [Open] = []
    var lastWrite = 0
    /// The last event after which Larder may ask again what it has asked before.
    var undisturbedSince = 0
    /// The bodies that were got under each ETag, by what was asked for.
    var tagged: [Key: [String: Set<String>]] = [:]
    var figures = Figures()
    /// What was answered to each request, in the order of the responses, for people who look for what went wrong.
    var trace: [(page: Page, line: String)] = []
    /// What could not be asked for again behind a stale response.
    var failedRefreshes: Set<Key> = []
    /// A connection that nothing is asked on at the moment.
    var idle: Client?
    private var settler: Client?

    init(_ setting: Setting) throws {
        self.setting = setting
        reference = try ReferenceOrigin(setting)
        let folder = TemporaryFolder()
        gate = setting.isGated && CommitBlocker.isAvailable ? CommitBlocker(in: folder) : nil
        larder = try Larder(
            config: setting.config(reference.origin),
            store: folder,
            environment: gate?.environment ?? [:]
        )
    }

    // MARK: Steps

    /// Does one step, and checks whatever is answered.
    func perform(_ step: Step) throws {
        // Who was taken to wait for another one's answer, and asked for itself after all.
        while let late = open.first(where: { !isHeld($0.ask) && hasArrived($0.ask) }) {
            open.removeAll { $0.ask.number == late.ask.number }
            try conclude(late)
        }
        try takeRefreshes()
        tick()
        switch step {
        case .ask(let ask): try send(ask)
        case .finish(let number): try finish(number)
        case .finishDuring(let number, let readers, let isCommitted):
            try finish(number, whileReading: readers, isCommitted: isCommitted)
        case .change(let principal, let edit): reference.change(principal, edit)
        case .settle: try settle()
        case .restart:
            try finishAll()
            try settle()
            (idle, settler) = (nil, nil)
            larder.terminate()
            try larder.start()
            undisturbedSince = now
        case .kill: try kill()
        case .clean: try clean()
        }
    }

    @discardableResult
    func tick() -> Int {
        reference.state.withLock { state in
            state.now += 1
            return state.now
        }
    }

    var now: Int { reference.state.withLock { $0.now } }

    /// Has Larder store everything that it received: a write, and the responses before it, which a write may overtake.
    func settle() throws {
        let client = try settler ?? larder.client()
        settler = client
        let answer = try client.request("POST", "/settling/now", body: "")
        guard answer.status == 204 else {
            throw Violation("a write that has nothing to do with it was answered \(answer.status)")
        }
        guard try larder.waitForQuiet() else { throw Violation("what was received is not stored") }
        documents.settle()
        seen.settle()
        durablySeen = seen
    }

    private func kill() throws {
        (idle, settler) = (nil, nil)
        larder.kill()
        let dead = open
        open = []
        for request in dead { abandon(request) }
        // What had not been stored yet may be lost, and what was shown of it.
        documents.crash()
        seen = durablySeen
        undisturbedSince = now
        // A write whose response never came counts as one that happened (law 10).
        for request in dead where request.ask.isWrite { wrote(request.ask, .lost) }
        try larder.start()
    }

    /// Lets a held response go to nobody.
    private func abandon(_ request: Open) {
        let number = request.ask.number
        reference.letGo(number)
        reference.state.wait { state in state.exchanges.allSatisfy { $0.step != number || $0.isMade } }
        reference.state.withLock { state in
            for index in state.exchanges.indices where state.exchanges[index].step == number {
                state.exchanges[index].endedAt = state.now
            }
        }
    }

    private func clean() throws {
        let before = reference.state.withLock { $0.exchanges.count }
        let answer = try larder.admin("POST", "/clean", body: #"{"all":true}"#)
        guard answer.status == 200 else { throw Violation("clean was answered \(answer.status): \(answer.text)") }
        documents = StoredDocuments()
        (seen, durablySeen) = (ReadLog(), ReadLog())
        words = [:]
        undisturbedSince = now
        reference.state.withLock { $0.invalidate(upTo: before - 1) { _ in true } }
    }
}
