import Testing

@testable import Upstream

@Suite struct `Upstream slots` {
    private final class Token {}
    private static let second: UInt64 = 1_000_000_000

    private static func client(_ number: Int64) -> UpstreamSlots.Client { .init(principal: number) }

    @Test func `uploads and other requests do not share slots`() {
        let tokens = (0..<20).map { _ in Token() }
        var slots = UpstreamSlots(exchanges: 2, uploads: 2)
        for (number, token) in tokens.enumerated() {
            _ = slots.enter(ObjectIdentifier(token), .upload, of: Self.client(Int64(number)), now: 0)
        }
        let token = Token()
        let entered = slots.enter(ObjectIdentifier(token), .exchange, of: Self.client(1), now: 0)
        #expect(entered.isFree)
        #expect(slots.contested.map(\.waiting) == [17])
    }

    @Test(arguments: [(1, 1), (2, 1), (4, 1), (8, 2), (100, 25), (256, 64)])
    func `a client has a limit of slots, and a quarter more is left for others`(limit: Int, rest: Int) {
        let tokens = (0..<2 * limit + 2).map { _ in Token() }
        var slots = UpstreamSlots(exchanges: limit, uploads: 1)
        let own = tokens.prefix(limit + 1).count {
            slots.enter(ObjectIdentifier($0), .exchange, of: Self.client(1), now: 0).isFree
        }
        #expect(own == limit)
        let others = tokens.dropFirst(limit + 1).count {
            slots.enter(ObjectIdentifier($0), .exchange, of: .init(principal: 1, host: [1]), now: 0).isFree
        }
        #expect(others == rest)
    }

    @Test func `a free slot goes to the client with the fewest transfers, and among equals to the first`() {
        let tokens = (0..<8).map { _ in Token() }
        let ids = tokens.map { ObjectIdentifier($0) }
        var slots = UpstreamSlots(exchanges: 3, uploads: 1)
        for (id, client) in zip(ids, [1, 1, 1, 2, 1, 2, 3, 3]) {
            _ = slots.enter(id, .exchange, of: Self.client(Int64(client)), now: 0)
        }
        #expect(slots.leave(ids[0]) == [ids[6]])
        #expect(slots.leave(ids[1]) == [ids[4]])
        // What gave up waiting gets none.
        #expect(slots.leave(ids[5]) == [])
        #expect(slots.leave(ids[3]) == [ids[7]])
        #expect(slots.leave(ids[3]) == [])
    }

    @Test func `every queued transfer is started once, and no more than the limit run at a time`() {
        var generator = SystemRandomNumberGenerator()
        var slots = UpstreamSlots(exchanges: 5, uploads: 3)
        let tokens = (0..<500).map { _ in Token() }
        var (running, started): (Set<ObjectIdentifier>, Set<ObjectIdentifier>) = ([], [])
        func start(_ ids: [ObjectIdentifier]) {
            for id in ids {
                #expect(started.insert(id).inserted)
                running.insert(id)
            }
            #expect(running.count <= 10)
        }
        for (number, token) in tokens.enumerated() {
            let id = ObjectIdentifier(token)
            let kind: UpstreamSlots.Kind = number % 3 == 0 ? .upload : .exchange
            let client = Self.client(Int64.random(in: 0..<4, using: &generator))
            if slots.enter(id, kind, of: client, now: 0).isFree { start([id]) }
            if number % 2 == 0, let one = running.randomElement(using: &generator) {
                running.remove(one)
                start(slots.leave(one))
            }
        }
        while let one = running.first {
            running.remove(one)
            start(slots.leave(one))
        }
        #expect(started.count == tokens.count)
        #expect(slots.contested.isEmpty)
    }

    @Test func `a queue for slots is logged once, and its end after ten seconds without waiting`() {
        let tokens = (0..<4).map { _ in Token() }
        let ids = tokens.map { ObjectIdentifier($0) }
        var slots = UpstreamSlots(exchanges: 1, uploads: 1)
        #expect(slots.enter(ids[0], .exchange, of: Self.client(1), now: 0).change == nil)
        let begun = slots.enter(ids[1], .exchange, of: Self.client(1), now: 0).change
        #expect(begun == .init(kind: .exchange, isCrowded: true, limit: 1))
        #expect(slots.enter(ids[2], .exchange, of: Self.client(1), now: 0).change == nil)
        #expect(slots.tick(now: 5 * Self.second) == [])
        _ = slots.leave(ids[0])
        _ = slots.leave(ids[1])
        #expect(slots.isCrowded)
        #expect(slots.tick(now: 14 * Self.second) == [])
        // In between another one had to wait.
        #expect(slots.enter(ids[3], .exchange, of: Self.client(1), now: 14 * Self.second).change == nil)
        _ = slots.leave(ids[2])
        #expect(slots.tick(now: 23 * Self.second) == [])
        #expect(slots.tick(now: 24 * Self.second) == [.init(kind: .exchange, isCrowded: false, limit: 1)])
        #expect(!slots.isCrowded)
    }

    @Test func `without a limit nobody waits`() {
        let tokens = (0..<1_000).map { _ in Token() }
        var slots = UpstreamSlots(exchanges: 0, uploads: 0)
        for token in tokens {
            #expect(slots.enter(ObjectIdentifier(token), .exchange, of: Self.client(1), now: 0).isFree)
        }
    }

    @Test func `a transfer's pace is measured on its body, in either direction, over ten seconds`() {
        var state = TransferState(now: 0)
        #expect(state.pace(sent: 0, received: 0, now: 60 * Self.second) == nil)
        _ = state.willSend(isSafe: false, now: 100 * Self.second)
        #expect(state.pace(sent: 10, received: 0, now: 109 * Self.second) == nil)
        #expect(state.pace(sent: 100, received: 0, now: 110 * Self.second) == 10)
        #expect(state.pace(sent: 5_100, received: 0, now: 120 * Self.second) == 500)
        // The upstream has it all, and is thinking.
        #expect(state.pace(sent: nil, received: 0, now: 300 * Self.second) == nil)
        state.headArrived(now: 300 * Self.second)
        #expect(state.pace(sent: nil, received: 7, now: 305 * Self.second) == nil)
        #expect(state.pace(sent: nil, received: 40, now: 310 * Self.second) == 4)
        #expect(state.pace(sent: nil, received: 40, now: 320 * Self.second) == 0)
    }

    @Test func `a credential has a limit over all its addresses and both kinds`() {
        let tokens = (0..<8).map { _ in Token() }
        let ids = tokens.map { ObjectIdentifier($0) }
        var slots = UpstreamSlots(exchanges: 9, uploads: 9, perCredential: 2)
        let first = slots.enter(ids[0], .exchange, of: .init(principal: 1, host: [1]), now: 0)
        let second = slots.enter(ids[1], .upload, of: .init(principal: 1, host: [2]), now: 0)
        let third = slots.enter(ids[2], .upload, of: .init(principal: 1, host: [3]), now: 0)
        let other = slots.enter(ids[3], .exchange, of: .init(principal: 2, host: [1]), now: 0)
        #expect(first.isFree && second.isFree && !third.isFree && other.isFree)
        #expect(third.change == .init(kind: .upload, isCrowded: true, limit: 2, isForCredential: true))
        let afterOther = slots.leave(ids[3])
        #expect(afterOther.isEmpty)
        // The slot of an exchange is free for an upload.
        let afterFirst = slots.leave(ids[0])
        #expect(afterFirst == [ids[2]])
        let fourth = slots.enter(ids[4], .exchange, of: .init(principal: 1), now: 0)
        #expect(!fourth.isFree)
        let left = [slots.leave(ids[4]), slots.leave(ids[2]), slots.leave(ids[1])]
        #expect(left == [[], [], []])
        let again = slots.enter(ids[5], .exchange, of: .init(principal: 1), now: 0)
        #expect(again.isFree)
    }
}
