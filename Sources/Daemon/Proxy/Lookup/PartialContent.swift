import CachePolicy
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
import Store
import Upstream

/// The known pieces of a representation that did not come whole, and its complete length.
///
/// All pieces belong to one representation, which a strong entity tag proves (RFC 9110 §15.3.7.3, RFC 9111 §3.4); without a tag
/// there is a single piece. They are served as a whole only if `isWhole`.
struct PartialContent: Sendable, Equatable {
    /// The positions of the pieces in the whole: ascending, not adjacent, none empty.
    private(set) var ranges: [Range<Int>]
    /// The complete length; nil if the upstream did not give it.
    private(set) var length: Int?
    private(set) var body: [UInt8]

    /// The maximum number of pieces of a document; beyond it the smallest are dropped.
    static let maximumCount = 32

    /// Reads the piece in a 206, or stored pieces by their `contentRanges`; nil if fields and body do not fit.
    init?(fields: Fields, body: [UInt8]) {
        let contents = fields.all("content-range").map { ContentRange($0) }
        guard let first = contents.first, contents.allSatisfy({ $0?.range != nil && $0?.length == first?.length })
        else { return nil }
        ranges = contents.compactMap { $0?.range.map { Int($0.lowerBound)..<Int($0.upperBound) } }
        length = first?.length.map { Int($0) }
        self.body = body
        let isAscending = zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }
        guard isAscending, ranges.reduce(0, { $0 + $1.count }) == body.count else { return nil }
    }

    /// The values of `Content-Range` under which the pieces are stored, one for each line.
    var contentRanges: [String] { ranges.map { RangeField.contentRange($0, length: length) } }

    var isWhole: Bool { length.map { ranges == [0..<$0] } ?? false }

    /// The one range that is missing; nil if the complete length is unknown, or more than one is missing.
    var gap: Range<Int>? {
        guard let length else { return nil }
        var gaps: [Range<Int>] = []
        var end = 0
        for range in ranges + [length..<length] {
            if end < range.lowerBound { gaps.append(end..<range.lowerBound) }
            end = range.upperBound
        }
        return gaps.count == 1 ? gaps[0] : nil
    }

    /// The bytes of a range; nil if one of them is missing.
    func bytes(in range: Range<Int>) -> ArraySlice<UInt8>? {
        var start = 0
        for piece in ranges {
            if piece.lowerBound <= range.lowerBound, range.upperBound <= piece.upperBound {
                let offset = start + range.lowerBound - piece.lowerBound
                return body[offset..<(offset + range.count)]
            }
            start += piece.count
        }
        return nil
    }

    /// Combines these pieces with later ones; nil if they cannot be of one representation.
    ///
    /// The caller must ensure that they have the same strong entity tag. If they contradict each other nevertheless, the
    /// upstream's tags are not reliable.
    func combined(with later: PartialContent) -> PartialContent? {
        guard length == nil || later.length == nil || length == later.length else { return nil }
        var result = later
        result.length = later.length ?? length
        if let length = result.length, max(ranges.last?.upperBound ?? 0, later.ranges.last?.upperBound ?? 0) > length {
            return nil
        }
        for range in ranges {
            guard let bytes = bytes(in: range), result.insert(bytes, at: range) else { return nil }
        }
        result.dropSmallest(except: later.ranges)
        return result
    }

    /// Whether the combined pieces are worth writing to disk for a later piece.
    ///
    /// Reading a large document in small ranges would otherwise rewrite everything before each of them.
    func isWorthKeeping(for later: PartialContent) -> Bool {
        isWhole || body.count <= Self.smallSize || later.body.count >= body.count / Self.largestGrowth
    }

    /// Up to this many bytes are rewritten for any piece.
    private static let smallSize = 4 << 20
    /// Above that, a piece must be at least this fraction of what is written for it.
    private static let largestGrowth = 16

    /// Inserts a piece and joins it with those that it overlaps or touches; returns false if they disagree.
    private mutating func insert(_ bytes: ArraySlice<UInt8>, at range: Range<Int>) -> Bool {
        let touched = ranges.indices.filter {
            ranges[$0].lowerBound <= range.upperBound && range.lowerBound <= ranges[$0].upperBound
        }
        let bounds = touched.map { ranges[$0] } + [range]
        let start = bounds.map(\.lowerBound).min() ?? range.lowerBound
        let end = bounds.map(\.upperBound).max() ?? range.upperBound
        var joined = [UInt8](repeating: 0, count: end - start)
        joined.replaceSubrange((range.lowerBound - start)..<(range.upperBound - start), with: bytes)
        for index in touched {
            let piece = ranges[index]
            guard let known = self.bytes(in: piece) else { return false }
            let overlap = piece.clamped(to: range)
            if !overlap.isEmpty {
                let mine = bytes.dropFirst(overlap.lowerBound - range.lowerBound).prefix(overlap.count)
                let theirs = known.dropFirst(overlap.lowerBound - piece.lowerBound).prefix(overlap.count)
                guard mine.elementsEqual(theirs) else { return false }
            }
            joined.replaceSubrange((piece.lowerBound - start)..<(piece.upperBound - start), with: known)
        }
        let position = touched.first ?? ranges.firstIndex { $0.lowerBound > range.upperBound } ?? ranges.count
        let count = touched.count
        let offset = ranges[..<position].reduce(0) { $0 + $1.count }
        let replaced = ranges[position..<(position + count)].reduce(0) { $0 + $1.count }
        body.replaceSubrange(offset..<(offset + replaced), with: joined)
        ranges.replaceSubrange(position..<(position + count), with: [start..<end])
        return true
    }

    /// Limits the number of pieces by dropping the smallest old ones.
    private mutating func dropSmallest(except new: [Range<Int>]) {
        while ranges.count > Self.maximumCount {
            let old = ranges.indices.filter { index in !new.contains { $0.overlaps(ranges[index]) } }
            guard let smallest = old.min(by: { ranges[$0].count < ranges[$1].count }) else { return }
            let offset = ranges[..<smallest].reduce(0) { $0 + $1.count }
            body.removeSubrange(offset..<(offset + ranges[smallest].count))
            ranges.remove(at: smallest)
        }
    }
}

extension ReadyResponse {
    /// Whether it holds parts of a response, which never stand for the whole.
    var isPartial: Bool { response.status == 206 }

    /// The known parts; nil if the response came whole.
    var parts: PartialContent? { isPartial ? PartialContent(fields: response.fields, body: response.body) : nil }
}

/// Responses stored in parts, under a key of their own: see `ProxyRequest.partsKey`.
extension ResponseCache {
    /// The parts in memory of the variant that a request selects.
    func partsInMemory(_ request: ProxyRequest) -> ReadyResponse? {
        Self.newest(memory.responses(at: request.partsDigest) ?? [], for: request)
    }

    /// The stored parts for a request; returns none, without waiting, if the store has none.
    func partsOnDisk(_ request: ProxyRequest) async throws(StoreError) -> [StoredDocument] {
        guard store.mayHave(request.partsDigest) else { return [] }
        let fields = request.message.fields
        return try await store.documents(at: request.partsKey) { VarySelection(bytes: $0)?.matches(fields) ?? true }
    }

    /// Puts parts into memory that were read from disk after a number, or nothing without one; returns those for the request.
    func admitParts(_ documents: [StoredDocument], for request: ProxyRequest, since number: Int?) -> ReadyResponse? {
        let digest = request.partsDigest
        func unreadable(_ document: StoredDocument) { store.remove(document.id) }
        let current = current(documents, for: request, unreadable: unreadable)
        let found: [ReadyResponse] = current.compactMap { document, response in
            guard response.form == .asReceived else { return nil }
            guard PartialContent(fields: response.fields, body: response.body) != nil else {
                unreadable(document)
                return nil
            }
            return ReadyResponse(response, for: request, at: digest)
        }
        if let number { for ready in found { handle(ready) { .read(ready, since: number) } } }
        return partsInMemory(request) ?? (memory.isArriving(at: digest) ? nil : Self.newest(found, for: request))
    }

    /// Removes the parts of a response, because the whole is stored or they are unreliable.
    func forgetParts(of request: ProxyRequest) {
        let digest = request.partsDigest
        let isInMemory = memory.responses(at: digest) != nil
        memory.remove(digest)
        if isInMemory || store.mayHave(digest) { store.remove(at: request.partsKey) }
    }

    private static func newest(_ responses: [ReadyResponse], for request: ProxyRequest) -> ReadyResponse? {
        responses.filter { $0.matches(request, under: request.partsKey) && $0.isPartial }
            .max { $0.policy.responseTime < $1.policy.responseTime }
    }
}

/// Parts of responses from the upstream: which may be kept, and how they combine.
extension Fetches {
    /// The part in a response; nil if it must not be stored as one.
    ///
    /// Several parts in one body, a content-coded part, and one whose length does not match are not stored.
    func part(in head: UpstreamHead, of fetch: RunningFetch) -> ContentRange? {
        guard fetch.asksForRange, head.status == 206 else { return nil }
        let values = head.fields.all("content-range")
        guard values.count == 1, !head.fields.isContentCoded,
            !head.isMultipart,
            let content = ContentRange(values[0]), let range = content.range
        else { return nil }
        let length = head.fields.text("content-length").flatMap(Int.init)
        return length.map { $0 == range.count } ?? true ? content : nil
    }

    /// Whether a response brings exactly the missing part of the same representation.
    func completes(_ head: UpstreamHead, in fetch: RunningFetch) -> Bool {
        guard let known = fetch.completing, let parts = known.parts, let gap = parts.gap,
            (try? storable(head, in: fetch)) != nil, let content = part(in: head, of: fetch), let range = content.range
        else { return false }
        return content.length == parts.length.map { Int64($0) } && isSame(known, head.fields)
            && range.lowerBound <= gap.lowerBound && gap.upperBound <= range.upperBound
    }

    /// Removes parts that a 416 shows to be of an earlier version, because the complete length has changed.
    func dropUnreliableParts(after head: UpstreamHead, in fetch: RunningFetch) {
        guard head.status == 416, let known = fetch.parts?.parts?.length,
            let present = head.fields[first: "content-range"].flatMap({ ContentRange($0) })?.length,
            present != Int64(known)
        else { return }
        cache.forgetParts(of: fetch.request)
    }

    /// Fetches the whole for clients that waited for missing parts.
    func askForWhole(_ relays: [Relay], insteadOf fetch: RunningFetch) {
        retire(fetch)
        cache.forgetParts(of: fetch.request)
        for relay in relays { ask(Plan.Inquiry(relay.request), relay.reply) }
    }

    /// Keeps a part together with those of the same representation, as a whole if it completes them.
    ///
    /// Nil if its length does not match, something newer is known, or it is too small to be worth it.
    func admitPart(_ part: CachedResponse, from fetch: RunningFetch) -> (ready: ReadyResponse, isWithheld: Bool)? {
        guard let head = fetch.head, let new = PartialContent(fields: head.fields, body: part.body) else { return nil }
        let request = fetch.request
        // Parts stored since the fetch began count, rather than those known then.
        let known = fetch.completing ?? cache.partsInMemory(request) ?? fetch.parts
        var fields = Self.withoutFraming(part.fields)
        var parts = new
        if let known, isSame(known, fields), let joined = known.parts?.combined(with: new),
            joined.body.count <= request.upstream.daemon.limits.document
        {
            guard joined.isWorthKeeping(for: new) else { return nil }
            parts = joined
            fields = Self.fields(of: Self.withoutFraming(known.response.fields), replacedBy: fields)
        } else if let known, known.policy.requestTime > fetch.requestTime {
            return nil
        }
        guard let policy = policy(of: fields, part.policy, isWhole: parts.isWhole, fetch) else { return nil }
        var response = part
        (response.status, response.fields, response.body, response.policy) = (200, fields, parts.body, policy)
        if parts.isWhole { return admit(response, from: fetch, isAwaited: true) }
        for value in parts.contentRanges { fields.append("Content-Range", value) }
        (response.key, response.status, response.fields) = (request.partsKey, 206, fields)
        let digest = request.partsDigest
        let ready = ReadyResponse(response, for: request, at: digest)
        if !fetch.isInvalidated { admit(ready, nil, from: fetch) }
        return (ready, false)
    }

    /// Whether both are of one representation, by a strong tag (RFC 9110 §15.3.7.3).
    private func isSame(_ known: ReadyResponse, _ fields: Fields) -> Bool {
        guard let tag = fields[first: "etag"].flatMap({ EntityTag($0) }) else { return false }
        return known.validators.entityTag?.matchesStrongly(tag) ?? false
    }

    /// The policy of the combined parts: the newest response's, with the fields that it did not repeat.
    private func policy(of fields: Fields, _ newest: StoredPolicy, isWhole: Bool, _ fetch: RunningFetch)
        -> StoredPolicy?
    {
        let arrival = newest.responseTime
        var aged = fields
        if newest.ageValue >= 0 { aged.append("Age", String(newest.ageValue)) }
        let times = ExchangeTimes(request: fetch.requestTime, response: arrival, wall: arrival - now + wall)
        let policy = fetch.request.policy(status: isWhole ? 200 : 206, fields: aged, times: times)
        return policy.storability == .yes ? policy.stored : nil
    }

    /// The fields of earlier parts, replaced by those of a later one (RFC 9111 §3.4).
    private static func fields(of known: Fields, replacedBy new: Fields) -> Fields {
        let names = Set(new.lines.map(\.lowercasedName))
        return Fields(known.lines.filter { !names.contains($0.lowercasedName) } + new.lines)
    }

    /// Removes the fields that concern one message, not the representation.
    private static func withoutFraming(_ fields: Fields) -> Fields {
        let names: Set<String> = ["content-range", "content-length", "content-md5", "content-digest"]
        return Fields(fields.lines.filter { !names.contains($0.lowercasedName) })
    }
}
