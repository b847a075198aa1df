import Testing

@testable import Proxy

/// Every state that a fetch can come to, by whatever order of events, with up to three clients and two pieces of body.
@Suite struct FetchTests {
    /// What a client of the fetch has been given.
    private enum Given: Hashable {
        case nothing
        case begun(pieces: Int)
        case whole(pieces: Int)
        case cut
        /// Served in another way, or sent to another fetch.
        case elsewhere
        case left
    }

    /// A fetch with all that is around it.
    private struct World: Hashable {
        var fetch: Fetch
        var clients: [Given] = []
        var pieces = 0
        var hasHead = false
        var isNoting = false
        var isCancelled = false
        var isTransferred = false
        var isOdd = false
        var isAdmitting = false
        var isFreshening = false
        var isCommitting = false
        /// Whether the response is one to store.
        var isToBeStored = false
        var timesAdmitted = 0
        var timesFreshened = 0
        /// How often it was said why a response to store is not.
        var losses = 0
        var isOver = false
        /// Whether the body came to its end.
        var isWhole = true
    }

    private enum Step: Hashable {
        case join(isLeader: Bool, wantsRendering: Bool, wantsCut: Bool)
        case leave(Int)
        case losePatience(Int)
        case absence
        case head(Fetch.Head)
        case piece(fits: Bool)
        case lag(Int)
        case end(Fetch.End)
        case admitted(Fetch.Admission)
        case freshened(Fetch.Admission)
        case committed
        case commitIsLate
    }

    private static let heads: [Fetch.Head] = {
        var heads: [Fetch.Head] = []
        for isStorable in [false, true] {
            for (isRenderable, completesParts) in [(false, false), (true, false), (false, true)]
            where isStorable || !completesParts {
                for canHaveStale in [nil, [], [0], [0, 1, 2]] as [Set<Int>?] {
                    for others in [[], [1], [1, 2]] as [Set<Int>] where isStorable || others.count == 2 {
                        var head = Fetch.Head()
                        (head.isStorable, head.isRenderable) = (isStorable, isRenderable)
                        (head.completesParts, head.isWhole) = (completesParts, !completesParts)
                        (head.canHaveStale, head.others) = (canHaveStale, others)
                        head.outdatesStored = others.count == 2
                        heads.append(head)
                    }
                }
            }
        }
        return heads + [Fetch.Head(kind: .notModified), Fetch.Head(kind: .unfitPart)]
    }()

    /// What may happen next.
    private func steps(_ world: World, maxClients: Int) -> [Step] {
        // What `admit` led to is said before anything else happens.
        if world.isAdmitting { return [Fetch.Admission.unusable, .ready, .withheld].map { .admitted($0) } }
        var steps: [Step] = []
        let fetch = world.fetch
        let isJoinable =
            switch fetch.phase {
            case .asking, .noting: !fetch.isTransferred
            case .relaying, .gathering: fetch.body.isWhole && !fetch.isTransferred
            default: false
            }
        if isJoinable, world.clients.count < maxClients, !world.isCancelled {
            let isLeader = world.clients.isEmpty && !fetch.isRefresh && !world.hasHead
            if isLeader || !world.clients.isEmpty || fetch.isRefresh {
                for wantsRendering in [false, true] where !wantsRendering || fetch.phase != .relaying {
                    steps.append(.join(isLeader: isLeader, wantsRendering: wantsRendering, wantsCut: false))
                }
                if isLeader { steps.append(.join(isLeader: true, wantsRendering: false, wantsCut: true)) }
            }
        }
        // The one who asks is there before anything comes.
        if world.clients.isEmpty, !fetch.isRefresh { return steps }
        for (id, given) in world.clients.enumerated() where given != .left {
            steps += [.leave(id), .losePatience(id)]
        }
        if world.isFreshening { steps += [Fetch.Admission.unusable, .ready, .withheld].map { .freshened($0) } }
        if world.isCommitting { steps += [.committed, .commitIsLate] }
        guard !world.isTransferred else { return steps }
        steps.append(.end(.failed))
        guard !world.isCancelled else { return steps }
        if world.isNoting || !world.hasHead { steps += Self.heads.map { .head($0) } }
        if !world.hasHead {
            return world.isNoting ? steps : steps + [.absence]
        }
        steps += [.end(.whole), .end(.odd), .end(.cut)]
        if !world.isNoting, world.pieces < 2 { steps += [.piece(fits: true), .piece(fits: false)] }
        if fetch.phase == .relaying, fetch.clients.count > 1, !fetch.body.isWhole {
            steps += fetch.clients.map { .lag($0.id) }
        }
        return steps
    }

    private func take(_ step: Step, in world: World) throws -> World {
        var world = world
        let event: Fetch.Event
        switch step {
        case .join(let isLeader, let wantsRendering, let wantsCut):
            event = .joined(
                Fetch.Client(
                    id: world.clients.count,
                    isLeader: isLeader,
                    wantsRendering: wantsRendering,
                    wantsCut: wantsCut
                )
            )
            world.clients.append(.nothing)
        case .leave(let id):
            event = .left(id)
            world.clients[id] = .left
        case .losePatience(let id): event = .lostPatience(id)
        case .absence: (event, world.isNoting, world.hasHead) = (.absence, true, true)
        case .head(let head): (event, world.isNoting, world.hasHead) = (.head(head), false, true)
        case .piece(let fits):
            world.pieces += 1
            event = .body([UInt8(world.pieces)], fits: fits)
        case .lag(let id): event = .lagging([id])
        case .end(let end):
            (event, world.isTransferred) = (.ended(end), true)
            (world.isWhole, world.isOdd) = (end == .whole || end == .odd, end == .odd)
        case .admitted(let admission):
            (event, world.isAdmitting, world.isCommitting) = (.admitted(admission), false, admission == .withheld)
        case .freshened(let kept):
            (event, world.isFreshening, world.isCommitting) = (.freshened(kept), false, kept == .withheld)
        case .committed: (event, world.isCommitting) = (.committed, false)
        case .commitIsLate: event = .commitIsLate
        }
        let actions = world.fetch.handle(event)
        if case .head = step, world.fetch.isStoring { world.isToBeStored = true }
        for action in actions { try perform(action, in: &world) }
        return world
    }

    private func perform(_ action: Fetch.Action, in world: inout World) throws {
        try #require(!world.isOver, "something is done after the end")
        switch action {
        case .begin(let id, let pieces):
            try #require(world.clients[id] == .nothing)
            world.clients[id] = .begun(pieces: pieces.count)
        case .write:
            for client in world.fetch.clients {
                guard case .begun(let pieces) = world.clients[client.id] else {
                    throw Violation("a piece before the head")
                }
                world.clients[client.id] = .begun(pieces: pieces + 1)
            }
        case .finish(let id):
            guard case .begun(let pieces) = world.clients[id] else { throw Violation("an end before the head") }
            try #require(pieces == world.pieces && world.isWhole, "finished without all of the body")
            world.clients[id] = .whole(pieces: pieces)
        case .abort(let id):
            guard case .begun = world.clients[id] else { throw Violation("broken off before the head") }
            world.clients[id] = .cut
        case .keptNoLonger(let id):
            guard case .begun = world.clients[id] else { throw Violation("nothing was given yet") }
        case .serve(let ids), .serveUnstored(let ids), .serveStale(let ids), .fail(let ids), .fetchApart(let ids),
            .fetchWhole(let ids), .fetchUnconditionally(let ids):
            for id in ids {
                try #require(world.clients[id] == .nothing, "a client gets two responses")
                world.clients[id] = .elsewhere
            }
        case .serveMeanwhile(let id):
            try #require(world.clients[id] == .nothing, "a client gets two responses")
            world.clients[id] = .elsewhere
        case .admit:
            try #require(
                world.isWhole && !world.isOdd && world.isTransferred && world.fetch.body.isWhole,
                "what is cut or odd is admitted"
            )
            world.timesAdmitted += 1
            world.isAdmitting = true
            try #require(world.timesAdmitted == 1, "admitted twice")
        case .freshen:
            world.isFreshening = true
            world.timesFreshened += 1
            try #require(world.timesFreshened == 1 && !world.isToBeStored, "freshened twice, or what is to be stored")
        case .cancel:
            try #require(world.fetch.clients.isEmpty, "cancelled, though somebody waits")
            world.isCancelled = true
        case .end:
            world.isOver = true
            try #require(world.isTransferred && !world.isAdmitting && !world.isFreshening && !world.isCommitting)
            try #require(
                world.timesAdmitted + world.losses == (world.isToBeStored ? 1 : 0),
                "the store gets a response once, or it is said once why not"
            )
            for given in world.clients {
                if case .begun = given { throw Violation("a client is forgotten in the middle") }
                try #require(given != .nothing, "a client is forgotten")
            }
        case .explainLoss: world.losses += 1
        case .commitAbsence, .stopJoining, .resume, .supersede: break
        }
    }

    private struct Violation: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    /// The straightest way on from a state.
    private func nextStep(_ world: World) -> Step? {
        if world.isAdmitting { return .admitted(.ready) }
        if world.isFreshening { return .freshened(.ready) }
        if world.isCommitting { return .committed }
        if world.isTransferred { return world.isNoting ? .head(Self.heads[0]) : nil }
        if world.isCancelled { return .end(.failed) }
        return world.hasHead && !world.isNoting ? .end(.whole) : .head(Self.heads[0])
    }

    @Test(arguments: [(false, 2), (true, 1), (false, 3)])
    func `in every order of events each client gets one response, and the store one copy`(
        isRefresh: Bool,
        maxClients: Int
    ) throws {
        let start = World(fetch: Fetch(isRefresh: isRefresh, limit: 1))
        var seen: Set<World> = [start]
        var open: [(world: World, way: [Step])] = [(start, [])]
        var ends = 0
        while let (world, way) = open.popLast() {
            for step in steps(world, maxClients: maxClients) {
                do {
                    let next = try take(step, in: world)
                    if next.isOver {
                        ends += 1
                    } else if seen.insert(next).inserted {
                        open.append((next, way + [step]))
                    }
                } catch {
                    Issue.record("\(error)\nafter \(way)\nthen \(step)\nin \(world)")
                    return
                }
            }
            // From wherever it is, it comes to an end.
            var last = world
            for _ in 0..<8 {
                guard !last.isOver, !last.clients.isEmpty || isRefresh, let step = nextStep(last) else { break }
                do { last = try take(step, in: last) } catch {
                    Issue.record("\(error)\nafter \(way), on the straight way, at \(step)")
                    return
                }
            }
            guard last.isOver || last.clients.isEmpty && !isRefresh else {
                Issue.record("it never ends after \(way)\nin \(last)")
                return
            }
        }
        #expect(ends > 100)
        #expect(seen.count > 200)
    }

    @Test func `a body too large to be stored is still passed on as it arrives`() {
        var fetch = Fetch(limit: 2)
        _ = fetch.handle(.joined(Fetch.Client(id: 0, isLeader: true, wantsRendering: true)))
        #expect(fetch.handle(.head(Fetch.Head(isStorable: true, isRenderable: true))) == [])
        #expect(fetch.handle(.body([1, 2], fits: true)) == [])
        #expect(
            fetch.handle(.body([3], fits: true))
                == [.supersede, .explainLoss(.tooLarge), .stopJoining, .begin(0, [[1, 2]]), .write([3])]
        )
        #expect(fetch.handle(.ended(.whole)) == [.stopJoining, .finish(0), .end])
    }

    @Test func `a transfer without clients is cancelled if its response is not to be stored`() {
        var fetch = Fetch(limit: 10)
        _ = fetch.handle(.joined(Fetch.Client(id: 0, isLeader: true)))
        _ = fetch.handle(.head(Fetch.Head(isStorable: false)))
        #expect(fetch.handle(.left(0)) == [.resume, .stopJoining, .cancel])

        fetch = Fetch(limit: 10)
        _ = fetch.handle(.joined(Fetch.Client(id: 0, isLeader: true)))
        _ = fetch.handle(.head(Fetch.Head(isStorable: true)))
        #expect(fetch.handle(.left(0)) == [.resume])
        #expect(fetch.handle(.ended(.whole)) == [.stopJoining, .admit])
    }

    @Test func `a client that loses patience is served at once, and the transfer goes on for the next ones`() {
        var fetch = Fetch(limit: 10)
        _ = fetch.handle(.joined(Fetch.Client(id: 0, isLeader: true)))
        #expect(fetch.handle(.lostPatience(0)) == [.serveMeanwhile(0)])
        #expect(fetch.handle(.left(0)) == [])
        #expect(fetch.handle(.head(Fetch.Head(isStorable: true))) == [])
        #expect(fetch.handle(.ended(.whole)) == [.stopJoining, .admit])

        // A response that has begun is not replaced.
        fetch = Fetch(limit: 10)
        _ = fetch.handle(.joined(Fetch.Client(id: 0, isLeader: true)))
        _ = fetch.handle(.head(Fetch.Head(isStorable: true)))
        #expect(fetch.handle(.lostPatience(0)) == [])
    }

    @Test func `if a commit takes too long, clients get the last bytes, and the fetch still waits for it`() {
        var fetch = Fetch(limit: 10)
        _ = fetch.handle(.joined(Fetch.Client(id: 0, isLeader: true)))
        _ = fetch.handle(.head(Fetch.Head(isStorable: true)))
        _ = fetch.handle(.ended(.whole))
        #expect(fetch.handle(.admitted(.withheld)) == [])
        #expect(fetch.handle(.commitIsLate) == [.finish(0)])
        #expect(fetch.handle(.committed) == [.end])
    }
}
