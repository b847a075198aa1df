import Basics
import Logging
import Proxy
import Store

/// One connection of the reader, from its begin to its end; it belongs to the reader's thread.
struct FleetSession {
    typealias Followed = FleetReader.Followed

    private let reader: FleetReader
    private let state: FleetState
    private let connection: RedisConnection
    private let all: [Followed]
    private(set) var memory: FleetMemory
    private var checkedAt = ContinuousClock.now
    /// The first round is noted at once, with the clock of a new server.
    private var savedAt = ContinuousClock.now - .seconds(1)

    private static let block: Duration = .milliseconds(250)

    init(_ reader: FleetReader, _ connection: RedisConnection, _ all: [Followed], _ memory: FleetMemory) {
        (self.reader, state, self.connection, self.all, self.memory) = (reader, reader.state, connection, all, memory)
    }

    // MARK: Begin

    /// Learns the time and the epochs.
    mutating func begin() throws(RedisError) {
        // The clock of another server is another one.
        let server = connection.runID
        state.change { if $0.clockServer != server { ($0.clock, $0.clockServer) = (nil, server) } }
        for _ in 0..<3 { try readClock() }
        for followed in all { try enterEpoch(followed) }
        checkedAt = .now
    }

    /// Asks for the server's time.
    ///
    /// If a clock was set since the last time, this one begins anew, and all epochs have to end.
    private func readClock() throws(RedisError) {
        let sent = state.now()
        addReading(sent, try connection.single(RedisCommand("TIME")))
    }

    private func addReading(_ sent: Int64, _ reply: RedisReply) {
        let received = state.now()
        guard let parts = reply.array?.compactMap(\.number), parts.count == 2 else { return }
        let reading = FleetClock.Reading(sent: sent, received: received, server: parts[0] &* 1_000_000 &+ parts[1])
        let isContinuous = state.change { content in
            var clock = content.clock ?? FleetClock(reading)
            let isContinuous = clock.add(reading)
            if !isContinuous {
                clock = FleetClock(reading)
                // Nothing may be announced, or read, in an epoch that began by the other time.
                for upstream in content.upstreams.keys { content.upstreams[upstream]?.leaveEpoch() }
            }
            content.clock = clock
            content.figures.clockError = clock.error
            content.figures.lastReply = received
            return isContinuous
        }
        if !isContinuous { for followed in all { followed.isClockSet = true } }
    }

    /// Enters an upstream's epoch, which may be a new one.
    ///
    /// If a clock was set, the current epoch may have begun by the former time, whoever has begun it. So it is ended.
    ///
    /// - Parameter ending: why the epoch that this machine is in is over; nil if it need not be.
    private func enterEpoch(_ followed: Followed, ending reason: String? = nil) throws(RedisError) {
        let (epoch, isClockSet) = (followed.epoch, followed.isClockSet)
        let ended = isClockSet ? "*" : reason != nil && epoch != 0 ? "\(epoch)" : ""
        let reply = try run(.enter, keys: [followed.names.record], [connection.runID, "\(epoch)", ended])
        guard let parts = reply.array, parts.count >= 2, let current = parts[0].text.flatMap({ UInt64($0) }),
            let last = EntryID(parts[1].text)
        else { throw .malformed }
        if isClockSet { followed.isClockSet = false }
        if current == epoch {
            guard followed.cursor.checked(last: last) else {
                return try enterEpoch(followed, ending: "the stream was removed")
            }
            if state.value({ $0.upstreams[followed.upstream]?.epoch }) != epoch { try resume(followed, current, last) }
        } else {
            if epoch != 0 {
                state.log.notice(
                    "a new epoch of the fleet has begun: what was shared before is not used",
                    metadata: [
                        "upstream": "\(followed.upstream)",
                        "cause": "\(isClockSet ? "a clock was set" : reason ?? "another machine, or the server")",
                    ]
                )
            }
            try changeEpoch(followed, current, last, before: isClockSet ? parts.last?.text.flatMap { UInt64($0) } : nil)
        }
    }

    /// Runs a script that is run too rarely to be loaded.
    private func run(_ script: FleetScript, keys: [String], _ arguments: [String], within limit: Duration? = nil)
        throws(RedisError) -> RedisReply
    {
        let command = ["EVAL", script.rawValue, "\(keys.count)"] + keys + arguments
        return try connection.single(RedisCommand(command.map { Array($0.utf8) }), within: limit)
    }

    /// Goes on in another epoch.
    ///
    /// - Parameter ended: the epoch before it, if this machine has ended that, perhaps without having been in it.
    private func changeEpoch(_ followed: Followed, _ epoch: UInt64, _ last: EntryID, before ended: UInt64?)
        throws(RedisError)
    {
        let isFirst = followed.epoch == 0
        if !isFirst {
            try readRestOfFormer(followed)
            if let ended, ended > followed.epoch {
                (followed.epoch, followed.cursor) = (ended, StreamCursor(at: .start))
                try readRestOfFormer(followed)
            }
        }
        try readClock()
        // It was set after the last reading, and the epoch may be older than that.
        if followed.isClockSet { return try enterEpoch(followed) }
        (followed.epoch, followed.cursor) = (epoch, StreamCursor(at: .start))
        // What this process has announced in the former one, others may have missed.
        let (upstream, time) = (followed.upstream, state.now())
        state.change { content in
            content.queue.repeatAnnounced(in: upstream, at: time)
            content.figures.epochs += 1
        }
        if isFirst { return try resume(followed, epoch, last) }
        (followed.wasApplied, followed.wasCleaned, followed.missedAt) = (.start, .start, nil)
        try publishEpoch(followed, after: .start)
    }

    /// Resumes an epoch's stream: where this machine has stopped, but so early that it knows the latest news.
    ///
    /// - Parameter last: the last entry of the stream.
    private func resume(_ followed: Followed, _ epoch: UInt64, _ last: EntryID) throws(RedisError) {
        let stream = followed.names.stream(epoch)
        let tail = try run(.tail, keys: [stream], ["\(RecentNews.capacity / 2)"], within: .seconds(5))
        let early = EntryID(tail.text) ?? .start
        let stopped = followed.epoch == epoch ? followed.cursor.position : .start
        let first = stopped == .start ? early : min(early, stopped)
        // What the stream had before that is not read.
        if stopped == .start, early != .start { followed.missedAt = state.now() }
        // After a power failure the store may lack the last of it.
        let lost = UInt64(state.timeouts.loss.components.seconds) * 1000
        followed.wasApplied = EntryID(stopped.milliseconds - min(stopped.milliseconds, lost))
        followed.wasCleaned = last
        (followed.epoch, followed.cursor) = (epoch, StreamCursor(at: first))
        try publishEpoch(followed, after: first)
    }

    /// Shows the epoch to others, who wait until all of it is read.
    private func publishEpoch(_ followed: Followed, after entry: EntryID) throws(RedisError) {
        let (epoch, missedAt) = (followed.epoch, followed.missedAt)
        let command = RedisCommand("XREVRANGE", followed.names.outcomes(epoch), "+", "-", "COUNT", "1")
        followed.outcomesPosition = EntryID(try connection.single(command).array?.first?.array?.first?.text) ?? .start
        state.change(followed.upstream) { known in
            (known.epoch, known.applied, known.own, known.isFollowing) = (epoch, entry, .start, false)
            known.missedAt = missedAt
            known.recent = RecentNews(after: entry)
            known.wake()
        }
        reader.sender.wake()
    }

    /// Reads what is left of the stream of an epoch that is over; its times mean nothing any more.
    private func readRestOfFormer(_ followed: Followed) throws(RedisError) {
        let stream = followed.stream
        while true {
            let position = followed.cursor.position.text
            let command = RedisCommand("XREAD", "COUNT", "\(Self.batch)", "STREAMS", stream, position)
            let entries = Self.entries(try connection.single(command))[stream] ?? []
            guard !entries.isEmpty else { return }
            let (taken, hasGap) = followed.cursor.take(entries.map(\.news), isAll: false)
            process(taken, followed, isFormer: true)
            if hasGap { return }
        }
    }

    // MARK: Rounds

    private static let batch = 32

    /// Reads once, and looks whether the epochs are still the same.
    mutating func round() throws(RedisError) {
        let block = "\(Self.block.components.attoseconds / 1_000_000_000_000_000)"
        var arguments = ["XREAD", "COUNT", "\(Self.batch)", "BLOCK", block, "STREAMS"]
        arguments += all.flatMap { [$0.stream, $0.names.outcomes($0.epoch)] }
        arguments += all.flatMap { [$0.cursor.position.text, $0.outcomesPosition.text] }
        let asked = state.now()
        let command = RedisCommand(arguments.map { Array($0.utf8) })
        let found = Self.entries(try connection.single(command, within: Self.block + state.timeouts.server))
        let replied = state.now()
        state.change { $0.figures.lastReply = replied }
        // Whoever has announced it may know already that the server's clock was set.
        if all.contains(where: { found[$0.stream]?.isEmpty == false }) { try readClock() }
        for followed in all {
            if followed.isClockSet {
                try enterEpoch(followed)
                continue
            }
            hear(found[followed.names.outcomes(followed.epoch)] ?? [], followed)
            let entries = found[followed.stream] ?? []
            let isAll = entries.count < Self.batch
            let (taken, hasGap) = followed.cursor.take(entries.map(\.news), isAll: isAll)
            process(taken, followed)
            if hasGap { try recoverFromGap(followed) } else if isAll { caughtUp(followed, at: asked) }
        }
        if ContinuousClock.now - checkedAt >= Self.block { try check() }
        if ContinuousClock.now - savedAt >= .seconds(1) {
            savedAt = .now
            save()
        }
    }

    private func caughtUp(_ followed: Followed, at time: Int64) {
        followed.readAt = time
        state.change(followed.upstream) { known in
            guard !known.isFollowing else { return }
            known.isFollowing = true
            known.wake()
        }
    }

    /// Goes on after entries that this machine will not get any more.
    ///
    /// If it has caught up lately, it ends the epoch: in the next one, others announce again what was lately. If not, that would not
    /// do: what it has missed is lost to this machine alone, and it goes on with the latest news of the same epoch.
    private func recoverFromGap(_ followed: Followed) throws(RedisError) {
        if let readAt = followed.readAt, state.now() - readAt < NewsQueue.memory {
            return try enterEpoch(followed, ending: "news were missed")
        }
        state.log.notice(
            "this machine has missed news of the fleet: responses from before may be outdated until they are not fresh any more",
            metadata: ["upstream": "\(followed.upstream)"]
        )
        let last = followed.cursor.last
        (followed.cursor, followed.missedAt) = (StreamCursor(at: .start), state.now())
        try resume(followed, followed.epoch, last)
        followed.readAt = state.now()
    }

    private mutating func check() throws(RedisError) {
        let sent = state.now()
        let records = all.map { RedisCommand("HMGET", $0.names.record, "epoch", "server", "last") }
        let replies = try connection.send([RedisCommand("TIME")] + records)
        for case .error(let message) in replies { throw .refused(message) }
        addReading(sent, replies[0])
        checkedAt = .now
        for (followed, reply) in zip(all, replies.dropFirst()) {
            let parts = (reply.array ?? []).map(\.text)
            guard parts.count == 3 else { throw .malformed }
            if parts[0] != nil, parts[1] != connection.runID { throw .away("another server has taken over") }
            if parts[0] != "\(followed.epoch)" || followed.isClockSet {
                try enterEpoch(followed)
            } else if !(EntryID(parts[2]).map { followed.cursor.checked(last: $0) } ?? false) {
                try enterEpoch(followed, ending: "the stream was removed")
            }
        }
    }

    // MARK: Entries

    /// Applies entries, and shows that.
    private func process(_ entries: [StreamEntry], _ followed: Followed, isFormer: Bool = false) {
        guard let last = entries.last?.id, let clock = state.value(\.clock) else { return }
        let (upstream, stream, time) = (followed.upstream, followed.stream, state.now())
        var known: [RecentNews.Known] = []
        var news: [FleetNews] = []
        for entry in entries {
            guard let (bytes, sender) = state.sealer.open(entry.sealed, key: state.keys.newsKey, place: stream),
                let published = try? PublishedNews(bytes)
            else {
                state.countUnopened("news")
                continue
            }
            // What a former process has applied, this one may not remember.
            let isOld = entry.id <= followed.wasApplied && !isFormer
            known.append(RecentNews.Known(id: entry.id, sender: sender, news: isOld ? published : published.merged))
            if sender == state.sealer.sender { continue }
            switch published.event {
            // What is not known here is remembered in memory only, so a restart has forgotten it.
            case .observed: break
            // A clean is not carried out again because a machine joins.
            case .cleaned where entry.id <= followed.wasCleaned: continue
            case .suspect, .wrote, .withdrawn, .invalidated, .cleaned: if isOld { continue }
            }
            news.append(published.local(isFormer ? nil : clock, now: time, from: sender))
        }
        reader.apply(news, at: FleetPosition(epoch: followed.epoch, entry: last), in: upstream)
        let applied = clock.server(state.now()).lowerBound
        let delays = entries.map { max(0, Double(applied - Int64(clamping: $0.id.milliseconds) * 1000) / 1_000_000) }
        state.change { [known, delays] content in
            content.figures.applied += UInt64(news.count)
            guard !isFormer else { return }
            for delay in delays { content.figures.delays.record(seconds: delay) }
            content.figures.lastDelay = delays.last ?? 0
            content.upstreams[upstream]?.applied = last
            for entry in known { content.upstreams[upstream]?.recent.append(entry) }
            content.upstreams[upstream]?.wake()
        }
    }

    /// Passes on what others say of their fetches.
    private func hear(_ entries: [RawEntry], _ followed: Followed) {
        for entry in entries {
            followed.outcomesPosition = max(followed.outcomesPosition, entry.id)
            for (name, word) in entry.fields {
                guard let outcome = FetchOutcomes.Outcome(rawValue: String(decoding: word, as: UTF8.self)) else {
                    continue
                }
                state.fetchOutcomes.give(outcome, for: name)
            }
        }
    }

    /// An entry as the server has it.
    private struct RawEntry {
        var id: EntryID
        var fields: [(name: String, value: [UInt8])]

        var news: StreamEntry {
            let values = Dictionary(fields.map { ($0.name, $0.value) }) { first, _ in first }
            let predecessor = values["after"].flatMap { EntryID(String(decoding: $0, as: UTF8.self)) }
            return StreamEntry(id: id, predecessor: predecessor ?? id, sealed: values["news"] ?? [])
        }
    }

    /// The entries in the reply to `XREAD`, by stream.
    private static func entries(_ reply: RedisReply) -> [String: [RawEntry]] {
        var found: [String: [RawEntry]] = [:]
        for stream in reply.array ?? [] {
            guard let parts = stream.array, parts.count == 2, let name = parts[0].text else { continue }
            found[name] = (parts[1].array ?? []).compactMap { entry in
                guard let parts = entry.array, parts.count == 2, let id = EntryID(parts[0].text) else { return nil }
                let texts = (parts[1].array ?? []).map { $0.bytes ?? [] }
                let fields = stride(from: 0, to: texts.count - 1, by: 2).map {
                    (name: String(decoding: texts[$0], as: UTF8.self), value: texts[$0 + 1])
                }
                return RawEntry(id: id, fields: fields)
            }
        }
        return found
    }

    // MARK: Memory

    /// Notes beside the store how far it is read.
    ///
    /// What is read after the end is not applied, and so not noted.
    mutating func save() {
        guard !state.isStopped else { return }
        var new = memory
        for followed in all where followed.epoch != 0 {
            guard let time = followed.readAt else { continue }
            let position = FleetMemory.Position(followed.epoch, followed.cursor.position, time, followed.missedAt)
            // The time alone need not be exact.
            if var former = memory.positions[followed.upstream], time - former.time < 60_000_000 {
                former.time = time
                if former == position { continue }
            }
            new.positions[followed.upstream] = position
        }
        guard new != memory else { return }
        // It changes all the time, and an old one shows as much.
        (new.clock, new.clockServer) = state.value { ($0.clock, $0.clockServer) }
        guard new.save(besideStore: state.store) else { return }
        memory = new
    }
}
