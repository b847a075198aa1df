import Mapping

/// What cleans and invalidations keep out: answers to requests sent before them.
///
/// In memory: the requests die with the process. Bounded: what is forgotten
/// counts as if it had concerned everything.
struct Barriers {
    private struct Cleaned {
        let filter: CleanFilter
        let time: Int64
    }

    private struct Pattern {
        let pattern: InvalidationPattern
        let time: Int64
    }

    private static let placeLimit = 16_384
    private static let patternLimit = 256
    private static let cleanLimit = 256

    private var places: [Int64: Int64] = [:]
    private var patterns: [Pattern] = []
    private var cleans: [Cleaned] = []
    /// Answers to requests sent until then are kept out whatever they are.
    private var everything: Int64 = .min

    mutating func invalidated(place: Int64, at time: Int64) {
        if places.count >= Self.placeLimit {
            everything = max(everything, places.values.max() ?? .min)
            places = [:]
        }
        places[place] = time
    }

    mutating func invalidated(_ pattern: InvalidationPattern, at time: Int64) {
        patterns.removeAll { $0.pattern == pattern }
        if patterns.count >= Self.patternLimit { everything = max(everything, patterns.removeFirst().time) }
        patterns.append(Pattern(pattern: pattern, time: time))
    }

    /// Of what happened until then it can no longer be told what it concerned.
    mutating func forgotten(until time: Int64) { everything = max(everything, time) }

    mutating func cleaned(_ filter: CleanFilter, at time: Int64) {
        if cleans.count >= Self.cleanLimit { everything = max(everything, cleans.removeFirst().time) }
        cleans.append(Cleaned(filter: filter, time: time))
    }

    /// Whether an answer must not be stored.
    func bars(_ document: ReceivedDocument, place: Int64, principal: String, objects: [Occurrence]) -> Bool {
        if document.sent <= everything { return true }
        if let time = places[place], document.sent <= time { return true }
        for barrier in patterns where document.sent <= barrier.time {
            let pattern = barrier.pattern
            if pattern.upstream == document.key.upstream, pattern.matches(url: document.key.url) { return true }
        }
        return cleans.contains { clean in
            document.sent <= clean.time
                && clean.filter.concerns(document, principal: principal, objects: objects, at: clean.time)
        }
    }
}

extension CleanFilter {
    /// Whether a document arriving late belongs to what a clean at `time` meant.
    fileprivate func concerns(
        _ document: ReceivedDocument,
        principal: String,
        objects: [Occurrence],
        at time: Int64
    ) -> Bool {
        if let upstream, upstream != document.key.upstream { return false }
        if let label = self.principal, label != principal { return false }
        if let urlPrefix, !document.key.url.utf8.starts(with: urlPrefix.utf8) { return false }
        if let url, !url(document.key.url) { return false }
        if let olderThan, document.end >= time - olderThan { return false }
        guard let model else { return true }
        return objects.contains { $0.name.model == model && (identity == nil || $0.name.identity == identity) }
    }
}
