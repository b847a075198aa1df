import CachePolicy
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
package import Store
import Upstream

/// What is known of a representation that did not come whole: its pieces, and how long the whole is.
///
/// Pieces of one representation only, which a strong entity tag proves (RFC 9110 §15.3.7.3, RFC 9111 §3.4); without one
/// there is a single piece. A whole is never made of it but by `isWhole`.
struct KnownParts: Sendable, Equatable {
    /// Where the pieces lie in the whole: ascending, apart from one another, none empty.
    private(set) var ranges: [Range<Int>]
    /// The complete length; nil where the upstream did not say.
    private(set) var length: Int?
    /// The bytes of all pieces, one after the other.
    private(set) var body: [UInt8]

    /// More pieces of one document than this are not kept: the smallest go.
    static let maximumCount = 32

    /// One piece, as a 206 brought it; nil where its body is not of the length that its `Content-Range` says.
    init?(_ content: ContentRange, body: [UInt8]) {
        guard let range = content.range, range.count == body.count else { return nil }
        ranges = [Int(range.lowerBound)..<Int(range.upperBound)]
        length = content.length.map { Int($0) }
        self.body = body
    }

    /// Reads what `contentRanges` describes; nil where fields and body are not of that form.
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

    /// The values of `Content-Range` under which the pieces are stored, one line each.
    var contentRanges: [String] { ranges.map { RangeField.contentRange($0, length: length) } }

    /// Whether nothing is missing.
    var isWhole: Bool { length.map { ranges == [0..<$0] } ?? false }

    /// The one range that is missing; nil where the complete length is unknown, or more than one is missing.
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

    /// The bytes of a range; nil where one of them is not known.
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

    /// These pieces together with later ones; nil where the two cannot be of one representation.
    ///
    /// That they have the same strong entity tag is for the caller to see to. Should they contradict each other all the
    /// same, the upstream's tags are not to be believed.
    func combined(with later: KnownParts) -> KnownParts? {
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

    /// Whether what has become of these pieces is worth being written as a whole, for the sake of a later piece.
    ///
    /// Who reads a large document in small ranges would have all that came before written anew for each of them.
    func isWorthKeeping(for later: KnownParts) -> Bool {
        isWhole || body.count <= Self.smallSize || later.body.count >= body.count / Self.largestGrowth
    }

    /// Up to so many bytes are written anew for however little.
    private static let smallSize = 4 << 20
    /// Past that a piece has to be at least this part of what is written for it.
    private static let largestGrowth = 16

    /// Puts in a piece, joined with those that it overlaps or touches; false where they disagree.
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

    /// Keeps the number of pieces within its bound, at the cost of the smallest of those that are not new.
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
    /// Whether it is parts of a response, which never stand for the whole.
    var isPartial: Bool { response.status == 206 }

    /// What of the response is known; nil where it is one that came whole.
    var parts: KnownParts? { isPartial ? KnownParts(fields: response.fields, body: response.body) : nil }
}

/// Answers stored in parts, which lie under a key of their own: see `ProxyRequest.partsKey`.
extension ResponseCache {
    func partsDigest(of request: ProxyRequest) -> Digest128 { store.hasher.digest(request.partsKey) }

    /// The parts in memory that are of the variant a request asks for.
    func partsInMemory(_ request: ProxyRequest) -> ReadyResponse? {
        Self.newest(memory.responses(at: partsDigest(of: request)) ?? [], for: request)
    }

    /// What the store has in parts; empty, and without waiting, where it has nothing.
    func partsOnDisk(_ request: ProxyRequest) async throws(StoreError) -> [StoredDocument] {
        guard store.mayHave(partsDigest(of: request)) else { return [] }
        let fields = request.message.fields
        return try await store.documents(at: request.partsKey) { VarySelection(bytes: $0)?.matches(fields) ?? true }
    }

    /// Keeps in memory what was read from disk, and gives what answers the request.
    func admitParts(_ documents: [StoredDocument], for request: ProxyRequest) -> ReadyResponse? {
        let digest = partsDigest(of: request)
        guard !commits.contains(digest) else { return partsInMemory(request) }
        let found = documents.compactMap { document -> ReadyResponse? in
            guard !unsettled.mayBeNewer(than: document.start, of: request.upstream.storeKey) else { return nil }
            guard let response = CachedResponse(document),
                KnownParts(fields: response.fields, body: response.body) != nil
            else {
                store.remove(document.id)
                return nil
            }
            let ready = ReadyResponse(response, for: request, at: digest)
            // What was kept while these were read is newer.
            memory.insert(ready, at: digest, insteadOf: { _ in false })
            return ready
        }
        return partsInMemory(request) ?? Self.newest(found, for: request)
    }

    /// What a look-up would find in parts, but nothing is taken into memory.
    package func surveyParts(_ request: ProxyRequest) async throws(StoreError) -> ReadyResponse? {
        guard request.message.method == "GET" else { return nil }
        if let ready = partsInMemory(request) { return ready }
        let digest = partsDigest(of: request)
        let found = try await partsOnDisk(request).compactMap { document in
            CachedResponse(document).map { ReadyResponse($0, for: request, at: digest) }
        }
        return Self.newest(found, for: request)
    }

    /// Forgets the parts of a response: it is there as a whole now, or they are not to be believed.
    func forgetParts(of request: ProxyRequest) {
        let digest = partsDigest(of: request)
        let isInMemory = memory.responses(at: digest) != nil
        memory.remove(digest)
        if isInMemory || store.mayHave(digest) { store.remove(at: request.partsKey) }
    }

    private static func newest(_ responses: [ReadyResponse], for request: ProxyRequest) -> ReadyResponse? {
        responses.filter { $0.matches(request, under: request.partsKey) && $0.isPartial }
            .max { $0.policy.responseTime < $1.policy.responseTime }
    }
}

/// Parts of responses on their way from the upstream: which may be kept, and what they make together.
extension Fetches {
    /// The part that a response brings; nil where it must not be stored as one.
    ///
    /// Not several parts in one body, none in a content coding, and none whose length is not what it says.
    func part(in head: UpstreamHead, of fetch: RunningFetch) -> ContentRange? {
        let values = head.fields.all("content-range")
        guard fetch.asksForRange, head.status == 206, values.count == 1, !head.fields.isContentCoded,
            !head.isMultipart,
            let content = ContentRange(values[0]), let range = content.range
        else { return nil }
        let length = head.fields.text("content-length").flatMap(Int.init)
        return length.map { $0 == range.count } ?? true ? content : nil
    }

    /// Whether a response brings just what is missing in the stored parts, of the very same representation.
    func completes(_ head: UpstreamHead, in fetch: RunningFetch) -> Bool {
        guard let known = fetch.completing, let parts = known.parts, let gap = parts.gap,
            let content = (try? storage(of: head, in: fetch))?.part, let range = content.range
        else { return false }
        return content.length == parts.length.map { Int64($0) } && isSame(known, head.fields)
            && range.lowerBound <= gap.lowerBound && gap.upperBound <= range.upperBound
    }

    /// Forgets parts that a 416 shows to be of an earlier version: the whole has another length now.
    func disbelieveParts(after head: UpstreamHead, in fetch: RunningFetch) {
        guard head.status == 416, let known = fetch.parts?.parts?.length,
            let present = head.fields[first: "content-range"].flatMap({ ContentRange($0) })?.length,
            present != Int64(known)
        else { return }
        cache.forgetParts(of: fetch.request)
    }

    /// Fetches the whole for those whom parts were to be completed for.
    func askForWhole(_ relays: [Relay], insteadOf fetch: RunningFetch) {
        retire(fetch)
        cache.forgetParts(of: fetch.request)
        for relay in relays { ask(relay.request, relay.reply, stored: nil) }
    }

    /// Keeps a part that has come, together with those of the same representation; the whole, if that makes it one.
    ///
    /// Nil where the part is not of the length it said, something newer is known, or it is too little to be worth it.
    func keep(_ content: ContentRange, _ storing: RunningFetch.Storing, body: [UInt8], from fetch: RunningFetch)
        -> (ready: ReadyResponse?, isWithheld: Bool)
    {
        guard let new = KnownParts(content, body: body) else { return (nil, false) }
        let request = fetch.request
        // What has been stored since the fetch began counts, not what was known then.
        let known = fetch.completing ?? cache.partsInMemory(request) ?? fetch.parts
        var fields = Self.withoutFraming(storing.fields)
        var parts = new
        if let known, isSame(known, storing.fields), let joined = known.parts?.combined(with: new),
            joined.body.count <= settings.limits.document
        {
            guard joined.isWorthKeeping(for: new) else { return (nil, false) }
            parts = joined
            fields = Self.fields(of: Self.withoutFraming(known.response.fields), replacedBy: fields)
        } else if let known, known.policy.requestTime > fetch.requestTime {
            return (nil, false)
        }
        guard let policy = policy(of: fields, storing, isWhole: parts.isWhole, fetch) else { return (nil, false) }
        var response = CachedResponse(
            key: request.key,
            status: 200,
            fields: fields,
            body: parts.body,
            policy: policy,
            selection: storing.selection
        )
        if parts.isWhole { return keep(response, from: fetch, isAwaited: true) }
        for value in parts.contentRanges { fields.append("Content-Range", value) }
        (response.key, response.status, response.fields) = (request.partsKey, 206, fields)
        let digest = cache.partsDigest(of: request)
        let ready = ReadyResponse(response, for: request, at: digest)
        if !fetch.isInvalidated { keep(ready, nil, from: fetch) }
        return (ready, false)
    }

    /// Whether both are of one representation, by a strong tag (RFC 9110 §15.3.7.3).
    private func isSame(_ known: ReadyResponse, _ fields: Fields) -> Bool {
        guard let tag = fields[first: "etag"].flatMap({ EntityTag($0) }) else { return false }
        return known.preconditions.entityTag?.matchesStrongly(tag) ?? false
    }

    /// The terms on which what the parts make is used again: the newest response's, read with the fields that it did not repeat.
    private func policy(of fields: Fields, _ storing: RunningFetch.Storing, isWhole: Bool, _ fetch: RunningFetch)
        -> StoredPolicy?
    {
        let request = fetch.request
        var aged = fields
        if storing.policy.ageValue >= 0 { aged.append("Age", String(storing.policy.ageValue)) }
        let policy = request.policy(
            status: isWhole ? 200 : 206,
            fields: aged,
            requestTime: fetch.requestTime,
            responseTime: storing.policy.responseTime,
            wall: storing.policy.responseTime - now + wall
        )
        return policy.storability == .yes ? policy.stored : nil
    }

    /// The fields of earlier parts with those of a later one in their place (RFC 9111 §3.4).
    private static func fields(of known: Fields, replacedBy new: Fields) -> Fields {
        let names = Set(new.lines.map(\.lowercasedName))
        return Fields(known.lines.filter { !names.contains($0.lowercasedName) } + new.lines)
    }

    /// Without what is about one message, not about the representation.
    private static func withoutFraming(_ fields: Fields) -> Fields {
        let names: Set<String> = ["content-range", "content-length", "content-md5", "content-digest"]
        return Fields(fields.lines.filter { !names.contains($0.lowercasedName) })
    }
}
