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

    /// The news for this machine.
    ///
    /// - Parameter clock: nil if the times mean nothing any more, because another epoch has begun: then it counts as happening now.
    func local(_ clock: FleetClock?, now: Int64) -> FleetNews {
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
            case .wrote(let number, let invalidation): .wrote(number, at(invalidation))
            case .invalidated(let invalidation): .invalidated(at(invalidation))
            case .withdrawn, .cleaned, .observed: event
            }
        return FleetNews(event, start: start, end: end)
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
        case .wrote(let number, _): return FleetNews(.wrote(number, everything), start: news.start, end: news.end)
        case .withdrawn: return news
        case .invalidated, .cleaned, .observed:
            return FleetNews(.invalidated(everything), start: news.start, end: news.end)
        }
    }

    static func write(_ event: FleetNews.Event, _ writer: inout ByteWriter) {
        guard case .observed(let observation) = event else {
            writer.append(false)
            // It is made of names and numbers, so it can be encoded.
            return writer.append((try? JSONEncoder().encode(event)).map { Array($0) } ?? [])
        }
        // By hand, because payloads are most of it, and in JSON they would be lists of numbers.
        writer.append(true)
        writer.append(observation.principal)
        writer.append(observation.context)
        writer.append(observation.url)
        writer.append(observation.isList)
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

    static func event(_ reader: inout ByteReader) throws(ByteReader.Malformed) -> FleetNews.Event {
        guard try reader.flag() else {
            let bytes = try reader.value()
            do { return try JSONDecoder().decode(FleetNews.Event.self, from: Data(bytes)) } catch {
                throw ByteReader.Malformed()
            }
        }
        let (principal, context, url) = (try reader.value(), try reader.text(), try reader.text())
        let (isList, hasDivision, division) = (try reader.flag(), try reader.flag(), try reader.signed())
        typealias Object = SharedObservation.Object
        let objects = try reader.list { (reader: inout ByteReader) throws(ByteReader.Malformed) -> Object in
            Object(
                model: try reader.text(),
                identity: try reader.text(),
                payload: try reader.value(),
                isEmbedded: try reader.flag()
            )
        }
        return .observed(
            SharedObservation(
                principal: principal,
                context: context,
                url: url,
                isList: isList,
                dividedBy: hasDivision ? division : nil,
                objects: objects
            )
        )
    }
}
