import CachePolicy
import Dispatch
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
import Store

/// A request to a webhook, which has proved nothing yet.
struct IncomingDelivery: Sendable {
    var message: Request
    let webhook: Configuration.Webhook
    let signature: Configuration.Webhook.Signature
    let upstream: ProxiedUpstream
    let client: ClientAddress
    /// When its head was read, in ns of the monotonic clock.
    let started: UInt64

    /// The paths of all webhooks begin with it.
    static let prefix = Array("/.well-known/larder/webhooks/".utf8)

    /// The name in a webhook's path; nil for all other paths.
    @inline(__always)
    static func name(in path: UnsafeRawBufferPointer) -> String? {
        // Nearly no other path begins with a dot.
        guard path.count >= prefix.count, path[1] == 0x2E, path.starts(with: prefix) else { return nil }
        return String(decoding: path.dropFirst(prefix.count), as: UTF8.self)
    }

    var path: String { String(decoding: Self.prefix, as: UTF8.self) + webhook.name }

    /// The bytes that a delivery may have: GitHub sends 25 MB at most.
    static let byteLimit = 26 << 20

    /// What its fields prove, once its body has come; throws the problem to respond with, before any of the body is read.
    ///
    /// - Parameter now: seconds since 1970.
    func proof(now: Int64) throws(ProblemDocument) -> WebhookProof {
        let proof = try WebhookProof(message.fields, signature, now: now)
        guard upstream.isJSON(message.fields) else { throw .webhookType(message.fields.text("content-type")) }
        if let length = message.body?.declaredLength, length > Self.byteLimit {
            throw .webhookTooLarge(limit: Self.byteLimit)
        }
        return proof
    }
}

/// What a delivery says, once it is known whose it is.
enum DeliveryContent: Sendable {
    /// It concerns none of the webhook's objects.
    case nothing(event: String?)
    case objects(PreparedDelivery)
}

extension IncomingDelivery {
    /// Where deliveries are examined: 25 MB take some time.
    private static let queue = DispatchQueue(label: "larder.webhooks", qos: .utility)

    /// Verifies a delivery and takes it apart, off the loop.
    func examine(_ body: [UInt8], _ proof: WebhookProof, _ store: ObjectStore) async throws(ProblemDocument)
        -> DeliveryContent
    {
        try await withCheckedContinuation { continuation in
            Self.queue.async {
                continuation.resume(returning: Result { () throws(ProblemDocument) in try read(body, proof, store) })
            }
        }.get()
    }

    private func read(_ body: [UInt8], _ proof: WebhookProof, _ store: ObjectStore) throws(ProblemDocument)
        -> DeliveryContent
    {
        guard proof.isMade(of: body, by: webhook.secret.all) else {
            throw .webhookUnsigned("\(signature.field) is not that of this body and the webhook's secret.")
        }
        guard let payload = JSONOutline(body) else {
            throw .webhookMalformed("The body is not JSON, or nested too deep.")
        }
        let fields = message.fields
        let event = signature.event(fields, payload)
        let shown = webhook.objects.filter { payload.value(at: $0.path).map { $0.kind != .null } ?? false }
        guard webhook.counts(event), !shown.isEmpty, let rule = webhook.rule else { return .nothing(event: event) }
        let id = signature.id(fields, payload).map { Array($0.utf8) } ?? Crypto.sha256([body])
        let names = [upstream.storeKey.rawValue, webhook.name, signature.rawValue].map { Array($0.utf8) + [0] }
        var delivery = Delivery(
            upstream: upstream.storeKey,
            path: path,
            id: Array(Crypto.sha256(names + [id]).prefix(16)),
            repeatable: signature.repeatable.seconds * 1_000_000,
            body: body,
            rule: rule
        )
        if let principal = webhook.principal, !signature.isDeletion(payload) {
            delivery.observer = .init(principal: principal, context: upstream.context.canonical(webhook.requestFields))
        }
        let prepared = store.prepare(delivery)
        guard !prepared.objects.isEmpty else {
            let places = shown.map { "\"\($0.path)\" (\($0.model))" }.joined(separator: ", ")
            let complaint = prepared.complaint.map { " \($0)" } ?? ""
            throw .webhookMalformed("There is no object with an identity at \(places).\(complaint)")
        }
        return .objects(prepared)
    }
}

extension Configuration.Webhook {
    /// The fields of the requests whose representation a payload has.
    fileprivate var requestFields: Fields {
        let fields = headers.compactMap { line -> Field? in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 ? Field(String(parts[0]), String(parts[1].drop { $0 == " " })) : nil
        }
        return Fields(fields)
    }
}
