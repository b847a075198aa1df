import Store
import Testing

@testable import Proxy

/// Every state that a followed document can come to, by whatever order of events, with an upstream whose response writes and
/// other requests change, up to three streams, and looks during which anything may happen.
@Suite struct FollowingTests {
    /// What a client of a stream has got.
    private struct Client: Hashable {
        let isOnce: Bool
        var isOpen = false
        var events = 0
        var isRefused = false
        /// The content of the state that it was sent last.
        var shown: Digest128?
        /// Whether its last event says that it is the last.
        var isTold = false
        var isEnded = false
        var hasLeft = false
    }

    /// An inquiry of the upstream, and what it has brought.
    private struct Inquiry: Hashable {
        /// How many writes were over when it began.
        let writes: Int
        let version: Int
        var answer: Answer?
    }

    private enum Answer: Hashable {
        case kept(Int)
        case unkept(Int)
        case failed(isOutage: Bool)
    }

    private struct World: Hashable {
        var following = Following(interval: .seconds(15), crowd: 2)
        var clients: [Client] = []
        /// The number of changes at the upstream.
        var version = 0
        /// The version that is stored, and whether it is fresh.
        var stored: Int?
        var isFresh = true
        var isKept = true
        var inquiry: Inquiry?
        var writes = 0
        var isCommitting = false
        var isScheduled = false
        var isRunning = false
        /// Whether objects have changed since the last look began, and whether they had before that.
        var haveObjectsChanged = false
        var hadObjectsChanged = false
        /// Whether the last inquiry failed because the upstream is away, and when it ended.
        var isAway = false
        var examined: UInt64?
        var finding: Following.Finding?
        var isOffline = false
        /// Whether the store takes long to give numbers.
        var isSlow = false
        var now: UInt64 = 1_000_000_000_000
        var mishaps = 0
    }

    private enum Step: Hashable {
        case join(isOnce: Bool)
        case leave(Int)
        case begin, find, end
        case answer(Answer)
        case write, commit
        case refresh, drop, wait, tick, offline, slow, quick, back
    }

    private struct Violation: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    private static func content(_ version: Int?) -> Digest128? {
        version.map { Digest128(low: UInt64($0), high: 0) }
    }

    private static let failure = 502
    private static let problem = Digest128(low: 0, high: 1)

    /// What may happen next.
    private func steps(_ world: World, maxClients: Int, maxMishaps: Int) -> [Step] {
        var steps: [Step] = []
        if world.clients.count < maxClients { steps += [.join(isOnce: false), .join(isOnce: true)] }
        if world.clients.isEmpty { return steps }
        if world.isScheduled { steps.append(.begin) }
        if world.isRunning { steps.append(world.finding == nil ? .find : .end) }
        if let inquiry = world.inquiry, inquiry.answer == nil { steps += answers(of: inquiry, in: world) }
        if world.isCommitting { steps.append(.commit) }
        if isDueSoon(world), !world.isScheduled { steps.append(.tick) }
        if world.isSlow { steps.append(.quick) }
        guard world.mishaps < maxMishaps else { return steps }
        for (id, client) in world.clients.enumerated() where !client.hasLeft { steps.append(.leave(id)) }
        if let inquiry = world.inquiry, inquiry.answer == nil {
            steps += [.answer(.failed(isOutage: true)), .answer(.failed(isOutage: false))]
            if inquiry.writes == world.writes { steps.append(.answer(.unkept(world.version))) }
        }
        if !world.isCommitting { steps.append(.write) }
        if world.stored != nil { steps.append(.drop) }
        if !world.isSlow { steps.append(.slow) }
        if world.following.isCutOff { steps.append(.back) }
        return steps + [.refresh, .wait, .offline]
    }

    /// A response from before a write is not stored.
    private func answers(of inquiry: Inquiry, in world: World) -> [Step] {
        inquiry.writes == world.writes
            ? [.answer(.kept(world.version))]
            : [.answer(.unkept(inquiry.version)), .answer(.unkept(world.version))]
    }

    private func take(_ step: Step, in old: World) throws -> World {
        var world = old
        switch step {
        case .join(let isOnce):
            world.clients.append(Client(isOnce: isOnce))
            let reader = Following.Reader(world.clients.count - 1, isOnce ? .once : .on(after: nil))
            try handle(.joined(reader, now: world.now), in: &world)
        case .leave(let id):
            world.mishaps += 1
            world.clients[id].hasLeft = true
            try handle(.left(id), in: &world)
        case .begin:
            (world.isScheduled, world.isRunning) = (false, true)
            (world.hadObjectsChanged, world.haveObjectsChanged) = (world.haveObjectsChanged, false)
            try handle(.lookBegan, in: &world)
        case .find:
            if world.following.inquiry == .examined {
                (world.hadObjectsChanged, world.haveObjectsChanged) = (false, false)
                try handle(.ownChangesReported, in: &world)
            }
            world.finding = finding(in: world)
        case .end:
            guard var finding = world.finding else { break }
            if !world.isSlow { finding.number = 1 }
            (world.finding, world.isRunning) = (nil, false)
            try handle(.looked(finding), found: finding, in: &world)
        case .answer(let answer):
            world.inquiry?.answer = answer
            switch answer {
            case .kept(let version): (world.stored, world.isFresh) = (version, true)
            case .unkept, .failed: world.mishaps += 1
            }
            try handle(.answered, in: &world)
        case .write:
            world.mishaps += 1
            world.version += 1
            world.writes += 1
            world.isCommitting = true
            try handle(.invalidated, in: &world)
        case .commit:
            world.isCommitting = false
            if world.stored != world.version { world.stored = nil }
            try handle(.committed, in: &world)
            try handle(.lookRequested, in: &world)
        case .refresh:
            world.mishaps += 1
            world.version += 1
            (world.stored, world.isFresh) = (world.version, true)
            world.haveObjectsChanged = true
            try handle(.objectsChanged, in: &world)
            try #require(world.following.validity != .current, "a change of objects is forgotten")
        case .drop:
            world.mishaps += 1
            world.stored = nil
            try handle(.lookRequested, in: &world)
        case .wait:
            world.mishaps += 1
            world.now += 1_000_000_000_000
            world.isFresh = false
        case .tick:
            world.now = max(world.now, world.following.due)
            try handle(.lookRequested, in: &world)
        case .offline:
            world.mishaps += 1
            world.isOffline.toggle()
            try handle(.lookRequested, in: &world)
        case .back:
            world.mishaps += 1
            world.isAway = false
            try handle(.upstreamIsBack, in: &world)
        case .slow:
            world.mishaps += 1
            world.isSlow = true
        case .quick:
            world.isSlow = false
            try handle(.lookRequested, in: &world)
        }
        return world
    }

    /// What a look finds, as `ProxyCore` sees it.
    private func finding(in world: World) -> Following.Finding {
        var finding = Following.Finding(now: world.now)
        finding.asks = !world.isOffline
        finding.isOffline = world.isOffline
        finding.content = Self.content(world.stored)
        finding.isStored = world.stored != nil
        finding.freshness = world.stored == nil ? .missing : world.isFresh ? .fresh(seconds: 3600) : .mustValidate
        guard world.following.inquiry == .examined, !world.following.isInvalid, let answer = world.inquiry?.answer
        else { return finding }
        switch answer {
        case .kept(let version): finding.outcome = .response(received: Self.content(version), isStored: true)
        case .unkept(let version):
            finding.outcome = .response(received: Self.content(version), isStored: false)
            // A fresh response that is stored by now is newer.
            guard world.stored == nil || !world.isFresh else { break }
            (finding.content, finding.isStored) = (finding.received, false)
        case .failed(let isOutage):
            finding.outcome = .failure(status: Self.failure, isOutage: isOutage)
            if world.stored == nil { (finding.content, finding.isProblem) = (Self.problem, true) }
        }
        return finding
    }

    private func handle(_ event: Following.Event, found: Following.Finding? = nil, in world: inout World) throws {
        let wasExamined = world.following.inquiry == .examined
        if wasExamined, !world.following.isInvalid, found != nil, let inquiry = world.inquiry {
            if case .unkept = inquiry.answer { world.isKept = false }
            if case .kept = inquiry.answer { world.isKept = true }
            world.isAway = inquiry.answer == .failed(isOutage: true)
            world.examined = found?.now
        }
        let validity = world.following.validity
        for action in world.following.handle(event) {
            try perform(action, found, in: &world)
            guard case .send(_, let message, _) = action, validity == .invalidated || validity == .invalid else {
                continue
            }
            switch message {
            case .state:
                try #require(
                    validity == .invalid && found?.asks == false && found?.isStored == true,
                    "a state from before a write"
                )
            case .failure, .received, .unchangedReceived: throw Violation("an answer from before a write")
            case .unchanged, .refusal: break
            }
        }
        for client in world.clients where client.isTold && !client.isEnded {
            throw Violation("a stream goes on after its last event")
        }
        try #require(world.following.look == expectedLook(world), "the cause of a look is forgotten or made up")
        try #require(world.following.isCutOff == world.isAway, "an outage is forgotten or made up")
        if let found { try check(next: world, found) }
    }

    /// The look as the events until now require it; whether another one follows is taken from the value.
    private func expectedLook(_ world: World) -> Following.Look {
        func cause(_ haveObjectsChanged: Bool) -> Following.Cause { haveObjectsChanged ? .objects : .other }
        if world.isScheduled { return .scheduled(cause(world.haveObjectsChanged)) }
        guard world.isRunning else { return .idle }
        guard case .running(_, next: nil) = world.following.look else {
            return .running(cause(world.hadObjectsChanged), next: cause(world.haveObjectsChanged))
        }
        return .running(cause(world.hadObjectsChanged), next: world.haveObjectsChanged ? .objects : nil)
    }

    /// After a look: the next inquiry is not too early.
    private func check(next world: World, _ found: Following.Finding) throws {
        guard case .idle(let due) = world.following.inquiry, let examined = world.examined, found.asks else { return }
        if found.freshness == .missing, !world.isKept {
            try #require(due >= examined + 100_000_000, "what is never stored is asked for all the time")
        }
        if world.isAway { try #require(due > examined, "an upstream that is away is asked all the time") }
    }

    private func perform(_ action: Following.Action, _ found: Following.Finding?, in world: inout World) throws {
        switch action {
        case .look:
            try #require(!world.isScheduled && !world.isRunning, "two looks at once")
            world.isScheduled = true
        case .open(let id, _):
            try #require(!world.clients[id].isOpen, "a stream begins twice")
            world.clients[id].isOpen = true
        case .number(let ids):
            for id in ids {
                try #require(world.clients[id].shown == found?.content, "a state gets the number of another")
            }
        case .send(let id, let message, let isLast): try send(message, isLast: isLast, found, to: id, in: &world)
        case .end(let id):
            try #require(world.clients[id].isOnce && world.clients[id].isTold, "a stream ends without its last event")
            world.clients[id].isEnded = true
        case .release:
            let isOutdated = found?.asks == false && world.inquiry?.writes != world.writes
            try #require(world.inquiry?.answer != nil || isOutdated, "an inquiry is released before its answer")
            world.inquiry = nil
        case .ask:
            try #require(!world.isOffline || found?.asks == true, "an upstream is asked offline")
            if let inquiry = world.inquiry, inquiry.writes == world.writes, world.mishaps == 0 {
                throw Violation("the upstream is asked twice")
            }
            world.inquiry = Inquiry(writes: world.writes, version: world.version)
        }
    }

    private func send(
        _ message: Following.Message,
        isLast: Bool,
        _ found: Following.Finding?,
        to id: Int,
        in world: inout World
    ) throws {
        let client = world.clients[id]
        guard let found, client.isOpen, !client.isTold, !client.isEnded, !client.hasLeft
        else { throw Violation("an event before the head, or after the end") }
        switch message {
        case .state(let kind):
            let content = try #require(found.content, "a state that is not known")
            if kind == .cached { try #require(client.events == 0, "the stored response is not the first event") }
            if kind == .changed { try #require(!isLast || found.failure != nil, "a change ends a stream") }
            world.clients[id].shown = content
            if kind == .fresh { try #require(world.inquiry != nil || found.asks, "a response that was not asked for") }
        case .received, .unchangedReceived:
            let inquiry = try #require(world.inquiry, "a response that was not asked for")
            try #require(inquiry.writes == world.writes, "a response from before a write ends a stream")
            try #require(client.isOnce && isLast && found.received != nil && found.content != nil)
            if message == .received { world.clients[id].shown = found.received }
            try #require(world.clients[id].shown == found.received, "what is unchanged was not shown")
        case .unchanged: try #require(client.shown == found.content, "what is unchanged was not shown")
        case .failure: try #require(found.failure != nil, "a failure that did not happen")
        case .refusal:
            try #require(!found.asks && !client.isRefused, "a refusal twice")
            world.clients[id].isRefused = true
        }
        world.clients[id].events += 1
        if isLast {
            try #require(client.isOnce, "a stream that stays open gets a last event")
            world.clients[id].isTold = true
        }
    }

    /// Whether nothing is under way.
    private func isQuiet(_ world: World) -> Bool {
        !world.isScheduled && !world.isRunning && world.inquiry == nil && !world.isCommitting && !world.isSlow
            && !isDueSoon(world)
    }

    private func isDueSoon(_ world: World) -> Bool { world.following.due <= world.now + 60_000_000_000 }

    private func check(quiet world: World) throws {
        for client in world.clients where !client.hasLeft && !client.isEnded {
            try #require(client.isOpen, "a stream was not begun")
            try #require(!client.isOnce, "a stream of one response does not end")
            try #require(client.events > 0 || world.isOffline && world.stored == nil, "a stream without an event")
            guard !client.isOnce, let stored = world.stored else { continue }
            try #require(world.following.state?.number == 1, "a state has no number")
            try #require(client.shown == Self.content(stored), "a stream does not show what a GET gets")
        }
        let isFollowed = world.clients.contains { !$0.hasLeft && !$0.isEnded }
        try #require(!world.following.mustAsk || world.isOffline || !isFollowed, "an inquiry is forgotten")
    }

    /// The straightest way on from a state.
    private func nextStep(_ world: World) -> Step? {
        if world.isSlow { return .quick }
        if world.isCommitting { return .commit }
        if let inquiry = world.inquiry, inquiry.answer == nil { return answers(of: inquiry, in: world).last }
        if world.isRunning { return world.finding == nil ? .find : .end }
        if world.isScheduled { return .begin }
        return isDueSoon(world) ? .tick : nil
    }

    @Test(arguments: [(1, 3), (2, 1), (3, 0)])
    func `in every order of events each stream ends with the response to a GET, and asks the upstream once`(
        maxClients: Int,
        maxMishaps: Int
    ) throws {
        let start = World()
        var seen: Set<World> = [start]
        var open: [(world: World, way: [Step])] = [(start, [])]
        var quiet = 0
        while let (world, way) = open.popLast() {
            for step in steps(world, maxClients: maxClients, maxMishaps: maxMishaps) {
                do {
                    let next = try take(step, in: world)
                    if next.following.isOver { continue }
                    if seen.insert(next).inserted { open.append((next, way + [step])) }
                } catch {
                    Issue.record("\(error)\nafter \(way)\nthen \(step)\nin \(world)")
                    return
                }
            }
            // From wherever it is, it comes to rest.
            var last = world
            var rest: [Step] = []
            do {
                while rest.count < 40, let step = nextStep(last) {
                    rest.append(step)
                    last = try take(step, in: last)
                }
                guard !last.following.isOver else { continue }
                try #require(isQuiet(last), "it does not come to rest")
                try check(quiet: last)
                quiet += 1
            } catch {
                Issue.record("\(error)\nafter \(way), on the straight way \(rest)\nin \(last)")
                return
            }
        }
        #expect(quiet > 500)
        #expect(seen.count > 500)
    }

    // MARK: When the upstream is asked

    private static let second: UInt64 = 1_000_000_000
    /// Before the first pause after a failure is over.
    private static let soon = 100 * second + second / 2

    /// A document whose one stream was sent the upstream's response at 100 s.
    private func followed(_ outcome: Following.Outcome) -> Following {
        var following = Following(interval: .seconds(15))
        _ = following.handle(.joined(Following.Reader(1, .on(after: nil)), now: 100 * Self.second))
        _ = following.handle(.lookBegan)
        _ = following.handle(.looked(Following.Finding(freshness: .missing, now: 100 * Self.second)))
        _ = following.handle(.answered)
        _ = following.handle(.lookBegan)
        _ = following.handle(
            .looked(Following.Finding(outcome: outcome, freshness: .fresh(seconds: 60), now: 100 * Self.second))
        )
        return following
    }

    /// Whether the upstream is asked at once after events until `soon`, and the look that ends then.
    private func asks(
        _ following: Following,
        after events: Following.Event...,
        finding freshness: Following.Freshness
    ) -> Bool {
        var following = following
        for event in events { _ = following.handle(event) }
        let actions = following.handle(.looked(Following.Finding(freshness: freshness, now: Self.soon)))
        if !actions.contains(.ask) { #expect(following.due > Self.soon) }
        return actions.contains(.ask)
    }

    @Test func `a missing response is fetched at once if the last one was stored, or else at the interval`() {
        for isStored in [true, false] {
            let following = followed(.response(received: nil, isStored: isStored))
            #expect(asks(following, after: .lookRequested, .lookBegan, finding: .missing) == isStored)
        }
    }

    @Test func `a changed response is validated at once, unless the stream's own fetch has changed it`() {
        let following = followed(.response(received: nil, isStored: true))
        #expect(asks(following, after: .objectsChanged, .lookBegan, finding: .mustValidate))
        #expect(asks(following, after: .objectsChanged, .lookRequested, .lookBegan, finding: .mustValidate))
        #expect(asks(following, after: .lookRequested, .objectsChanged, .lookBegan, finding: .mustValidate))
        #expect(!asks(following, after: .lookRequested, .lookBegan, finding: .mustValidate))
        #expect(!asks(following, after: .objectsChanged, .lookBegan, finding: .stale))
        // This look does not know yet what has changed; the next one does.
        #expect(!asks(following, after: .lookRequested, .lookBegan, .objectsChanged, finding: .mustValidate))
        #expect(
            !asks(following, after: .objectsChanged, .lookBegan, .ownChangesReported, finding: .mustValidate)
        )
    }

    @Test func `an upstream is fetched from at once when an outage ends, and not after other failures`() {
        let away = followed(.failure(status: 502, isOutage: true))
        #expect(away.isCutOff)
        #expect(!asks(away, after: .lookRequested, .lookBegan, finding: .missing))
        #expect(asks(away, after: .upstreamIsBack, .lookBegan, finding: .missing))
        let failing = followed(.failure(status: 502, isOutage: false))
        #expect(!failing.isCutOff)
        #expect(!asks(failing, after: .upstreamIsBack, .lookBegan, finding: .missing))
    }
}
