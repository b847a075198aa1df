package import CachePolicy
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
package import Store
import Synchronization

/// A response prepared for sending: a hit writes it to the socket and adds only the few fields that change.
///
/// Immutable and shared by all threads. A response with links to the upstream, or with a body rewritten for the client's address,
/// is valid for one link base, all others for any.
package final class ReadyResponse: MemoryResident {
    package let response: CachedResponse
    package let upstream: ProxiedUpstream
    package let key: CacheKey
    package let variant: [UInt8]
    package let entry: MemoryEntry
    package let byteCount: Int
    package let precedence: Int64
    /// The policy with the route's settings applied.
    package let policy: StoredPolicy
    /// How its route departs from the upstream's fields.
    let overrideDetails: [String]
    /// `; detail=…` of a hit, encoded; empty if there is none.
    let hitDetail: [UInt8]
    /// The address in rewritten links; nil if there are none.
    let base: ClientAuthority?
    /// The status line and the fields before those that change.
    let head: [UInt8]
    /// The same for a 304.
    let notModifiedHead: [UInt8]
    /// The rate-limit fields at the ends of both heads, if newer ones take their place; nil if they are sent as they are.
    let withoutRateLimit: WithoutRateLimit?
    package let body: [UInt8]
    let validators: Validators
    /// Whether it is restricted to requests that agree in their `OtherFields`, and the digest of these; nil for none.
    let isForSameOtherFields: Bool
    let otherFields: Digest128?
    /// The other fields that it varies by.
    private let hitSelection: VarySelection
    /// Whether the body is JSON; if it is not, whether it came for a request that accepts nothing else.
    let isJSON: Bool
    private let isForJSONOnly: Bool
    /// The flags of the response that this one was made from for a view or an address, if any.
    let source: MemoryEntry?
    let view: View
    /// The objects that it shows by their bare identities, or that a key path does not lead through, because they are not known;
    /// all of them until the store has been asked.
    let named: Set<BoundObject>
    /// The objects that it shows in place of bare identities.
    let known: [ObjectID]
    private let document: Atomic<DocumentID>
    /// The objects that it shows, once the store has reported them.
    private let storedObjects: Mutex<[ObjectID]>

    /// The limited resource, and the lengths of both heads without the rate-limit fields.
    struct WithoutRateLimit {
        let resource: String?
        let headCount: Int
        let notModifiedCount: Int
    }

    /// The variant of an older response to such requests that did not depend on their `OtherFields`; nil if this does not either.
    var variantForAllFields: [UInt8]? {
        isForSameOtherFields ? response.selection.without(OtherFields.name).bytes : nil
    }

    /// The document in the store; `.zero` until its first commit.
    package var documentID: DocumentID { document.load(ordering: .acquiring) }

    /// Whatever its address, and also if it depends on its requests' `OtherFields` while the other does not.
    package func replaces(_ other: ReadyResponse) -> Bool {
        let variant = other.response.selection.bytes
        return key == other.key && (response.selection.bytes == variant || variantForAllFields == variant)
    }

    /// - Parameters:
    ///   - digest: where look-ups will find it.
    ///   - source: the flags of the response that this one is made from, if it is to be kept beside that one.
    ///   - known: the stored objects that the view shows by their bare identities; nil if the store was not asked.
    ///   - entry: that of the response of which this is a copy for one request.
    init(
        _ response: CachedResponse,
        digest: Digest128,
        upstream: ProxiedUpstream,
        base: ClientAuthority,
        view: View = .wire,
        source: MemoryEntry? = nil,
        known: [BoundObject: RelatedObject]? = nil,
        entry: MemoryEntry? = nil
    ) {
        (self.source, self.view, self.upstream) = (source, view, upstream)
        key = response.key
        self.entry = entry ?? MemoryEntry(digest: digest)
        precedence = Self.precedence(of: response)
        document = Atomic(response.document ?? .zero)
        storedObjects = Mutex(response.objects)
        let received = response.fields
        // A route's settings are for responses of the upstream.
        let route = response.isAssembled ? CacheOverrides() : upstream.overrides(ofURL: response.key.url)
        policy = upstream.applying(response.policy, route)
        overrideDetails = policy.overrideDetails(of: route, vary: VaryField(received))
        let details = response.details + overrideDetails
        hitDetail = details.isEmpty ? [] : Array("; detail=\(details.joined(separator: "+"))".utf8)
        isJSON = upstream.isJSON(received)
        let agreed = response.selection.lines.first { $0.name == OtherFields.name }
        isForSameOtherFields = agreed != nil
        otherFields = agreed?.value.map { OtherFields.digest($0) ?? Digest128(low: 0, high: 0) }
        hitSelection = response.selection.named
        isForJSONOnly = response.selection.isForJSONOnly

        let json = known?.mapValues(\.json) ?? [:]
        let rendering = Rendering(response, received, upstream: upstream, base: base, view: view, known: json)
        named = rendering.named.subtracting(json.keys)
        self.known = known?.values.map(\.id) ?? []
        body = rendering.body
        // The body above is served; the original bytes belong to the source.
        self.response = source == nil ? response : response.withoutBody
        self.base = rendering.dependsOnBase ? base : nil
        variant =
            response.selection.bytes + (rendering.dependsOnBase ? [0] + base.bytes : [])
            + (source == nil ? [] : [0, view.rawValue])
        var stored = Validators(fields: rendering.fields, policy: response.policy)
        // Bytes other than the upstream's have no date of last change, so that ranges cannot be combined by it.
        if !rendering.fields.contains(.lastModified) { stored.lastModified = nil }
        // Its `Date` is that of the received bytes, which a client may have from before.
        if response.isBodyComposed || response.isAssembled { stored.date = nil }
        validators = stored
        var (fields, limitLines) = (rendering.fields, Fields())
        if upstream.newestRateLimit != nil {
            limitLines = fields.filter(RateLimitFields.isOne)
            fields.removeAll(where: RateLimitFields.isOne)
        }
        var head = Self.head(response.status, fields, length: body.count)
        var notModifiedHead = Self.head(304, StoredFields.notModified(fields), length: nil)
        withoutRateLimit =
            upstream.newestRateLimit == nil
            ? nil
            : WithoutRateLimit(
                resource: RateLimitFields.resource(rendering.fields),
                headCount: head.count,
                notModifiedCount: notModifiedHead.count
            )
        limitLines.append(to: &head)
        limitLines.append(to: &notModifiedHead)
        (self.head, self.notModifiedHead) = (head, notModifiedHead)
        // The constant was measured: a response's objects, its places in tables, and the allocator's overhead. The allocator
        // wastes a quarter on large bodies, whose blocks vary in size.
        byteCount =
            2_200 + body.count + body.count / 4 + (rendering.dependsOnBase ? self.response.body.count : 0)
            + head.count + notModifiedHead.count + 2 * variant.count + 3 * hitDetail.count + response.overhead
    }

    /// The response in the upstream's shape, for the address of a request.
    ///
    /// - Parameter digest: where look-ups will find it; nil for the request's key.
    convenience init(_ response: CachedResponse, for request: ProxyRequest, at digest: Digest128? = nil) {
        self.init(response, digest: digest ?? request.digest, upstream: request.upstream, base: request.base)
    }

    /// The fields as they are served; decoded on each access.
    var fields: Fields {
        var fields = Fields(encoded: head)
        fields.remove(.contentLength)
        return fields
    }

    private func copy(of entry: MemoryEntry? = nil, _ change: (inout CachedResponse) -> Void) -> ReadyResponse {
        var response = response
        change(&response)
        let base = base ?? ClientAuthority(authority: "")
        return ReadyResponse(response, digest: self.entry.digest, upstream: upstream, base: base, entry: entry)
    }

    /// A copy marked as outdated: newer values are known that it does not show.
    var outdated: ReadyResponse {
        copy { $0.form = .outdated(reason: "an object in it has changed, and it is in memory only") }
    }

    /// A copy with another policy, for one request, which becomes dirty with this one.
    func with(_ policy: StoredPolicy) -> ReadyResponse {
        let copy = copy(of: entry) { $0.policy = policy }
        if let stored { copy.committed(as: stored.document, showing: stored.objects) }
        copy.sequence.store(sequence.load(ordering: .relaxed), ordering: .relaxed)
        return copy
    }

    /// Whether it shows the newest known values.
    @inline(__always)
    var isClean: Bool { !entry.isDirty }

    /// The commit sequence that it is current for, as of its last look-up or commit.
    let sequence = Atomic(CommitNumber.zero)

    /// When it must be requested again although it is fresh, because it shows a member in doubt; in seconds of the store's clock.
    let asksAgain = Atomic<Int64>(.max)

    /// Whether it shows a member in doubt that is to be resolved by a request now.
    @inline(__always)
    func isDoubtDue(at now: Int64) -> Bool { doubtDue <= now }

    /// The time for that, in seconds of the store's clock.
    var doubtDue: Int64 { asksAgain.load(ordering: .relaxed) }

    func committed(as id: DocumentID, showing objects: [ObjectID]) {
        storedObjects.withLock { $0 = objects }
        document.store(id, ordering: .releasing)
    }

    /// The document in the store and its objects; nil until the first commit.
    var stored: (document: DocumentID, objects: [ObjectID])? {
        let document = documentID
        return document == .zero ? nil : (document, storedObjects.withLock { $0 })
    }

    /// Whether this is the variant that a request selects, whatever its address, made by the rules that the request has.
    func matches(_ request: ProxyRequest) -> Bool { matches(request, under: request.key) }

    /// The same for a response stored under another key than the request's.
    func matches(_ request: ProxyRequest, under wanted: CacheKey) -> Bool {
        upstream === request.upstream && key == wanted && request.selects(response.selection, isJSON: isJSON)
    }

    /// The response in the view and for the address of a request.
    ///
    /// The raw view of a composed response cannot be made from it: see `ResponseCache.inView`.
    package func shown(to request: ProxyRequest) -> ReadyResponse {
        guard needsRendering(for: request) else { return self }
        let (digest, base, view) = (entry.digest, request.base, request.view)
        return ReadyResponse(response, digest: digest, upstream: upstream, base: base, view: view)
    }

    /// Whether a request wants another view or has another address.
    func needsRendering(for request: ProxyRequest) -> Bool {
        guard !response.isAssembled else { return false }
        return request.view != .wire || base.map { $0 != request.base } ?? false
    }

    /// Whether it has the variant and the address for a request on the hit path, whose key is known to be equal.
    ///
    /// The caller compares `otherFields`.
    func isGood(for request: borrowing RequestHead) -> Bool {
        if let base, !base.isNamed(request.authority) { return false }
        if !isJSON, request.asksForJSONOnly != isForJSONOnly { return false }
        return hitSelection.matches(request)
    }

    /// Whether the request's conditions show that the client already has this response.
    func isNotModified(_ request: borrowing RequestHead, now: Int64) -> Bool {
        let conditions = Preconditions(fields: request.conditions, now: now)
        return conditions.isNotModified(method: "GET", against: validators)
    }

    private static func head(_ status: Int, _ fields: Fields, length: Int?) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(fields.byteCount + 64)
        head += "HTTP/1.1 ".utf8
        head.append(decimal: status)
        head.append(0x20)
        head += statusPhrase(status).utf8
        head += "\r\n".utf8
        fields.append(to: &head)
        if let length, status != 204 {
            head += "Content-Length: ".utf8
            head.append(decimal: length)
            head += "\r\n".utf8
        }
        return head
    }
}

/// Properties of a request that the hit path compares besides its key.
extension RequestHead {
    /// Whether its `Accept` names JSON and nothing that another type would satisfy.
    var asksForJSONOnly: Bool { self[.accept].map { ContextFields.isJSONOnlyAccept($0) } ?? false }

    var conditions: Fields {
        var fields = Fields()
        for index in 0..<fieldCount {
            let field = field(at: index)
            guard field.known == .ifNoneMatch || field.known == .ifModifiedSince else { continue }
            fields.append(name: field.name, value: field.value)
        }
        return fields
    }
}

/// A response's fields and body as they are served at one address.
struct Rendering {
    var fields: Fields
    var body: [UInt8]
    /// Whether any of it was written for this address.
    var dependsOnBase = false
    /// The objects that the mapped view shows by their bare identities.
    var named: Set<BoundObject> = []

    /// The fields that concern the upstream's bytes, and are false for others.
    static let fieldsOfBytes = [
        "last-modified", "content-md5", "digest", "content-digest", "repr-digest", "signature", "signature-input",
    ]

    /// Formats JSON pointers as a list of strings (RFC 9651); the list is cut off at a member if it is too long for a field.
    private static func list(_ pointers: [String]) -> String {
        var list = ""
        for pointer in pointers {
            let quoted = FieldSyntax.quoted(pointer)
            guard list.utf8.count + quoted.utf8.count < 4_000, quoted.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { break }
            list += (list.isEmpty ? "" : ", ") + quoted
        }
        return list
    }

    /// Turns a response's fields into those of its mapped view; the response to a write gets no tag.
    static func describe(_ mapped: MappedBody, in fields: inout Fields) {
        for name in fieldsOfBytes + ["etag"] { fields.remove(name) }
        fields.set("Content-Type", "application/json")
        if !mapped.synthetic.isEmpty { fields.set("Larder-Synthetic", list(mapped.synthetic)) }
        if !mapped.unconverted.isEmpty { fields.set("Larder-Unconverted", list(mapped.unconverted)) }
    }

    /// Replaces another charset in `Content-Type`: text in a composed body comes from other responses, and is UTF-8.
    private static func nameUTF8(in fields: inout Fields) {
        guard let type = fields[first: "content-type"] else { return }
        let utf8 = Array("charset=utf-8".utf8)
        var parameters = FieldSyntax.members(type[...], separator: 0x3B).map { Array($0) }
        let label = parameters.firstIndex { FieldSyntax.lowercased($0[...]).starts(with: "charset=".utf8) }
        guard let label, FieldSyntax.lowercased(parameters[label].filter { $0 != 0x22 }[...]) != utf8 else { return }
        parameters[label] = utf8
        fields.set("Content-Type", String(decoding: Array(parameters.joined(separator: [0x3B])), as: UTF8.self))
    }

    init(
        _ response: CachedResponse,
        _ received: Fields,
        upstream: ProxiedUpstream,
        base: ClientAuthority,
        view: View,
        known: [BoundObject: [UInt8]] = [:]
    ) {
        fields = received
        body = response.body
        dependsOnBase = upstream.rewriteLinks(in: &fields, for: base)
        var isChanged = response.isBodyComposed || response.isAssembled
        if isChanged, body.contains(where: { $0 >= 0x80 }) { Self.nameUTF8(in: &fields) }
        // In a part a link may be cut in two, and bytes are counted by their position in the upstream's body.
        if response.status != 206, upstream.settings.rewriteLinks, view != .raw, upstream.isJSON(fields),
            let rewritten = upstream.linkRewriter(for: base).rewritten(body: body)
        {
            body = rewritten
            dependsOnBase = true
            isChanged = true
        }
        let isRewriting = upstream.settings.rewriteLinks
        let rewrite = { (text: [UInt8]) in
            isRewriting ? upstream.linkRewriter(for: base).rewritten(body: text) ?? text : text
        }
        // The mapped view is made of the body, migrated to the models' current versions.
        if view == .mapped,
            let mapped = upstream.mapped(
                response,
                body: response.migrated.map(rewrite) ?? body,
                known: known.mapValues(rewrite)
            )
        {
            body = mapped.body
            named = mapped.named
            Self.describe(mapped, in: &fields)
            isChanged = true
        }
        if isChanged {
            for name in Self.fieldsOfBytes { fields.remove(name) }
            fields.set("ETag", OwnEntityTag.make(body: body, view: view, base: dependsOnBase ? base : nil))
        }
        fields.remove(.contentLength)
        // A response without a date gets that of its arrival (RFC 9110 §6.6.1).
        if response.policy.flags.contains(.dateAssumed) {
            let date = HTTPDate.format(response.policy.date)
            if fields.last.map({ $0.isNamed(.date) && $0.value.elementsEqual(date) }) != true {
                fields.set("Date", String(decoding: date, as: UTF8.self))
            }
        }
        Via.append(to: &fields)
        fields.vary(
            by: upstream.variesBy(
                CacheKey.method(ofURL: response.key.url),
                url: response.key.url,
                status: response.status,
                fields: received
            )
        )
    }
}

/// The entity tags of responses that Larder itself has changed: composed ones, and those with rewritten links.
///
/// They are strong, because equal tags mean equal bytes. They begin with `larder-`, which identifies them in later requests, and
/// never go upstream.
enum OwnEntityTag {
    /// The tag of a body as served in one view and at one address; `base` is nil if the body does not depend on it.
    static func make(body: [UInt8], view: View, base: ClientAuthority?) -> String {
        // No address contains a line break. Bytes as received need no such tag.
        let marked = view == .mapped ? Array("mapped\n".utf8) : []
        let code = Crypto.authenticationCode(key: marked + (base?.bytes ?? []), message: body)
        return "\"larder-\(code.prefix(16).hexadecimal)\""
    }
}
