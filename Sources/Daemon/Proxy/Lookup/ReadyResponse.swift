package import CachePolicy
import HTTPSemantics
import HTTPServer
package import Mapping
package import Store
import Synchronization

/// A response made ready to be sent: what a hit writes to the socket, but for the few fields that change.
///
/// Immutable and shared by all threads. One that has links into the upstream, or whose body is rewritten for the client's
/// address, is good for one link base; the rest are good for all.
package final class ReadyResponse: MemoryResident {
    package let response: CachedResponse
    package let upstream: ProxiedUpstream
    package let key: DocumentKey
    package let variant: [UInt8]
    package let residence: Residence
    package let byteCount: Int
    package let precedence: Int64
    /// The policy with the route's configuration laid over it.
    package let policy: StoredPolicy
    /// In what its route departs from the upstream's word.
    let overrideDetail: String?
    /// `; detail=…` as a hit says it, ready to be sent; empty where there is nothing to say.
    let hitDetail: [UInt8]
    /// The address that links lead back to; nil where there are none.
    let base: ClientAuthority?
    /// Status line and fields up to, not including, those that change.
    let head: [UInt8]
    /// The same for a 304.
    let notModifiedHead: [UInt8]
    /// The body as it is served.
    package let body: [UInt8]
    let preconditions: Preconditions.Stored
    /// Whether it is for requests alone that agree in their `OtherFields`, and the digest of these; nil for none.
    let isForAgreeing: Bool
    let otherFields: Digest128?
    /// What else it varies by.
    private let hitSelection: VarySelection
    /// Whether the body is JSON, for requests that ask for no other.
    let isJSON: Bool
    /// Of a response that was made of another one, for a view or an address: the flags of that one.
    let source: Residence?
    /// The view that it was made for.
    let view: View
    /// The objects that it names by their bare identities, as long as nobody has asked the store for them.
    let named: Set<ObjectName>
    /// The objects that it shows in the place of bare identities.
    let known: [ObjectID]
    /// The document in the store; `.zero` until its first commit.
    let document: Atomic<DocumentID>
    /// The objects that it shows, as far as the store has said.
    private let shown: Mutex<[ObjectID]>

    /// - Parameters:
    ///   - digest: where it will be found.
    ///   - source: the flags of the response that this one is made of, if it is to be kept beside that one.
    ///   - known: what the store has of the objects that the view names by their bare identities; nil: it was not asked.
    package init(
        _ response: CachedResponse,
        digest: Digest128,
        upstream: ProxiedUpstream,
        base: ClientAuthority,
        view: View = .wire,
        source: Residence? = nil,
        known: [ObjectName: RelatedObject]? = nil
    ) {
        self.source = source
        self.view = view
        self.upstream = upstream
        key = response.key
        residence = Residence(digest: digest)
        precedence = Self.precedence(of: response)
        document = Atomic(response.document ?? .zero)
        shown = Mutex(response.objects)
        let route = upstream.overrides(ofURL: response.key.url)
        policy = upstream.applying(response.policy, route)
        let overrideDetail =
            route == CacheOverrides() ? nil : policy.overrideDetail(of: route, vary: VaryField(response.fields))
        self.overrideDetail = overrideDetail
        let details = [response.detail, overrideDetail].compactMap(\.self)
        hitDetail = details.isEmpty ? [] : Array("; detail=\(details.joined(separator: "+"))".utf8)
        isJSON = upstream.isJSON(response.fields)
        let agreed = response.selection.lines.first { $0.name == OtherFields.name }
        isForAgreeing = agreed != nil
        otherFields = agreed?.value.map { OtherFields.digest($0) ?? Digest128(low: 0, high: 0) }
        hitSelection = response.selection.without(OtherFields.name)

        let json = known?.mapValues(\.json) ?? [:]
        let rendering = Rendering(response, upstream: upstream, base: base, view: view, known: json)
        named = known == nil ? rendering.named : []
        self.known = known?.values.map(\.id) ?? []
        body = rendering.body
        var kept = response
        // What is served is the body above; the bytes that it was made of are the other one's.
        if source != nil { (kept.body, kept.migrated) = ([], nil) }
        self.response = kept
        self.base = rendering.dependsOnBase ? base : nil
        variant =
            response.selection.bytes + (rendering.dependsOnBase ? [0] + base.bytes : [])
            + (source == nil ? [] : [0, view.rawValue])
        var stored = Preconditions.Stored(fields: rendering.fields, policy: response.policy)
        // Other bytes than the upstream's have no date of their last change; nobody may patch them together by it.
        if !rendering.fields.contains("last-modified") { stored.lastModified = nil }
        // Its `Date` is that of the bytes received, which a client may have had before these.
        if response.form == .composed { stored.date = nil }
        preconditions = stored
        head = Self.head(response.status, rendering.fields, length: body.count)
        notModifiedHead = Self.head(304, StoredFields.notModified(rendering.fields), length: nil)
        // The constant is what a response was measured to take besides its bytes: its objects, the places in tables, and the
        // allocator's share; of large bodies, blocks of unequal size that come and go, the allocator loses a quarter.
        byteCount =
            2_200 + body.count + body.count / 4 + (rendering.dependsOnBase ? kept.body.count : 0)
            + head.count + notModifiedHead.count + 2 * variant.count + 3 * hitDetail.count + response.overhead
    }

    /// The response in the upstream's shape, for the address of a request.
    ///
    /// - Parameter digest: where it will be found; nil: under the request's key.
    package convenience init(_ response: CachedResponse, for request: ProxyRequest, at digest: Digest128? = nil) {
        self.init(response, digest: digest ?? request.digest, upstream: request.upstream, base: request.base)
    }

    /// The fields as they are served; read anew each time.
    var fields: Fields {
        var fields = StoredHead.decode(head)
        fields.remove("content-length")
        return fields
    }

    /// The same as one that something newer is known of which it does not show.
    var outdated: ReadyResponse {
        var response = response
        response.form = .outdated
        return ReadyResponse(
            response,
            digest: residence.digest,
            upstream: upstream,
            base: base ?? ClientAuthority(authority: "")
        )
    }

    /// Whether nothing newer is known of what it shows.
    @inline(__always)
    package var isClean: Bool { !residence.isDirty.load(ordering: .relaxed) }

    /// The commit sequence up to which it shows what was known, when it was last looked up or committed.
    let asOf = Atomic<Int64>(0)

    /// When it is to be asked for again although it is fresh, in seconds of the store's clock: it shows a member in doubt.
    let asksAgain = Atomic<Int64>(.max)

    /// Whether it shows a member in doubt that is to be settled by asking now.
    @inline(__always)
    func isDoubtDue(at now: Int64) -> Bool { doubtDue <= now }

    /// When that is so, in seconds of the store's clock.
    var doubtDue: Int64 { asksAgain.load(ordering: .relaxed) }

    /// Notes what the store has made of it.
    func committed(as id: DocumentID, showing objects: [ObjectID]) {
        shown.withLock { $0 = objects }
        document.store(id, ordering: .releasing)
    }

    /// The document in the store and the objects that it shows; nil until its first commit.
    package var stored: (document: DocumentID, objects: [ObjectID])? {
        let document = document.load(ordering: .acquiring)
        return document == .zero ? nil : (document, shown.withLock { $0 })
    }

    /// Whether this is the variant that a request asks for, whatever its address.
    package func matches(_ request: ProxyRequest) -> Bool { matches(request, under: request.key) }

    /// The same for what is stored under another key than the request's.
    func matches(_ request: ProxyRequest, under wanted: DocumentKey) -> Bool {
        key == wanted && response.selection.matches { request.message.fields.combinedBytes($0) }
            && (isJSON || !request.wantsJSONOnly)
    }

    /// The response in the view and for the address of a request.
    ///
    /// The raw view of a composed response is not made from it: see `ResponseCache.inView`.
    package func shown(to request: ProxyRequest) -> ReadyResponse {
        guard needsRendering(for: request) else { return self }
        return ReadyResponse(
            response,
            digest: residence.digest,
            upstream: upstream,
            base: request.base,
            view: request.view
        )
    }

    /// Whether a request wants it in another view, or for another address.
    func needsRendering(for request: ProxyRequest) -> Bool {
        request.view != .wire || base.map { $0 != request.base } ?? false
    }

    /// Whether the variant and the address are those of a request on the hit path, whose key has been found equal; `otherFields`
    /// is the caller's to compare.
    func isGood(for request: borrowing RequestHead) -> Bool {
        if let base, !base.isNamed(request.authority) { return false }
        if !isJSON, request.asksForJSONOnly { return false }
        return hitSelection.matches(request)
    }

    /// Whether a request's conditions say that its client has this response already.
    func isNotModified(_ request: borrowing RequestHead, now: Int64) -> Bool {
        let conditions = Preconditions(fields: request.conditions, now: now)
        return conditions.evaluateForCache(method: "GET", against: preconditions) == .notModified
    }

    private static func head(_ status: Int, _ fields: Fields, length: Int?) -> [UInt8] {
        var head = Array("HTTP/1.1 \(status) \(statusPhrase(status))\r\n".utf8)
        for line in fields.lines { head.append(field: line) }
        if let length, status != 204 { head += Array("Content-Length: \(length)\r\n".utf8) }
        return head
    }
}

/// What the hit path asks of a request besides its key.
extension RequestHead {
    /// Whether its `Accept` names JSON and nothing that another type would satisfy.
    var asksForJSONOnly: Bool {
        guard let accept = self[.accept] else { return false }
        return ContextFields.isJSONOnlyAccept(accept)
    }

    /// The conditions that a cache evaluates.
    var conditions: Fields {
        var fields = Fields()
        for index in 0..<fieldCount {
            let field = field(at: index)
            guard field.known == .ifNoneMatch || field.known == .ifModifiedSince else { continue }
            fields.lines.append(Field(name: Array(field.name), value: Array(field.value)))
        }
        return fields
    }
}
