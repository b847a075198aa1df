import CachePolicy
import HTTPSemantics
import Mapping
import Proxy
import Store

/// `GET /documents/{id}`: a stored response in one view.
struct DocumentResponse: AdminBody {
    static let sentences = [
        "id": "Its number.", "upstream": "The upstream's name.", "principal": "The principal's label.",
        "context": "The representation that was asked for.", "url": "Path and query, as sent upstream.",
        "status": "The status code.", "received": "When it was received (RFC 3339).",
        "used": "When it was last used (RFC 3339).",
        "form":
            "How a request gets it: `received`; `composed`: with newer values of its objects; `outdated`: newer values are known that it cannot show, and the next request is a miss.",
        "reason": "Why it is outdated.", "view": "`wire`, `mapped` or `raw`.",
        "notice": "Why the view is another one than was asked for.",
        "fields": "The response's fields in this view.",
        "mediaType": "The value of Content-Type; absent where there is none.",
        "bytes": "The length of the body in this view.",
        "text":
            "The body as text, U+FFFD in the place of bytes that are not UTF-8; absent where it is neither JSON nor text.",
        "shown": "How many bytes of the body the text stands for: not more than `limit`.",
        "objects": "The objects in it, in their order in the body; the first 200.",
        "objectCount": "How many objects it shows.", "age": "Seconds.",
        "timeToLive": "Seconds; negative once stale.",
        "freshness": "The arithmetic of RFC 9111 §4.2.",
    ]
    var id: Int64
    var upstream: String
    var principal: String
    var context: String
    var url: String
    var status: Int
    var received: String
    var used: String
    var form: String
    var reason: String?
    var view: String
    var notice: String?
    var fields: [FieldLine]
    var mediaType: String?
    var bytes: Int
    var text: String?
    var shown: Int
    var objects: [ObjectName]
    var objectCount: Int
    var age: Int64?
    var timeToLive: Int64?
    var freshness: Explanation.Freshness?

    struct FieldLine: AdminBody {
        static let sentences: [String: String] = [:]
        var name: String
        var value: String
    }

    struct ObjectName: AdminBody {
        static let sentences: [String: String] = [:]
        var model: String
        var id: String
    }

    /// - Parameters:
    ///   - now: in seconds of the store's clock.
    ///   - limit: the maximum number of body bytes to show as text.
    init(_ shown: ShownDocument, view: String, limit: Int, now: Int64) {
        let (row, stored) = (shown.document.row, shown.document.stored)
        (id, upstream, principal, context) = (row.id.rawValue, row.upstream, row.principal, row.context)
        (url, status, objectCount) = (row.url, row.status, row.objects)
        (received, used) = (StoreTime.text(row.end), StoreTime.text(row.used))
        switch stored.form {
        case .asReceived: form = "received"
        case .composed: form = "composed"
        case .outdated(let why): (form, reason) = ("outdated", why)
        }
        self.view = view
        notice = shown.notice
        fields = shown.fields.lines.map {
            FieldLine(name: String(decoding: $0.name, as: UTF8.self), value: String(decoding: $0.value, as: UTF8.self))
        }
        mediaType = shown.fields.text("content-type")
        bytes = shown.body.count
        let part = shown.body.prefix(limit).droppingBrokenEnd(isCut: shown.body.count > limit)
        if Self.isText(part, mediaType) {
            (text, self.shown) = (String(decoding: part, as: UTF8.self), part.count)
        } else {
            self.shown = 0
        }
        objects = shown.document.objects.map { ObjectName(model: $0.model, id: $0.identity) }
        if let ready = shown.ready {
            (age, timeToLive) = (ready.policy.age(at: now), ready.policy.timeToLive(at: now))
            freshness = ready.freshness(now: now)
        }
    }

    private static func isText(_ bytes: ArraySlice<UInt8>, _ mediaType: String?) -> Bool {
        let type = mediaType?.prefix { $0 != ";" }.lowercased() ?? ""
        if type.hasPrefix("text/") || type.hasSuffix("json") || type.hasSuffix("xml") { return true }
        return String(validating: bytes, as: UTF8.self) != nil && !bytes.contains(0)
    }
}

extension ArraySlice<UInt8> {
    /// Drops the beginning of a last character that was cut off.
    fileprivate func droppingBrokenEnd(isCut: Bool) -> Self {
        guard isCut, let start = suffix(4).lastIndex(where: { $0 & 0xC0 != 0x80 }) else { return self }
        let length =
            switch self[start] {
            case 0xF0...: 4
            case 0xE0...: 3
            case 0xC0...: 2
            default: 1
            }
        return endIndex - start < length ? self[..<start] : self
    }
}

extension DocumentResponse {
    static let parameters: [AdminRoute.Parameter] = [
        .init(
            "view",
            "`wire`: as the upstream's clients get it, the default; `mapped`: in the form of its models; `raw`: the bytes as received."
        ),
        .init("limit", "How many bytes of the body to send, 0 to \(maximum); 65536 by default.", .integer),
    ]
    private static let maximum = 64 << 20

    init(to request: AdminRequest, _ daemon: DaemonCore) async throws {
        let name = request.capture("id")
        guard let number = Int64(name), number > 0 else {
            throw ProblemDocument.badRequest("a document's id is a number, as /documents lists it; it was \"\(name)\"")
        }
        let view = try request.choice("view", of: ["wire": View.wire, "mapped": .mapped, "raw": .raw]) ?? .wire
        let limit = try request.integer("limit", in: 0...Self.maximum) ?? 64 << 10
        guard let shown = try await daemon.inspect(DocumentID(rawValue: number), in: view) else {
            throw ProblemDocument.notFound(
                "there is no document \(number): it was replaced by a newer response, evicted or cleaned"
            )
        }
        let shownView = shown.ready == nil ? "raw" : request.value("view") ?? "wire"
        self.init(shown, view: shownView, limit: limit, now: daemon.store.clock.seconds)
    }
}
