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

    /// The times of this machine, widened by what its clock is known of.
    init(_ start: Int64, _ end: Int64, _ clock: FleetClock) {
        (self.start, self.end) = (clock.server(start).lowerBound, clock.server(end).upperBound)
        (ownStart, ownEnd) = (start, end)
    }

    init(start: Int64, end: Int64, ownStart: Int64, ownEnd: Int64) {
        (self.start, self.end, self.ownStart, self.ownEnd) = (start, end, ownStart, ownEnd)
    }

    /// By this machine's clock, widened again.
    func local(_ clock: FleetClock) -> (start: Int64, end: Int64) {
        (clock.local(start).lowerBound, clock.local(end).upperBound)
    }

    fileprivate init(_ reader: inout ByteReader) throws(ByteReader.Malformed) {
        (start, end) = (try reader.signed(), try reader.signed())
        (ownStart, ownEnd) = (try reader.signed(), try reader.signed())
    }

    fileprivate func write(_ writer: inout ByteWriter) {
        for time in [start, end, ownStart, ownEnd] { writer.append(time) }
    }
}

/// A document on the server: a response, when it was received, and how far its publisher had read the stream before.
struct PublishedDocument: Sendable, Equatable {
    /// Its times are those of the machine that has it.
    var document: SharedDocument
    var times: SharedTimes
    var position: EntryID

    var encoded: [UInt8] {
        var writer = ByteWriter()
        times.write(&writer)
        writer.append(position.milliseconds)
        writer.append(position.number)
        writer.append(UInt64(document.status))
        writer.append(document.head)
        writer.append(document.body)
        writer.append(document.variant)
        writer.append(document.lifetime)
        writer.append(UInt64(document.objects.count))
        for object in document.objects {
            writer.append(object.model)
            writer.append(object.identity)
        }
        writer.append(document.announced != nil)
        writer.append(document.announced?.epoch ?? 0)
        writer.append(document.announced?.entry.0 ?? 0)
        writer.append(document.announced?.entry.1 ?? 0)
        return writer.bytes
    }

    init(document: SharedDocument, times: SharedTimes, position: EntryID) {
        (self.document, self.times, self.position) = (document, times, position)
    }

    init(_ bytes: [UInt8], _ clock: FleetClock) throws(ByteReader.Malformed) {
        var reader = ByteReader(bytes)
        times = try SharedTimes(&reader)
        position = EntryID(try reader.unsigned(), try reader.unsigned())
        let (sent, completed) = times.local(clock)
        guard let status = Int(exactly: try reader.unsigned()) else { throw ByteReader.Malformed() }
        let (head, body, variant) = (try reader.value(), try reader.value(), try reader.value())
        let lifetime = try reader.signed()
        let objects = try reader.list { (reader: inout ByteReader) throws(ByteReader.Malformed) -> ObjectName in
            ObjectName(model: try reader.text(), identity: try reader.text())
        }
        document = SharedDocument(
            status: status,
            head: head,
            body: body,
            variant: variant,
            sent: sent,
            completed: completed,
            lifetime: lifetime,
            objects: objects
        )
        let isAnnounced = try reader.flag()
        let announced = FleetPosition(
            epoch: try reader.unsigned(),
            entry: (try reader.unsigned(), try reader.unsigned())
        )
        if isAnnounced { document.announced = announced }
    }
}

/// News in a stream.
struct PublishedNews: Sendable, Equatable {
    var event: FleetNews.Event
    var times: SharedTimes

    /// What all machines read as one entry is no larger; see `bounded`.
    static let limit = 128 << 10

    init(_ event: FleetNews.Event, _ times: SharedTimes) { (self.event, self.times) = (event, times) }

    /// The bytes for an entry.
    var encoded: [UInt8] {
        var writer = ByteWriter()
        times.write(&writer)
        Self.write(event, &writer)
        return writer.bytes
    }

    init(_ bytes: [UInt8]) throws(ByteReader.Malformed) {
        var reader = ByteReader(bytes)
        times = try SharedTimes(&reader)
        event = try Self.event(&reader)
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
        var (start, end) = clock.map { times.local($0) } ?? (0, now)
        // It is over.
        end = min(end, now)
        func at(_ invalidation: Invalidation) -> Invalidation {
            var changed = invalidation
            changed.time = end
            return changed
        }
        let event: FleetNews.Event =
            switch event {
            case .suspect(let number, let invalidation): .suspect(number, at(invalidation))
            case .wrote(let number, let invalidation, let shown): .wrote(number, at(invalidation), shown: shown)
            case .invalidated(let invalidation): .invalidated(at(invalidation))
            case .withdrawn, .cleaned, .observed: event
            }
        var fetch: SharedFetch?
        if case .observed(let shown) = event, !sender.isEmpty {
            fetch = SharedFetch(sender: sender, url: shown.url, start: times.ownStart)
        }
        return FleetNews(event, start: start, end: end, fetch: fetch)
    }

    // MARK: Events

    /// An event that fits into an entry: this one, or that all of the upstream is outdated.
    static func bounded(_ news: FleetNews, of upstream: String) -> FleetNews {
        var writer = ByteWriter()
        write(news.event, &writer)
        guard writer.bytes.count > limit else { return news }
        let everything = Invalidation(of: upstream, at: news.end)
        switch news.event {
        case .suspect(let number, _): return FleetNews(.suspect(number, everything), start: news.start, end: news.end)
        case .wrote(let number, let invalidation, .some):
            let unseen = FleetNews(.wrote(number, invalidation), start: news.start, end: news.end)
            return bounded(unseen, of: upstream)
        case .wrote(let number, _, nil):
            return FleetNews(.wrote(number, everything), start: news.start, end: news.end)
        case .withdrawn: return news
        case .invalidated, .cleaned, .observed:
            return FleetNews(.invalidated(everything), start: news.start, end: news.end)
        }
    }

    /// What an event is, as its first byte.
    private enum Kind: UInt8 { case suspect, wrote, withdrawn, invalidated, cleaned, observed }

    static func write(_ event: FleetNews.Event, _ writer: inout ByteWriter) {
        func begin(_ kind: Kind) { writer.bytes.append(kind.rawValue) }
        switch event {
        case .suspect(let number, let invalidation):
            begin(.suspect)
            writer.append(number)
            write(invalidation, &writer)
        case .wrote(let number, let invalidation, let shown):
            begin(.wrote)
            writer.append(number)
            write(invalidation, &writer)
            writer.append(shown != nil)
            if let shown { write(shown, &writer) }
        case .withdrawn(let number):
            begin(.withdrawn)
            writer.append(number)
        case .invalidated(let invalidation):
            begin(.invalidated)
            write(invalidation, &writer)
        case .cleaned(let clean):
            begin(.cleaned)
            writer.append(json(clean))
        case .observed(let observation):
            begin(.observed)
            write(observation, &writer)
        }
    }

    static func event(_ reader: inout ByteReader) throws(ByteReader.Malformed) -> FleetNews.Event {
        switch Kind(rawValue: try reader.byte()) {
        case .suspect: return .suspect(try reader.unsigned(), try invalidation(&reader))
        case .wrote:
            let (number, outdated) = (try reader.unsigned(), try invalidation(&reader))
            return .wrote(number, outdated, shown: try reader.flag() ? try observation(&reader) : nil)
        case .withdrawn: return .withdrawn(try reader.unsigned())
        case .invalidated: return .invalidated(try invalidation(&reader))
        case .cleaned: return .cleaned(try decoded(&reader))
        case .observed: return .observed(try observation(&reader))
        case nil: throw ByteReader.Malformed()
        }
    }

    /// What is rare is written as JSON; it is made of names and numbers, so it can be encoded.
    private static func json(_ value: some Encodable) -> [UInt8] {
        (try? JSONEncoder().encode(value)).map { Array($0) } ?? []
    }

    private static func decoded<Value: Decodable>(_ reader: inout ByteReader) throws(ByteReader.Malformed) -> Value {
        let bytes = try reader.value()
        do { return try JSONDecoder().decode(Value.self, from: Data(bytes)) } catch { throw ByteReader.Malformed() }
    }

    private static func write(_ invalidation: Invalidation, _ writer: inout ByteWriter) {
        writer.append(invalidation.upstream != nil)
        if let upstream = invalidation.upstream { writer.append(upstream) }
        writer.append(UInt64(invalidation.paths.count))
        for path in invalidation.paths.sorted() { writer.append(path) }
        writer.append(!invalidation.patterns.isEmpty)
        if !invalidation.patterns.isEmpty { writer.append(json(invalidation.patterns)) }
        writer.append(UInt64(invalidation.objects.count))
        for object in invalidation.objects {
            writer.append(object.model)
            writer.append(object.identity != nil)
            if let identity = object.identity { writer.append(identity) }
            writer.append(UInt64(object.keys.count))
            for key in object.keys { writer.append(key) }
        }
        writer.append(invalidation.principals != nil)
        if let principals = invalidation.principals {
            writer.append(UInt64(principals.count))
            for principal in principals.sorted() { writer.append(principal) }
        }
        writer.append(invalidation.time)
    }

    private static func invalidation(_ reader: inout ByteReader) throws(ByteReader.Malformed) -> Invalidation {
        typealias Malformed = ByteReader.Malformed
        func text(_ reader: inout ByteReader) throws(Malformed) -> String { try reader.text() }
        let upstream = try reader.flag() ? try reader.text() : nil
        let paths = try reader.list(text)
        let patterns: [InvalidationPattern] = try reader.flag() ? try decoded(&reader) : []
        let objects = try reader.list { (reader: inout ByteReader) throws(Malformed) -> BoundObject in
            let (model, identity) = (try reader.text(), try reader.flag() ? try reader.text() : nil)
            return BoundObject(model: model, identity: identity, keys: try reader.list(text))
        }
        let principals = try reader.flag() ? Set(try reader.list(text)) : nil
        return Invalidation(
            of: upstream,
            paths: Set(paths),
            patterns: patterns,
            objects: objects,
            principals: principals,
            at: try reader.signed()
        )
    }

    private static func write(_ observation: SharedObservation, _ writer: inout ByteWriter) {
        writer.append(observation.principal)
        writer.append(observation.context)
        writer.append(observation.url)
        writer.append(observation.isList)
        writer.append(observation.write ?? "")
        writer.append(observation.dividedBy != nil)
        writer.append(observation.dividedBy ?? 0)
        writer.append(UInt64(observation.objects.count))
        for object in observation.objects {
            writer.append(object.model)
            writer.append(object.identity)
            writer.append(object.payload)
            writer.append(object.isEmbedded)
        }
    }

    private static func observation(_ reader: inout ByteReader) throws(ByteReader.Malformed) -> SharedObservation {
        let (principal, context, url) = (try reader.value(), try reader.text(), try reader.text())
        let (isList, method) = (try reader.flag(), try reader.text())
        let (hasDivision, division) = (try reader.flag(), try reader.signed())
        typealias Object = SharedObservation.Object
        let objects = try reader.list { (reader: inout ByteReader) throws(ByteReader.Malformed) -> Object in
            Object(
                model: try reader.text(),
                identity: try reader.text(),
                payload: try reader.value(),
                isEmbedded: try reader.flag()
            )
        }
        return SharedObservation(
            principal: principal,
            context: context,
            url: url,
            isList: isList,
            write: method.isEmpty ? nil : method,
            dividedBy: hasDivision ? division : nil,
            objects: objects
        )
    }
}
