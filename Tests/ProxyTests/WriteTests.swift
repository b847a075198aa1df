import Testing

@testable import Proxy

/// Every state that a write can come to, with bodies of up to three pieces.
@Suite struct WriteTests {
    private struct World: Hashable {
        var write: Write
        var hasHead = false
        var pieces = 0
        var given = 0
        var isBegun = false
        var isDone = false
        var end: Fetch.End?
        var timesCommitted = 0
        var isCommitted = false
    }

    private enum Step: Hashable {
        case head(isJSON: Bool)
        case piece(fits: Bool)
        case end(Fetch.End)
        case committed
        case leave
    }

    private struct Violation: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    private func steps(_ world: World) -> [Step] {
        guard world.end == nil else { return world.isCommitted ? [.leave] : [.committed, .leave] }
        var steps: [Step] = [.leave, .end(.failed)]
        if !world.hasHead { return steps + [.head(isJSON: false), .head(isJSON: true)] }
        steps += [.end(.whole), .end(.odd), .end(.cut)]
        return world.pieces < 3 ? steps + [.piece(fits: true), .piece(fits: false)] : steps
    }

    private func take(_ step: Step, in world: World) throws -> World {
        var world = world
        let event: Write.Event
        switch step {
        case .head(let isJSON): (event, world.hasHead) = (.head(isJSON: isJSON), true)
        case .piece(let fits):
            world.pieces += 1
            event = .body([UInt8(world.pieces)], fits: fits)
        case .end(let end): (event, world.end) = (.ended(end), end)
        case .committed: (event, world.isCommitted) = (.committed, true)
        case .leave: event = .clientLeft
        }
        for action in world.write.handle(event) {
            switch action {
            case .commit: world.timesCommitted += 1
            case .resume: break
            case .begin:
                try #require(!world.isBegun && world.hasHead)
                world.isBegun = true
            case .write(let bytes):
                try #require(world.isBegun && !world.isDone)
                for byte in bytes {
                    world.given += 1
                    try #require(Int(byte) == world.given, "the pieces come in another order")
                }
            case .finish, .abort, .serveRendered, .fail:
                try #require(world.isCommitted && !world.isDone, "the client has the end before the write is committed")
                world.isDone = true
                if action == .finish { try #require(world.given == world.pieces && world.end != .cut) }
                if action == .serveRendered { try #require(!world.isBegun && world.end == .whole) }
                if action == .fail { try #require(!world.isBegun) }
            }
            // The last piece is withheld until the write is committed.
            if !world.isCommitted, world.pieces > 0 { try #require(world.given < world.pieces) }
        }
        if world.end != nil { try #require(world.timesCommitted == 1) }
        if world.isCommitted { try #require(world.isDone) }
        return world
    }

    @Test(arguments: [false, true], [1, 10])
    func `in every order of events the client gets one end, once the write is committed, and the store gets it once`(
        wantsRendered: Bool,
        limit: Int
    ) throws {
        let start = World(write: Write(wantsRendered: wantsRendered, limit: limit))
        var seen: Set<World> = [start]
        var open: [(world: World, way: [Step])] = [(start, [])]
        while let (world, way) = open.popLast() {
            for step in steps(world) {
                do {
                    let next = try take(step, in: world)
                    if seen.insert(next).inserted { open.append((next, way + [step])) }
                } catch {
                    Issue.record("\(error)\nafter \(way)\nthen \(step)")
                    return
                }
            }
        }
        #expect(seen.count > 30)
    }
}
