import CachePolicy
import HTTPSemantics
import HTTPServer
package import Store

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
            let ready = ReadyResponse(response, digest: digest, upstream: request.upstream, base: request.base)
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
            CachedResponse(document).map {
                ReadyResponse($0, digest: digest, upstream: request.upstream, base: request.base)
            }
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
