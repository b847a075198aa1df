import Foundation
import Mapping
import Proxy
import Store

/// When something happened, as a machine writes it for others.
struct SharedTimes: Sendable, Equatable {
    /// By the server's clock: no earlier than this, and no later.
    var start: Int64
    var end: Int64
    /// By the clock of the machine that says it, exactly; only comparable with times of the same process.
    var ownStart: Int64
    var ownEnd: Int64
}

extension SharedTimes {
    /// The times of this machine, widened by what its clock is known of.
    init(_ start: Int64, _ end: Int64, _ clock: FleetClock) {
        let (earliest, latest) = (clock.server(start).lowerBound, clock.server(end).upperBound)
        self.init(start: earliest, end: latest, ownStart: start, ownEnd: end)
    }

    /// By this machine's clock, widened again.
    func local(_ clock: FleetClock) -> (start: Int64, end: Int64) {
        (clock.local(start).lowerBound, clock.local(end).upperBound)
    }
}

/// A document on the server: a response, when it was received, and how far its publisher had read the stream before.
struct PublishedDocument: Sendable, Equatable {
    /// Its times are those of the machine that has it.
    var document: SharedDocument
    var times: SharedTimes
    var position: EntryID
}

extension PublishedDocument {
    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.append(times)
        writer.append(position)
        writer.append(UInt64(document.status))
        writer.append(document.head)
        writer.append(document.body)
        writer.append(document.variant)
        writer.append(document.lifetime)
        writer.append(list: document.objects) { writer, object in
            writer.append(object.model)
            writer.append(object.identity)
        }
        writer.append(document.announced != nil)
        writer.append(document.announced?.epoch ?? 0)
        writer.append(document.announced?.entry ?? .start)
        return writer.bytes
    }

    init(_ bytes: [UInt8], _ clock: FleetClock) throws {
        var reader = ByteReader(bytes)
        (times, position) = (try reader.times(), try reader.entry())
        let (sent, completed) = times.local(clock)
        guard let status = Int(exactly: try reader.unsigned()) else { throw ByteReader.Malformed() }
        document = SharedDocument(
            status: status,
            head: try reader.value(),
            body: try reader.value(),
            variant: try reader.value(),
            sent: sent,
            completed: completed,
            lifetime: try reader.signed(),
            objects: try reader.list { ObjectName(model: try $0.text(), identity: try $0.text()) }
        )
        let isAnnounced = try reader.flag()
        let announced = FleetPosition(epoch: try reader.unsigned(), entry: try reader.entry())
        if isAnnounced { document.announced = announced }
    }
}

/// News in a stream.
struct PublishedNews: Sendable, Equatable {
    var event: FleetNews.Event
    var times: SharedTimes

    /// What all machines read as one entry is no larger; see `bounded`.
    static let byteLimit = 128 << 10

    init(_ event: FleetNews.Event, _ times: SharedTimes) { (self.event, self.times) = (event, times) }

    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.append(times)
        writer.append(event)
        return writer.bytes
    }

    init(_ bytes: [UInt8]) throws {
        var reader = ByteReader(bytes)
        (times, event) = (try reader.times(), try reader.event())
    }

    /// The same for a machine that has merged what a write's response has shown: documents from before the write show it there.
    var merged: PublishedNews {
        guard case .wrote(let number, var invalidation, let shown?) = event else { return self }
        invalidation.objects.removeAll(where: shown.shows)
        guard !invalidation.isOfEverything else { return self }
        return PublishedNews(.wrote(number, invalidation), times)
    }

    /// The news for this machine.
    ///
    /// - Parameters:
    ///   - clock: nil if the times mean nothing any more, because another epoch has begun: then it counts as happening now.
    ///   - sender: the process that has announced it.
    func local(_ clock: FleetClock?, now: Int64, from sender: [UInt8] = []) -> FleetNews {
        let (start, end) = clock.map { times.local($0) } ?? (0, now)
        // It is over.
        var news = FleetNews(event, start: start, end: min(end, now))
        if case .observed(let shown) = event, !sender.isEmpty {
            news.fetch = SharedFetch(sender: sender, url: shown.url, start: times.ownStart)
        }
        return news
    }

    /// An event that fits into an entry: this one, or that all of the upstream is outdated.
    static func bounded(_ news: FleetNews, of upstream: UpstreamKey) -> FleetNews {
        var writer = ByteWriter()
        writer.append(news.event)
        guard writer.bytes.count > byteLimit else { return news }
        let everything = Invalidation(of: upstream, at: news.end)
        var bounded = news
        switch news.event {
        case .suspect(let number, _): bounded.event = .suspect(number, everything)
        case .wrote(let number, let invalidation, .some):
            bounded.event = .wrote(number, invalidation)
            return Self.bounded(bounded, of: upstream)
        case .wrote(let number, _, nil): bounded.event = .wrote(number, everything)
        case .withdrawn: break
        case .invalidated, .cleaned, .observed: bounded.event = .invalidated(everything)
        }
        return bounded
    }
}

// MARK: Bytes

/// What an event is, as its first byte.
private enum Kind: UInt8 { case suspect, wrote, withdrawn, invalidated, cleaned, observed }

extension ByteWriter {
    fileprivate mutating func append(_ kind: Kind) { bytes.append(kind.rawValue) }

    fileprivate mutating func append(_ entry: EntryID) {
        append(entry.milliseconds)
        append(entry.number)
    }

    fileprivate mutating func append(_ times: SharedTimes) {
        for time in [times.start, times.end, times.ownStart, times.ownEnd] { append(time) }
    }

    mutating func append(_ event: FleetNews.Event) {
        switch event {
        case .suspect(let number, let invalidation):
            append(Kind.suspect)
            append(number)
            append(json: invalidation)
        case .wrote(let number, let invalidation, let shown):
            append(Kind.wrote)
            append(number)
            append(json: invalidation)
            append(optional: shown) { $0.append($1) }
        case .withdrawn(let number):
            append(Kind.withdrawn)
            append(number)
        case .invalidated(let invalidation):
            append(Kind.invalidated)
            append(json: invalidation)
        case .cleaned(let clean):
            append(Kind.cleaned)
            append(json: clean)
        case .observed(let observation):
            append(Kind.observed)
            append(observation)
        }
    }

    private mutating func append(_ observation: SharedObservation) {
        append(observation.principal)
        append(observation.context)
        append(observation.url)
        append(observation.isList)
        append(observation.write ?? "")
        append(observation.dividedBy != nil)
        append(observation.dividedBy ?? 0)
        append(list: observation.objects) { writer, object in
            writer.append(object.model)
            writer.append(object.identity)
            writer.append(object.payload)
            writer.append(object.isEmbedded)
        }
    }

    /// What has a coding of its own is written as JSON; it is made of names and numbers, so it can be encoded.
    private mutating func append(json value: some Encodable) {
        append((try? JSONEncoder().encode(value)).map { Array($0) } ?? [])
    }
}

extension ByteReader {
    fileprivate mutating func entry() throws -> EntryID { EntryID(try unsigned(), try unsigned()) }

    fileprivate mutating func times() throws -> SharedTimes {
        SharedTimes(start: try signed(), end: try signed(), ownStart: try signed(), ownEnd: try signed())
    }

    mutating func event() throws -> FleetNews.Event {
        switch Kind(rawValue: try byte()) {
        case .suspect: .suspect(try unsigned(), try json())
        case .wrote: .wrote(try unsigned(), try json(), shown: try optional { try $0.observation() })
        case .withdrawn: .withdrawn(try unsigned())
        case .invalidated: .invalidated(try json())
        case .cleaned: .cleaned(try json())
        case .observed: .observed(try observation())
        case nil: throw Malformed()
        }
    }

    private mutating func observation() throws -> SharedObservation {
        let (principal, context, url) = (try value(), try text(), try text())
        let (isList, method) = (try flag(), try text())
        let (isDivided, division) = (try flag(), try signed())
        return SharedObservation(
            principal: principal,
            context: context,
            url: url,
            isList: isList,
            write: method.isEmpty ? nil : method,
            dividedBy: isDivided ? division : nil,
            objects: try list {
                let (model, identity) = (try $0.text(), try $0.text())
                return .init(model: model, identity: identity, payload: try $0.value(), isEmbedded: try $0.flag())
            }
        )
    }

    private mutating func json<Value: Decodable>() throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(try value()))
    }
}
