package import CachePolicy
package import HTTPSemantics
package import Store
import Upstream

/// A whole cached response: as the upstream sent it, or composed from that.
///
/// It is independent of views, link bases and fields that change with time; `ReadyResponse` adds them.
package struct CachedResponse: Sendable {
    var key: CacheKey
    /// The document in the store; nil until its first commit.
    var document: DocumentID?
    package var status: Int
    /// The fields that are kept: none that concerns a connection, a moment or the framing.
    package var fields: Fields
    var body: [UInt8]
    /// The body migrated to the models' current versions, for the mapped view; nil if that equals the body.
    var migrated: [UInt8]?
    package var policy: StoredPolicy
    package var selection: VarySelection
    /// One that is outdated is served only if the upstream cannot be asked, with the newer values that are known.
    package var form: StoredDocument.Form
    /// Whether it was made of what is known of an object, in the mapped view only: no response to the URL is stored.
    var isAssembled = false
    /// Whether the body differs from the one received, because newer values are in it.
    var isBodyComposed = false
    var objects: [ObjectID]
    /// For each member in doubt that it shows, from when on the doubt is to be resolved by a request.
    var doubts: [Int64] = []

    /// A response as the upstream sent it, which is not stored yet.
    init(key: CacheKey, status: Int, fields: Fields, body: [UInt8], policy: StoredPolicy) {
        self.key = key
        self.status = status
        self.body = body
        self.policy = policy
        (selection, form, objects) = (.none, .asReceived, [])
        self.fields = fields.compact
    }

    /// The response to a request as it is to be stored, still without its body; nil if no request will ever select it.
    ///
    /// - Parameter wall: when it arrived, in seconds of the wall clock.
    init?(_ head: UpstreamHead, to request: ProxyRequest, _ policy: ResponsePolicy, at wall: Int64) {
        var policy = policy
        policy.hasFixedCoding = head.hasFixedCoding
        let isJSON = request.upstream.isJSON(head.fields)
        guard let selection = request.selection(policy, isJSON: isJSON) else { return nil }
        let fields = request.storable(head.fields, policy, at: wall)
        self.init(key: request.key, status: head.status, fields: fields, body: [], policy: policy.stored)
        self.selection = selection
    }

    var withoutBody: CachedResponse {
        var response = self
        (response.body, response.migrated) = ([], nil)
        return response
    }

    var isComposed: Bool { if case .composed = form { true } else { false } }

    var isOutdated: Bool { shortfall != nil }

    /// Why newer values are known but not in it; nil if it is not outdated.
    var shortfall: String? { if case .outdated(let reason) = form { reason } else { nil } }

    /// The words of `detail` in `Cache-Status` on what it shows.
    var details: [String] {
        (isAssembled ? ["assembled"] : []) + (doubts.isEmpty ? [] : ["doubt"])
            + (isBodyComposed ? ["composed"] : [])
    }

    /// The approximate memory that it takes besides its body, in bytes.
    var overhead: Int {
        (migrated?.count ?? 0) + fields.byteCount + key.url.utf8.count + key.context.utf8.count + 8 * objects.count
    }

    var validators: Validators { Validators(fields: fields, policy: policy) }

    /// Whether a 304 makes it the response to a request that differs in its `OtherFields`, too.
    var isReleasable: Bool {
        policy.flags.contains(.isReleasedByValidation) && validators.entityTag.map { !$0.isWeak } ?? false
    }

    /// Whether the upstream gave a validator that can be used.
    ///
    /// A document that differs from what the upstream sent is requested without conditions: a 304 would confirm bytes that are no
    /// longer served.
    var isValidatable: Bool {
        form == .asReceived && doubts.isEmpty && (fields.contains(.etag) || fields.contains(.lastModified))
    }
}

extension CachedResponse {
    /// Whether a response in a copy of a store, which anybody may have made, is one that could have been stored.
    ///
    /// Its fields must survive decoding, and contain none that concerns a connection or the framing.
    static func isServable(_ stored: OpaqueResponse, replaysCookies: Bool) -> Bool {
        guard let head = FieldsOnDisk.shown(stored.head) else { return false }
        let fields = Fields(encoded: head)
        return StoredPolicy(bytes: stored.policy) != nil && VarySelection(bytes: stored.variant) != nil
            && statuses.contains(stored.status) && fields.encoded == head
            && fields.lines.allSatisfy { line in
                !line.name.isEmpty && line.name.allSatisfy { $0 > 0x20 && $0 != 0x7f }
                    && !line.value.contains { [0x00, 0x0A, 0x0D].contains($0) }
            }
            && StoredFields.storable(fields, replaysCookies: replaysCookies).lines.count == fields.lines.count
    }

    private static let statuses = 100...999

    /// A response from the store, for a request of its principal; nil if it cannot be restored as it was received.
    init?(_ document: StoredDocument, for request: ProxyRequest) {
        guard let head = FieldsOnDisk.decode(document.head, for: request) else { return nil }
        self.init(document, head: head)
    }

    /// A response from the store for people, without the credentials in its fields; nil if its bytes cannot be decoded.
    init?(shown document: StoredDocument) {
        guard let head = FieldsOnDisk.shown(document.head) else { return nil }
        self.init(document, head: head)
    }

    private init?(_ document: StoredDocument, head: [UInt8]) {
        guard Self.statuses.contains(document.status), let policy = StoredPolicy(bytes: document.policy),
            let selection = VarySelection(bytes: document.variant)
        else { return nil }
        (key, self.document, status, fields) = (document.key, document.id, document.status, Fields(encoded: head))
        (body, migrated, self.policy, self.selection) = (document.body, document.migrated, policy, selection)
        (objects, doubts, isBodyComposed) = (document.objects, document.doubts, document.isBodyComposed)
        form = document.form
    }
}

extension [UInt8] {
    /// Appends a field line in the form of HTTP/1.1.
    mutating func append(field: Field) {
        append(contentsOf: field.name)
        append(contentsOf: [0x3A, 0x20])
        append(contentsOf: field.value)
        append(contentsOf: [0x0D, 0x0A])
    }
}

/// The form in which a document is served.
package enum View: UInt8, Sendable, Equatable {
    /// The upstream's own shape, with the newest known values.
    case wire
    /// The bytes as received, after content decoding.
    case raw
    /// The models' shape, with the newest known values.
    case mapped
}
