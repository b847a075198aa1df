import Logging
import Proxy
import Store

/// One connection of the reader, from its begin to its end; it belongs to the reader's thread.
struct FleetSession {
    private let reader: FleetReader
    private let connection: RedisConnection
    private(set) var followed: [FleetReader.Followed]
    private(set) var memory: FleetMemory
    private var checkedAt = ContinuousClock.now
    /// The first round is noted at once, with the clock of a new server.
    private var savedAt = ContinuousClock.now - .seconds(1)

    private static let block: Duration = .milliseconds(250)

    init(
        _ reader: FleetReader,
        _ connection: RedisConnection,
        _ followed: [FleetReader.Followed],
        _ memory: FleetMemory
    ) { (self.reader, self.connection, self.followed, self.memory) = (reader, connection, followed, memory) }

    private var state: FleetState { reader.state }

    // MARK: Begin

    /// Learns the time and the epochs.
    mutating func begin() throws(RedisError) {
        // The clock of another server is another one.
        let server = connection.runID
        state.change { if $0.clockServer != server { ($0.clock, $0.clockServer) = (nil, server) } }
        for _ in 0..<3 { try readClock() }
        for index in followed.indices { try enter(index) }
        checkedAt = .now
    }

    /// Asks for the server's time.
    ///
    /// If a clock was set since the last time, this one begins anew, and all epochs have to end.
    private mutating func readClock() throws(RedisError) {
        let sent = reader.now()
        let reply = try connection.single(RedisCommand("TIME"), within: reader.limits.server)
        addReading(sent, reply)
    }

    private mutating func addReading(_ sent: Int64, _ reply: RedisReply) {
        let received = reader.now()
        guard let parts = reply.array?.compactMap(\.text).compactMap({ Int64($0) }), parts.count == 2 else { return }
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
        guard !isContinuous else { return }
        for index in followed.indices { followed[index].isClockSet = true }
    }

    /// Enters an upstream's epoch, which may be a new one.
    ///
    /// If a clock was set, the current epoch may have begun by the former time, whoever has begun it. So it is ended.
    ///
    /// - Parameter ending: whether the epoch that this machine is in is over.
    private mutating func enter(_ index: Int, ending: Bool = false, because reason: String = "") throws(RedisError) {
        let (epoch, names) = (followed[index].epoch, followed[index].names)
        let isClockSet = followed[index].isClockSet
        let ended = isClockSet ? "*" : ending && epoch != 0 ? "\(epoch)" : ""
        let reply = try run(
            .enter,
            keys: [names.record],
            [connection.runID, "\(epoch)", ended],
            within: reader.limits.server
        )
        guard let parts = reply.array, parts.count >= 2, let current = parts[0].text.flatMap({ UInt64($0) }),
            let last = EntryID(parts[1].text)
        else { throw .malformed }
        if isClockSet { followed[index].isClockSet = false }
        if current == epoch {
            if followed[index].cursor.checked(last: last) {
                if state.value({ [upstream = followed[index].upstream] in $0.upstreams[upstream]?.epoch }) == epoch {
                    return
                }
                try join(index, current, last)
            } else {
                try enter(index, ending: true, because: "the stream was removed")
            }
        } else {
            if epoch != 0 {
                reader.log.notice(
                    "a new epoch of the fleet has begun: what was shared before is not used",
                    metadata: [
                        "upstream": "\(followed[index].upstream)",
                        "cause":
                            "\(isClockSet ? "a clock was set" : ending ? reason : "another machine, or the server")",
                    ]
                )
            }
            try adopt(index, current, last, before: isClockSet ? parts.last?.text.flatMap { UInt64($0) } : nil)
        }
    }

    /// Runs a script that is run too rarely to be loaded.
    private func run(_ script: FleetScript, keys: [String], _ arguments: [String], within limit: Duration)
        throws(RedisError) -> RedisReply
    {
        let words = ["EVAL", script.rawValue, "\(keys.count)"] + keys + arguments
        return try connection.single(RedisCommand(words.map { Array($0.utf8) }), within: limit)
    }

    /// Goes on in another epoch.
    ///
    /// - Parameter ended: the epoch before it, if this machine has ended that, perhaps without having been in it.
    private mutating func adopt(_ index: Int, _ epoch: UInt64, _ last: EntryID, before ended: UInt64?)
        throws(RedisError)
    {
        let isFirst = followed[index].epoch == 0
        if !isFirst {
            try readRestOfFormer(index)
            if let ended, ended > followed[index].epoch {
                (followed[index].epoch, followed[index].cursor) = (ended, StreamCursor(at: .start))
                try readRestOfFormer(index)
            }
        }
        try readClock()
        // It was set after the last reading, and the epoch may be older than that.
        if followed[index].isClockSet { return try enter(index) }
        (followed[index].epoch, followed[index].cursor) = (epoch, StreamCursor(at: .start))
        // What this process has announced in the former one, others may have missed.
        let (upstream, time) = (followed[index].upstream, reader.now())
        state.change { content in
            content.queue.repeatAnnounced(in: upstream, at: time)
            content.figures.epochs += 1
        }
        if isFirst {
            try join(index, epoch, last)
        } else {
            (followed[index].wasApplied, followed[index].wasCleaned) = (.start, .start)
            followed[index].missedAt = nil
            try start(index, after: .start)
        }
    }

    /// Begins to read an epoch's stream: where this machine has stopped, but so early that it knows the latest news.
    ///
    /// - Parameter last: the last entry of the stream.
    private mutating func join(_ index: Int, _ epoch: UInt64, _ last: EntryID) throws(RedisError) {
        let stream = followed[index].names.stream(epoch)
        let early =
            EntryID(
                try run(.tail, keys: [stream], ["\(RecentNews.capacity / 2)"], within: .seconds(5)).text
            ) ?? .start
        let stopped = followed[index].epoch == epoch ? followed[index].cursor.position : .start
        let first = stopped == .start ? early : min(early, stopped)
        // What the stream had before that is not read.
        if stopped == .start, early != .start { followed[index].missedAt = reader.now() }
        // After a power failure the store may lack the last of it.
        let lost = UInt64(reader.limits.loss.components.seconds) * 1000
        followed[index].wasApplied = EntryID(stopped.milliseconds - min(stopped.milliseconds, lost))
        followed[index].wasCleaned = last
        followed[index].epoch = epoch
        followed[index].cursor = StreamCursor(at: first)
        try start(index, after: first)
    }

    /// Shows the epoch to others, who wait until all of it is read.
    private mutating func start(_ index: Int, after entry: EntryID) throws(RedisError) {
        let (upstream, epoch, missedAt) = (followed[index].upstream, followed[index].epoch, followed[index].missedAt)
        let words = RedisCommand("XREVRANGE", followed[index].names.words(epoch), "+", "-", "COUNT", "1")
        let last = try connection.single(words, within: reader.limits.server).array?.first?.array?.first
        followed[index].words = EntryID(last?.text) ?? .start
        state.change(upstream) { known in
            (known.epoch, known.applied, known.own, known.isFollowing) = (epoch, entry, .start, false)
            known.missedAt = missedAt
            known.recent = RecentNews(after: entry)
            known.wake()
        }
        reader.sender.wake()
    }

    /// Reads what is left of the stream of an epoch that is over; its times mean nothing any more.
    private mutating func readRestOfFormer(_ index: Int) throws(RedisError) {
        let stream = followed[index].names.stream(followed[index].epoch)
        while true {
            let position = followed[index].cursor.position.text
            let command = RedisCommand("XREAD", "COUNT", "\(FleetReader.batch)", "STREAMS", stream, position)
            let entries = Self.entries(try connection.single(command, within: reader.limits.server))[stream] ?? []
            guard !entries.isEmpty else { return }
            switch followed[index].cursor.take(entries.map(\.news), isAll: false) {
            case .read(let found): process(found, index, isFormer: true)
            case .gap(let found): return process(found, index, isFormer: true)
            }
        }
    }

    // MARK: Rounds

    /// Reads once, and looks whether the epochs are still the same.
    mutating func round() throws(RedisError) {
        var words = [
            "XREAD", "COUNT", "\(FleetReader.batch)", "BLOCK",
            "\(Self.block.components.attoseconds / 1_000_000_000_000_000)", "STREAMS",
        ]
        words += followed.flatMap { [$0.names.stream($0.epoch), $0.names.words($0.epoch)] }
        words += followed.flatMap { [$0.cursor.position.text, $0.words.text] }
        let asked = reader.now()
        let command = RedisCommand(words.map { Array($0.utf8) })
        let found = Self.entries(try connection.single(command, within: Self.block + reader.limits.server))
        let replied = reader.now()
        state.change { $0.figures.lastReply = replied }
        // Whoever has announced it may know already that the server's clock was set.
        if followed.contains(where: { found[$0.names.stream($0.epoch)]?.isEmpty == false }) { try readClock() }
        for index in followed.indices {
            if followed[index].isClockSet {
                try enter(index)
                continue
            }
            hear(found[followed[index].names.words(followed[index].epoch)] ?? [], index)
            let entries = found[followed[index].names.stream(followed[index].epoch)] ?? []
            let isAll = entries.count < FleetReader.batch
            switch followed[index].cursor.take(entries.map(\.news), isAll: isAll) {
            case .read(let entries):
                process(entries, index)
                if isAll { caughtUp(index, at: asked) }
            case .gap(let entries):
                process(entries, index)
                try missed(index)
            }
        }
        if ContinuousClock.now - checkedAt >= Self.block { try check() }
        if ContinuousClock.now - savedAt >= .seconds(1) {
            savedAt = .now
            save()
        }
    }

    private mutating func caughtUp(_ index: Int, at time: Int64) {
        followed[index].readAt = time
        state.change(followed[index].upstream) { known in
            guard !known.isFollowing else { return }
            known.isFollowing = true
            known.wake()
        }
    }

    /// Goes on after entries that this machine will not get any more.
    ///
    /// Others announce again what was lately. What was before that is lost to this machine alone.
    private mutating func missed(_ index: Int) throws(RedisError) {
        let since = followed[index].readAt.map { reader.now() - $0 }
        if let since, since < NewsQueue.memory {
            return try enter(index, ending: true, because: "news were missed")
        }
        reader.log.notice(
            "this machine has missed news of the fleet: responses from before may be outdated until they are not fresh any more",
            metadata: ["upstream": "\(followed[index].upstream)"]
        )
        let epoch = followed[index].epoch
        let last = followed[index].cursor.last
        (followed[index].cursor, followed[index].missedAt) = (StreamCursor(at: .start), reader.now())
        try join(index, epoch, last)
        followed[index].readAt = reader.now()
    }

    private mutating func check() throws(RedisError) {
        let sent = reader.now()
        let records = followed.map { RedisCommand("HMGET", $0.names.record, "epoch", "server", "last") }
        let replies = try connection.send([RedisCommand("TIME")] + records, within: reader.limits.server)
        for case .error(let message) in replies { throw .refused(message) }
        addReading(sent, replies[0])
        checkedAt = .now
        for (index, reply) in zip(followed.indices, replies.dropFirst()) {
            let parts = (reply.array ?? []).map(\.text)
            guard parts.count == 3 else { throw .malformed }
            if parts[0] != nil, parts[1] != connection.runID { throw .away("another server has taken over") }
            if parts[0] != "\(followed[index].epoch)" || followed[index].isClockSet {
                try enter(index)
            } else if !(EntryID(parts[2]).map { followed[index].cursor.checked(last: $0) } ?? false) {
                try enter(index, ending: true, because: "the stream was removed")
            }
        }
    }

    // MARK: Entries

    /// Applies entries, and shows that.
    private func process(_ entries: [StreamEntry], _ index: Int, isFormer: Bool = false) {
        guard let last = entries.last else { return }
        let (upstream, epoch) = (followed[index].upstream, followed[index].epoch)
        let stream = followed[index].names.stream(epoch)
        guard let clock = state.value(\.clock) else { return }
        let time = reader.now()
        var known: [RecentNews.Known] = []
        var news: [FleetNews] = []
        for entry in entries {
            guard let (bytes, sender) = reader.sealer.open(entry.sealed, key: reader.keys.newsKey, place: stream),
                let published = try? PublishedNews(bytes)
            else {
                reader.state.countUnopened("news", reader.log)
                continue
            }
            // What a former process has applied, this one may not remember.
            let isOld = entry.id <= followed[index].wasApplied && !isFormer
            known.append(RecentNews.Known(id: entry.id, sender: sender, news: isOld ? published : published.merged))
            if sender == reader.sealer.sender { continue }
            switch published.event {
            // What is not known here is remembered in memory only, so a restart has forgotten it.
            case .observed: break
            // A clean is not carried out again because a machine joins.
            case .cleaned where entry.id <= followed[index].wasCleaned: continue
            case .suspect, .wrote, .withdrawn, .invalidated, .cleaned: if isOld { continue }
            }
            news.append(published.local(isFormer ? nil : clock, now: time, from: sender))
        }
        let position = FleetPosition(epoch: epoch, entry: (last.id.milliseconds, last.id.number))
        reader.apply(news, at: position, in: upstream)
        let applied = clock.server(reader.now()).lowerBound
        let delays = entries.map { max(0, Double(applied - Int64(clamping: $0.id.milliseconds) * 1000) / 1_000_000) }
        state.change { [known, delays] content in
            content.figures.applied += UInt64(news.count)
            guard !isFormer else { return }
            for delay in delays { content.figures.delays.record(seconds: delay) }
            content.figures.lastDelay = delays.last ?? 0
            content.upstreams[upstream]?.applied = last.id
            for entry in known { content.upstreams[upstream]?.recent.append(entry) }
            content.upstreams[upstream]?.wake()
        }
    }

    /// Passes on what others say of their fetches.
    private mutating func hear(_ entries: [RawEntry], _ index: Int) {
        for entry in entries {
            followed[index].words = max(followed[index].words, entry.id)
            for (name, word) in entry.fields {
                guard let word = FetchWords.Word(rawValue: String(decoding: word, as: UTF8.self)) else { continue }
                reader.words.give(word, for: name)
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
                let words = (parts[1].array ?? []).map { $0.bytes ?? [] }
                let fields = stride(from: 0, to: words.count - 1, by: 2).map {
                    (name: String(decoding: words[$0], as: UTF8.self), value: words[$0 + 1])
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
        guard !state.value(\.isStopped) else { return }
        var new = memory
        for followed in followed where followed.epoch != 0 {
            guard let time = followed.readAt else { continue }
            let former = memory.positions[followed.upstream]
            // The time alone need not be exact.
            if let former, former.epoch == followed.epoch, former.entry == followed.cursor.position,
                former.missed == followed.missedAt,
                time - former.time < 60_000_000
            {
                continue
            }
            let entry = followed.cursor.position
            new.positions[followed.upstream] = FleetMemory.Position(
                epoch: followed.epoch,
                milliseconds: entry.milliseconds,
                number: entry.number,
                time: time,
                missed: followed.missedAt
            )
        }
        guard new != memory else { return }
        // It changes all the time, and an old one shows as much.
        (new.clock, new.clockServer) = state.value { ($0.clock, $0.clockServer) }
        guard new.save(besideStore: reader.store) else { return }
        memory = new
    }
}
