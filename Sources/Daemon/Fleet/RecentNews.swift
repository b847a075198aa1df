import Mapping
import Proxy
import Store

/// The last news of an upstream in an epoch, which say whether a shared document is outdated; a value.
///
/// A document is as new as its publisher knew when its fetch began: it had read the stream up to a position. Only what the
/// stream had after that can make it outdated, and only if the document may have been requested before that was over.
struct RecentNews: Sendable {
    /// One entry of the stream.
    struct Known: Sendable {
        var id: EntryID
        var sender: [UInt8]
        var news: PublishedNews
    }

    /// How many are kept.
    static let capacity = 4096
    /// How long a write may take whose end is not announced, in µs; then it counts as one that has just happened.
    static let patience: Int64 = 60_000_000

    private var known: [Known] = []
    /// Writes that are under way as far as is known, by their numbers.
    private var open: [UInt64: Known] = [:]
    /// What is not known any more is not after this entry.
    private(set) var floor: EntryID

    /// - Parameter floor: the entry after which all are going to be appended.
    init(after floor: EntryID) { self.floor = floor }

    /// Adds the next entry of the stream.
    mutating func append(_ entry: Known) {
        switch entry.news.event {
        case .suspect(let number, _):
            open[number] = entry
            guard open.count > Self.capacity else { break }
            // No document lasts so long.
            open = open.filter { $0.value.expiry + 7_200_000_000 > entry.news.times.end }
            if open.count > Self.capacity { (open, known, floor) = ([:], [], entry.id) }
        case .wrote(let number, _, _):
            open[number] = nil
            known.append(entry)
        case .withdrawn(let number): open[number] = nil
        case .invalidated, .cleaned: known.append(entry)
        case .observed: break
        }
        guard known.count > Self.capacity else { return }
        floor = known[known.count / 2 - 1].id
        known.removeFirst(known.count / 2)
    }

    /// Whether a document must not be used.
    ///
    /// - Parameter sender: who has published it.
    func makesOutdated(_ document: PublishedDocument, from sender: [UInt8], at key: SharedKey) -> Bool {
        if document.position < floor { return true }
        let isOver = known.reversed().prefix { $0.id > document.position }.contains { entry in
            let times = entry.news.times
            // Two times of one process are compared exactly.
            let mayPrecede =
                sender == entry.sender ? document.times.ownStart <= times.ownEnd : document.times.start <= times.end
            return mayPrecede && entry.covers(document, at: key)
        }
        // What is requested while a write is under way may show either state.
        return isOver || open.values.contains { $0.expiry >= document.times.start && $0.covers(document, at: key) }
    }
}

extension RecentNews.Known {
    /// When a write counts as over whose end was not announced.
    fileprivate var expiry: Int64 { news.times.end + RecentNews.patience }

    fileprivate func covers(_ document: PublishedDocument, at key: SharedKey) -> Bool {
        let invalidation: Invalidation? =
            switch news.event {
            case .suspect(_, let invalidation), .wrote(_, let invalidation, _), .invalidated(let invalidation):
                invalidation
            case .cleaned(let clean): clean.filter(of: key.upstream).invalidation(at: news.times.end)
            // Each machine merges observed values with those of every response, whenever that comes.
            case .withdrawn, .observed: nil
            }
        return invalidation?.covers(key.url, of: key.upstream, shown: document.document.objects) ?? false
    }
}
