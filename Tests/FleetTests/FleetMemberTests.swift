import Foundation
import Proxy
import Store
import TestSupport
import Testing

@testable import Fleet

/// News of several machines, over a real server.
@Suite(.scripts, .enabled(if: RedisServer.isAvailable)) struct FleetNewsTests {
    @Test func `what one machine announces, all others apply, in order, and itself not`() async throws {
        let server = try RedisServer()
        let machines = try (0..<3).map { _ in try Machine(server) }
        for machine in machines { await machine.waitUntilConnected() }
        for number in 0..<100 { #expect(await machines[number % 2].write("/\(number)") != nil) }
        let last = try #require(await machines[0].write("/last"))
        for machine in machines { #expect(await machine.member.reach(last, in: Machine.upstream)) }
        let all = (0..<100).map { "/\($0)" }
        #expect(machines[2].paths == all + ["/last"])
        #expect(machines[1].paths == all.filter { Int($0.dropFirst())! % 2 == 0 } + ["/last"])
        #expect(machines[0].paths == all.filter { Int($0.dropFirst())! % 2 == 1 })
    }

    @Test func `the times of news are converted to the receiving machine's clock, as bounds of the true times`()
        async throws
    {
        let server = try RedisServer()
        let hour: Int64 = 3_600_000_000
        let (one, other) = (try Machine(server), try Machine(server, ahead: -hour))
        await one.waitUntilConnected()
        await other.waitUntilConnected()
        let news = one.wrote("/x")
        let entry = try #require(await one.member.announce(news, in: Machine.upstream))
        #expect(await other.member.reach(entry, in: Machine.upstream))
        let found = try #require(other.applied.first)
        #expect(found.start <= news.start - hour && found.end >= news.end - hour)
        #expect(found.start > news.start - hour - 60_000_000 && found.end < news.end - hour + 60_000_000)
    }

    @Test func `a machine that was away reads what it has missed, also after a restart`() async throws {
        let server = try RedisServer()
        let one = try Machine(server)
        await one.waitUntilConnected()
        let folder = TemporaryFolder()
        do {
            let other = try Machine(server, folder: folder)
            await other.waitUntilConnected()
            let entry = try #require(await one.write("/before"))
            #expect(await other.member.reach(entry, in: Machine.upstream))
            #expect(await eventually { folder.bytes("fleet.json").contains("\(entry.entry.milliseconds)") })
            await other.member.stop(within: .zero)
        }
        let entry = try #require(await one.write("/meanwhile"))
        let again = try Machine(server, folder: folder)
        await again.waitUntilConnected()
        #expect(await again.member.reach(entry, in: Machine.upstream))
        #expect(again.paths.last == "/meanwhile")
    }

    @Test func `news announced while the server is away are kept, and announced when it is back`() async throws {
        let server = try RedisServer()
        let (one, other) = (try Machine(server), try Machine(server))
        await one.waitUntilConnected()
        await other.waitUntilConnected()
        server.kill()
        await one.waitUntilAlone()
        await other.waitUntilAlone()
        #expect(await one.write("/away") == nil)
        #expect(one.member.figures.queued == 1 && one.member.figures.trouble != nil)
        #expect(await one.member.clientPosition(in: Machine.upstream) == nil)
        #expect(one.folder.names.contains("fleet.queue"))
        try server.start()
        #expect(await eventually { other.paths == ["/away"] })
        #expect(await eventually { !one.folder.names.contains("fleet.queue") })
    }

    @Test func `news kept while the server was away are announced after the machine has restarted`() async throws {
        let server = try RedisServer()
        let folder = TemporaryFolder()
        do {
            let one = try Machine(server, folder: folder)
            await one.waitUntilConnected()
            server.kill()
            await one.waitUntilAlone()
            #expect(await one.write("/kept") == nil)
            await one.member.stop(within: .zero)
        }
        try server.start()
        let other = try Machine(server)
        await other.waitUntilConnected()
        let again = try Machine(server, folder: folder)
        #expect(await eventually { other.paths == ["/kept"] })
        #expect(await eventually { again.member.figures.queued == 0 && !folder.names.contains("fleet.queue") })
    }

    @Test func `a server that hangs delays no caller for longer than the limit, and leaves the machine alone`()
        async throws
    {
        let server = try RedisServer()
        let one = try Machine(server, isPatient: false)
        await one.waitUntilConnected()
        server.hang()
        defer { server.goOn() }
        #expect(await one.write("/x") == nil)
        guard case .alone = await one.member.find(Machine.key()) else {
            Issue.record("found something")
            return
        }
        await one.waitUntilAlone()
    }

    @Test func `a server that has lost everything begins a new epoch, in which the latest news are announced again`()
        async throws
    {
        let server = try RedisServer()
        let one = try Machine(server)
        let former = try #require(await one.waitUntilConnected())
        let entry = try #require(await one.write("/x"))
        try server.command("FLUSHALL")
        #expect(await eventually { one.position.map { $0.epoch > former.epoch } ?? false })
        let other = try Machine(server)
        await other.waitUntilConnected()
        #expect(await eventually { other.paths == ["/x"] })
        #expect(await other.member.reach(entry, in: Machine.upstream) == false)
        #expect(await other.write("/y") != nil)
        #expect(await eventually { one.paths == ["/y"] })
    }

    @Test func `a machine that has not read all of the stream says so, also after a restart`() async throws {
        let server = try RedisServer()
        let one = try Machine(server)
        await one.waitUntilConnected()
        await withTaskGroup { group in
            for number in 0...RecentNews.capacity / 2 { group.addTask { _ = await one.write("/\(number)") } }
        }
        let folder = TemporaryFolder()
        let joined = Machine.now()
        do {
            let other = try Machine(server, folder: folder)
            await other.waitUntilConnected()
            #expect(try #require(other.member.followedSince(Machine.upstream)) >= joined)
            #expect(await eventually { folder.bytes("fleet.json").contains("missed") })
            await other.member.stop(within: .zero)
        }
        let again = try Machine(server, folder: folder)
        await again.waitUntilConnected()
        #expect(try #require(again.member.followedSince(Machine.upstream)) >= joined)
        #expect(try #require(one.member.followedSince(Machine.upstream)) < joined)
    }

    @Test func `after a restart, the values that others have observed are applied again, and their writes are not`()
        async throws
    {
        let server = try RedisServer()
        let (one, folder) = (try Machine(server), TemporaryFolder())
        await one.waitUntilConnected()
        let value = SharedObservation(
            principal: [],
            context: "",
            url: "/x",
            isList: false,
            dividedBy: nil,
            objects: [.init(model: "m", identity: "1", payload: Array("{}".utf8), isEmbedded: false)]
        )
        let time = Machine.now()
        do {
            let other = try Machine(server, folder: folder)
            await other.waitUntilConnected()
            #expect(await one.write("/x") != nil)
            let news = FleetNews(.observed(value), start: time, end: time)
            let position = try #require(await one.member.announce(news, in: Machine.upstream))
            #expect(await other.member.reach(position, in: Machine.upstream))
            #expect(await eventually { folder.bytes("fleet.json").contains("\(position.entry.milliseconds)") })
            await other.member.stop(within: .zero)
        }
        let again = try Machine(server, loss: .zero, folder: folder)
        await again.waitUntilConnected()
        #expect(again.applied.map(\.event) == [.observed(value)])
    }

    @Test func `news announced while the server's clock is being changed have their right times, or none`() async throws
    {
        let clock = try WallClock()
        let server = try RedisServer(environment: clock.environment)
        let (one, other) = (try Machine(server), try Machine(server))
        await one.waitUntilConnected()
        await other.waitUntilConnected()
        let begin = Machine.now()
        let isOver = Monitor(false)
        async let announced: Void = withTaskGroup { group in
            for task in 0..<8 {
                group.addTask {
                    var number = 0
                    while !isOver.current {
                        number += 1
                        _ = await one.write("/\(task)/\(number)")
                    }
                }
            }
        }
        for ahead in [3_600, 0, -3_600, 0, 3_600] {
            let epoch = other.position?.epoch ?? 0
            try clock.set(ahead: ahead)
            #expect(await eventually { (other.position?.epoch ?? 0) > epoch })
        }
        isOver.withLock { $0 = true }
        _ = await announced
        var isRead = false
        for _ in 0..<100 where !isRead {
            // On a busy machine either may take longer than a request waits.
            if let last = await one.write("/last") { isRead = await other.member.reach(last, in: Machine.upstream) }
            if !isRead { try await Task.sleep(for: .milliseconds(100)) }
        }
        #expect(isRead)
        // A minute is more than enough for everything but a clock.
        let (first, end) = (begin - 60_000_000, Machine.now() + 60_000_000)
        #expect(other.applied.allSatisfy { ($0.start == 0 || $0.start > first) && $0.end > first && $0.end < end })
        #expect(other.applied.count > 100)
    }

    @Test func `if the server's clock was set back while no machine was connected, a new epoch begins`() async throws {
        let clock = try WallClock()
        let server = try RedisServer(environment: clock.environment)
        var former: FleetPosition?
        do {
            let one = try Machine(server)
            await one.waitUntilConnected()
            former = await one.write("/x")
            await one.member.stop(within: .zero)
        }
        try clock.set(ahead: -3_600)
        let other = try Machine(server)
        let position = try #require(await other.waitUntilConnected())
        #expect(try position.epoch > #require(former).epoch)
    }

    @Test func `an epoch begun before the server's clock was changed is left, and its news count as of now`()
        async throws
    {
        let (clock, folder) = (try WallClock(), TemporaryFolder())
        let server = try RedisServer(environment: clock.environment)
        let one = try Machine(server)
        let former = try #require(await one.waitUntilConnected())
        do {
            let other = try Machine(server, folder: folder)
            await other.waitUntilConnected()
            let entry = try #require(await other.write("/before"))
            #expect(await eventually { folder.bytes("fleet.json").contains("\(entry.entry.milliseconds)") })
            await other.member.stop(within: .zero)
        }
        let names = FleetNames(record: FleetKeys([UInt8](repeating: 7, count: 32)).name(ofUpstream: Machine.upstream))
        try server.command("DEL", names.stream(former.epoch))
        try server.command("HSET", names.record, "last", "99999999999999-0")
        #expect(await eventually { (one.position?.epoch ?? 0) > former.epoch })
        let between = try #require(await one.write("/between"))
        await one.member.stop(within: .zero)
        // Its threads have ended, too: this command's connection is the only one.
        #expect(try await eventually { try server.command("CLIENT", "LIST").split(separator: "\n").count == 1 })
        try clock.set(ahead: 3_600)
        let restart = Machine.now()
        let again = try Machine(server, folder: folder)
        #expect(try #require(await again.waitUntilConnected()).epoch > between.epoch)
        #expect(await eventually { again.paths.contains("/between") })
        #expect(try #require(again.applied.last { $0.path == "/between" }).end >= restart)
    }

    @Test func `a machine whose own clock was set ahead before it started begins a new epoch`() async throws {
        let (server, folder) = (try RedisServer(), TemporaryFolder())
        var former: FleetPosition?
        do {
            let one = try Machine(server, folder: folder)
            await one.waitUntilConnected()
            let entry = try #require(await one.write("/before"))
            #expect(await eventually { folder.bytes("fleet.json").contains("\(entry.entry.milliseconds)") })
            former = entry
            await one.member.stop(within: .zero)
        }
        let again = try Machine(server, ahead: 3_600_000_000, folder: folder)
        let position = try #require(await again.waitUntilConnected())
        #expect(try position.epoch > #require(former).epoch)
    }

    @Test func `kept news end no earlier than the restart, whatever the machine's clock showed before it`() async throws
    {
        let (server, folder) = (try RedisServer(), TemporaryFolder())
        let other = try Machine(server)
        await other.waitUntilConnected()
        do {
            let one = try Machine(server, folder: folder)
            await one.waitUntilConnected()
            server.kill()
            await one.waitUntilAlone()
            #expect(await one.write("/away") == nil)
            await one.member.stop(within: .zero)
        }
        let restart = Machine.now()
        try server.start()
        let again = try Machine(server, ahead: 3_600_000_000, folder: folder)
        await again.waitUntilConnected()
        #expect(await eventually { other.paths == ["/away"] })
        #expect(try #require(other.applied.last).end >= restart)
    }

    @Test func `a restart of the server begins a new epoch`() async throws {
        let server = try RedisServer()
        let one = try Machine(server)
        let former = try #require(await one.waitUntilConnected())
        server.kill()
        await one.waitUntilAlone()
        try server.start()
        #expect(try #require(await one.waitUntilConnected()).epoch > former.epoch)
    }

    @Test func `a lost stream begins a new epoch, and nothing that was announced lately is lost`() async throws {
        let server = try RedisServer()
        let (one, other) = (try Machine(server), try Machine(server))
        await one.waitUntilConnected()
        let former = try #require(await other.waitUntilConnected())
        #expect(await one.write("/before") != nil)
        #expect(await eventually { other.paths.contains("/before") })
        let names = FleetNames(record: FleetKeys([UInt8](repeating: 7, count: 32)).name(ofUpstream: Machine.upstream))
        // As if an entry had been evicted with the stream before the other machine could read it.
        try server.command("DEL", names.stream(former.epoch))
        try server.command("HSET", names.record, "last", "99999999999999-0")
        #expect(
            await eventually {
                (other.position?.epoch ?? 0) > former.epoch && (one.position?.epoch ?? 0) > former.epoch
            }
        )
        #expect(await one.write("/after") != nil)
        #expect(await eventually { other.paths.contains("/after") })
        #expect(one.position?.epoch == other.position?.epoch)
    }

    @Test func `machines with another key do not see one another`() async throws {
        let server = try RedisServer()
        let (one, other) = (try Machine(server), try Machine(server, key: 8))
        await one.waitUntilConnected()
        await other.waitUntilConnected()
        #expect(await one.write("/x") != nil)
        #expect(await other.write("/y") != nil)
        let entry = try #require(await other.write("/z"))
        #expect(await other.member.reach(entry, in: Machine.upstream))
        #expect(one.paths.isEmpty && other.paths.isEmpty && one.member.figures.unopened == 0)
    }

    @Test func `news that cannot be decrypted are ignored and counted`() async throws {
        let server = try RedisServer()
        let (one, other) = (try Machine(server), try Machine(server))
        await other.waitUntilConnected()
        let position = try #require(await one.waitUntilConnected())
        let names = FleetNames(record: FleetKeys([UInt8](repeating: 7, count: 32)).name(ofUpstream: Machine.upstream))
        let stream = names.stream(position.epoch)
        let id = try server.command("XADD", stream, "*", "after", "0-0", "news", "garbage")
        try server.command("HSET", names.record, "last", id)
        #expect(await other.write("/x") != nil)
        #expect(await eventually { one.paths == ["/x"] })
        #expect(one.member.figures.unopened == 1 && one.position?.epoch == position.epoch)
    }

    @Test func `the server learns neither paths nor bodies nor credentials`() async throws {
        let server = try RedisServer()
        let one = try Machine(server)
        await one.waitUntilConnected()
        #expect(await one.write("/secret-path") != nil)
        try await one.share("secret-body", at: Machine.key("/secret-url", "secret-credential"))
        #expect(await eventually { (try? server.command("KEYS", "*:document:*")).map { !$0.isEmpty } ?? false })
        try server.command("SAVE")
        // The image may be compressed; values are short, so that they are not.
        #expect(!server.folder.bytes("dump.rdb").contains("secret-") && !server.folder.bytes("dump.rdb").isEmpty)
    }

    @Test func `a machine waits for a position of its epoch, and not for one of another`() async throws {
        let server = try RedisServer()
        let one = try Machine(server)
        let position = try #require(await one.waitUntilConnected())
        #expect(await one.member.reach(position, in: Machine.upstream))
        var other = position
        other.epoch -= 1
        #expect(await one.member.reach(other, in: Machine.upstream) == false)
        other.epoch += 2
        let impatient = try Machine(server, isPatient: false)
        await impatient.waitUntilConnected()
        #expect(await impatient.member.reach(other, in: Machine.upstream) == false)
        #expect(await one.member.reach(position, in: "another") == false)
        let entry = try #require(await one.write("/x"))
        #expect(await one.member.clientPosition(in: Machine.upstream).map { $0 >= entry } == true)
    }
}

/// Responses of several machines, over a real server.
@Suite(.scripts, .enabled(if: RedisServer.isAvailable)) struct FleetDocumentTests {
    private func machines(_ server: RedisServer, _ count: Int = 2, coalesce: Duration = .seconds(60)) async throws
        -> [Machine]
    {
        let machines = try (0..<count).map { _ in try Machine(server, coalesce: coalesce) }
        for machine in machines { await machine.waitUntilConnected() }
        return machines
    }

    @Test func `a response that one machine shares is found by another as it was received`() async throws {
        let server = try RedisServer()
        let machines = try await machines(server)
        try await machines[0].share(#"{"a":1}"#)
        #expect(await machines[1].found() == #"{"a":1}"#)
        #expect(machines[1].member.figures.found == 1 && machines[0].member.figures.shared == 1)
        // Also one that has just started.
        let late = try Machine(server)
        await late.waitUntilConnected()
        #expect(await late.found() == #"{"a":1}"#)
    }

    @Test func `a response from the future is not used`() async throws {
        let machines = try await machines(try RedisServer())
        let key = Machine.key()
        guard case .mine = await machines[0].member.find(key) else {
            Issue.record("somebody else fetches it")
            return
        }
        let document = machines[0].document("early", sent: Machine.now() + 3_600_000_000)
        machines[0].member.share(document, at: key, from: try #require(machines[0].position))
        #expect(await eventually { machines[0].member.figures.shared == 1 })
        #expect(await machines[1].found() == nil)
    }

    @Test func `a private response is found by its principal alone`() async throws {
        let machines = try await machines(try RedisServer())
        try await machines[0].share("ada's", at: Machine.key("/x", "ada"))
        #expect(await machines[1].found(Machine.key("/x", "ada")) == "ada's")
        for key in [Machine.key("/x", "bob"), Machine.key("/x")] {
            guard case .mine = await machines[1].member.find(key) else {
                Issue.record("found something at \(key)")
                continue
            }
        }
    }

    @Test func `a machine that waits for another machine's fetch gets its response`() async throws {
        let machines = try await machines(try RedisServer(), 3)
        guard case .mine = await machines[0].member.find(Machine.key()) else {
            Issue.record("somebody else fetches it")
            return
        }
        async let second = machines[1].found()
        async let third = machines[2].found()
        #expect(await eventually { machines[1].member.figures.waited == 1 && machines[2].member.figures.waited == 1 })
        machines[0].member.share(
            machines[0].document("shared"),
            at: Machine.key(),
            from: try #require(machines[0].position)
        )
        #expect(await second == "shared")
        #expect(await third == "shared")
    }

    @Test func `after a failed fetch another machine takes its turn; an unshareable response each fetches itself`()
        async throws
    {
        let machines = try await machines(try RedisServer())
        for isForNow in [true, false] {
            let key = Machine.key("/\(isForNow)")
            guard case .mine = await machines[0].member.find(key) else {
                Issue.record("somebody else fetches it")
                return
            }
            let waited = machines[1].member.figures.waited
            async let found = machines[1].member.find(key)
            #expect(await eventually { machines[1].member.figures.waited == waited + 1 })
            machines[0].member.release(key, isForNow: isForNow)
            switch (await found, isForNow) {
            case (.mine, true), (.alone, false): break
            case (let other, _): Issue.record("\(other)")
            }
        }
        guard case .alone = await machines[0].member.find(Machine.key("/false")) else {
            Issue.record("somebody is waited for")
            return
        }
    }

    @Test func `a machine that has waited too long for another's fetch asks the upstream itself`() async throws {
        let machines = try await machines(try RedisServer(), coalesce: .milliseconds(300))
        guard case .mine = await machines[0].member.find(Machine.key()) else {
            Issue.record("somebody else fetches it")
            return
        }
        switch await machines[1].member.find(Machine.key()) {
        case .alone: break
        case let other: Issue.record("\(other)")
        }
    }

    @Test func `a response that was requested before a write is not used after it`() async throws {
        let machines = try await machines(try RedisServer())
        try await machines[0].share("old")
        #expect(await machines[1].found() == "old")
        let entry = try #require(await machines[1].write("/x"))
        #expect(await machines[1].member.reach(entry, in: Machine.upstream))
        guard case .mine = await machines[1].member.find(Machine.key()) else {
            Issue.record("an outdated response was used")
            return
        }
        #expect(machines[1].member.figures.refused == 1)
        machines[1].member.share(
            machines[1].document("new"),
            at: Machine.key(),
            from: try #require(machines[1].position)
        )
        #expect(await eventually { machines[1].member.figures.shared == 1 })
        #expect(await machines[0].found() == "new")
    }

    @Test func `in a new epoch nothing is found that was shared before, also if it is put there again`() async throws {
        let server = try RedisServer()
        let machines = try await machines(server)
        let former = try #require(machines[0].position)
        try await machines[0].share("old")
        let names = FleetNames(record: FleetKeys([UInt8](repeating: 7, count: 32)).name(ofUpstream: Machine.upstream))
        let name = FleetKeys([UInt8](repeating: 7, count: 32)).name(of: Machine.key())
        #expect(await eventually { (try? server.command("EXISTS", names.document(name, former.epoch))) == "1" })
        try server.command("DEL", names.record)
        #expect(await eventually { machines.allSatisfy { ($0.position?.epoch ?? 0) > former.epoch } })
        let epoch = try #require(machines[1].position).epoch
        // The server replays the old one at the new place.
        try server.command("COPY", names.document(name, former.epoch), names.document(name, epoch))
        guard case .mine = await machines[1].member.find(Machine.key()) else {
            Issue.record("an old response was used")
            return
        }
        #expect(machines[1].member.figures.unopened == 1)
    }

    @Test func `a response that is too large, or of no use, is not shared`() async throws {
        let server = try RedisServer()
        let machines = try await machines(server)
        for (key, lifetime, size) in [
            (Machine.key("/large"), 60, SharedDocument.bodyByteLimit + 1), (Machine.key("/old"), 0, 1),
        ] {
            guard case .mine = await machines[0].member.find(key) else {
                Issue.record("somebody else fetches it")
                continue
            }
            let document = machines[0].document(String(repeating: "x", count: size), lifetime: Int64(lifetime))
            machines[0].member.share(document, at: key, from: try #require(machines[0].position))
            #expect(await machines[1].found(key) == nil)
        }
        #expect(try server.command("KEYS", "*:document:*").isEmpty)
    }

    @Test func `a full server costs the shared responses, and nothing else`() async throws {
        let server = try RedisServer(["--maxmemory", "3mb", "--maxmemory-policy", "volatile-lru"])
        let machines = try await machines(server)
        let body = String(repeating: "x", count: 300_000)
        for number in 0..<20 { try await machines[0].share(body, at: Machine.key("/\(number)")) }
        let entry = try #require(await machines[0].write("/y"))
        #expect(await machines[1].member.reach(entry, in: Machine.upstream))
        #expect(machines[1].paths == ["/y"])
    }
}
