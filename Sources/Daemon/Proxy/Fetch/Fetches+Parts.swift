import CachePolicy
import HTTPSemantics
import Mapping
import Settings
import Store
import Upstream

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
            document: nil,
            status: 200,
            fields: fields,
            body: parts.body,
            policy: policy,
            selection: storing.selection,
            form: .received,
            objects: []
        )
        if parts.isWhole { return keep(response, from: fetch, isAwaited: true) }
        for value in parts.contentRanges { fields.append("Content-Range", value) }
        (response.key, response.status, response.fields) = (request.partsKey, 206, fields)
        let digest = cache.partsDigest(of: request)
        let ready = ReadyResponse(response, digest: digest, upstream: request.upstream, base: request.base)
        if !fetch.isInvalidated { keep(ready, BodyMapping(rule: nil, kind: .detail, bound: [:]), from: fetch) }
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
