import Basics
import CachePolicy
import HTTPSemantics
package import Mapping
import Proxy
import Settings
package import Store

// The admin side's responses about the store, written by the daemon and read by the commands. `why` and `explain` have files of
// their own; the responses of other groups stand with their routes.

/// The body of a response, with a sentence for each member that needs one; members keep their meaning for ever.
protocol AdminBody: Codable, Sendable {
    static var sentences: [String: String] { get }
}

extension AdminBody {
    static var sentences: [String: String] { [:] }
}

/// `GET /count`, and the progress of a clean.
extension StoreCount: AdminBody {
    static let sentences = [
        "bytes": "Bytes in use in the store's file.", "models": "The number of objects of each model.",
    ]
}

/// `POST /clean`: what was removed, or would be.
package struct CleanResponse: AdminBody {
    static let sentences = [
        "bytes": "The size of what was removed, without the overhead of the file.",
        "models": "The number of objects of each model.",
        "orphaned": "Other objects that no document shows any more. They stay stored until space is needed.",
        "dryRun": "True if nothing was removed.", "url": "How the `url` of the request was read.",
        "fleet": "The upstreams for which the other machines of the fleet are asked to do the same.",
        "disk":
            "`freed`, or `pending`: another program reads the store, and the space is freed when that program is done. Absent after a dry run.",
    ]
    package var objects: Int
    package var documents: Int
    package var bytes: Int64
    package var models: [String: Int]
    package var orphaned: Int
    var dryRun: Bool?
    package var disk: String?
    package var url: ReadURL?
    package var fleet: [String]?

    init(_ result: CleanResult, isDryRun: Bool) {
        let count = result.removed
        (objects, documents, bytes, models) = (count.objects, count.documents, count.bytes, count.models)
        orphaned = result.unshown
        dryRun = isDryRun ? true : nil
        disk = isDryRun ? nil : result.erasure == .pending ? "pending" : "freed"
    }
}

/// `GET /objects/{model}` and `GET /objects/{model}/{id}`.
package struct ObjectsResponse: AdminBody {
    static let sentences = nextSentence.merging([
        "examined": "In a list: how many objects were looked at for this page."
    ]) { $1 }
    package var objects: [Object]
    package var next: String?
    var examined: Int?

    package struct Object: AdminBody {
        static let sentences = objectSentences.merging([
            "unknown": "The time of a write whose effect on the object is not known, until it is observed again.",
            "object": "Its newest known members.",
            "synthetic": "In the mapped view: JSON pointers of what the upstream did not send.",
            "unconverted": "In the mapped view: JSON pointers of what its conversion does not accept.",
            "warnings": "In the mapped view: what did not fit the model.",
        ]) { $1 }
        package var upstream: String
        package var principal: String
        package var context: String
        var model: String
        package var id: String
        package var observed: String
        package var unknown: String?
        package var object: RawJSON
        var synthetic: [String]?
        var unconverted: [String]?
        var warnings: [MappingWarningResponse]?

        init(_ row: ObjectRow) {
            (upstream, principal, context) = (row.upstream, row.principal, row.context)
            (model, id) = (row.model, row.identity)
            observed = StoreTime.text(row.observed)
            unknown = row.unknownSince.map(StoreTime.text)
            object = RawJSON(row.mapped?.body ?? row.json)
            synthetic = row.mapped?.synthetic
            unconverted = row.mapped?.unconverted
            warnings = row.mapped?.warnings.map(MappingWarningResponse.init)
        }
    }
}

package struct MappingWarningResponse: AdminBody {
    static let sentences = [
        "pointer": "The place in the body (RFC 6901).", "value": "The value there that its conversion does not accept.",
    ]
    var kind: String
    var message: String
    var pointer: String?
    var model: String?
    var value: RawJSON?

    package init(_ warning: MappingWarning) {
        (kind, message, pointer, model) = (warning.kind.rawValue, warning.message, warning.pointer, warning.model)
        value = warning.value.map { RawJSON($0) }
    }
}

/// `GET /documents`.
package struct DocumentsResponse: AdminBody {
    static let sentences = nextSentence.merging(["url": "How the `url` of the request was read."]) { $1 }
    package var documents: [Document]
    package var next: String?
    package var url: ReadURL?

    package struct Document: AdminBody {
        static let sentences = documentSentences.merging(["used": "When it was last used (RFC 3339)."]) { $1 }
        var id: Int64
        package var upstream: String
        package var principal: String
        var context: String
        package var url: String
        package var status: Int
        package var objects: Int
        package var bytes: Int64
        package var received: String
        var used: String

        init(_ row: DocumentRow) {
            id = row.id.rawValue
            (upstream, principal, context) = (row.upstream, row.principal, row.context)
            (url, status, objects, bytes) = (row.url, row.status, row.objects, row.bytes)
            (received, used) = (StoreTime.text(row.end), StoreTime.text(row.used))
        }
    }
}

/// `GET /documents/{id}`: a stored response in one view.
struct DocumentResponse: AdminBody {
    static let sentences = documentSentences.merging([
        "id": "Its number.", "used": "When it was last used (RFC 3339).",
        "form":
            "How a request gets it: `received`; `composed`: with newer values of its objects; `outdated`: newer values are known, but cannot be put in, and the next request is a miss.",
        "reason": "Why it is outdated.", "view": "`wire`, `mapped` or `raw`.",
        "notice": "Why the view is another one than was asked for.", "fields": "The response's fields in this view.",
        "mediaType": "The value of Content-Type; absent where there is none.",
        "bytes": "The length of the body in this view.",
        "text":
            "The body as text, U+FFFD in the place of bytes that are not UTF-8; absent where it is neither JSON nor text.",
        "shown": "How many bytes of the body the text stands for: not more than `limit`.",
        "objects": "The objects in it, in their order in the body; the first 200.",
        "objectCount": "How many objects it shows.", "age": "Seconds.", "timeToLive": "Seconds; negative once stale.",
        "freshness": "The arithmetic of RFC 9111 §4.2.",
    ]) { $1 }
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
        var name: String
        var value: String
    }

    struct ObjectName: AdminBody {
        var model: String
        var id: String
    }

    /// - Parameters:
    ///   - now: in seconds of the store's clock.
    ///   - limit: the maximum number of body bytes to show as text.
    init(_ shown: DocumentView, view: String, limit: Int, now: Int64) {
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
        // The leading ones of its first byte say how many it has.
        let length = Swift.min(4, Swift.max(1, (~self[start]).leadingZeroBitCount))
        return endIndex - start < length ? self[..<start] : self
    }
}

extension DocumentResponse {
    static let parameters: [AdminRoute.Parameter] = AdminRoute.Parameter.documented([
        "`wire`: as the upstream's clients get it, the default; `mapped`: in the form of its models; `raw`: the bytes as received.":
            .init("view"),
        "How many bytes of the body to send, 0 to \(maximum); 65536 by default.": .init("limit", .integer),
    ])
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
        url = daemon.clientURL(ofURL: url, upstream: upstream)
    }
}

/// `GET /warnings`.
package struct WarningsResponse: AdminBody {
    static let sentences = nextSentence
    package var warnings: [Warning]
    package var next: String?

    package struct Warning: AdminBody {
        static let sentences = [
            "kind": "What kind of thing, in a word.", "subject": "A model, a route or an upstream.",
            "message": "What did not fit.", "url": "Path and query of the response in which it was last seen.",
            "pointer": "The place in that response (RFC 6901).", "count": "How often it was seen.",
            "first": "When it was first seen (RFC 3339).", "last": "When it was last seen (RFC 3339).",
            "remedy": "What ends it; absent where nothing is to be done.",
        ]
        package var kind: String
        package var subject: String
        package var message: String
        package var url: String
        package var pointer: String
        package var count: Int
        package var first: String
        package var last: String
        package var remedy: WarningRemedy?

        init(_ warning: StoredWarning, local: (_ model: String) -> [String]) {
            remedy = WarningRemedy(kind: warning.kind, subject: warning.subject, local: local)
            (kind, subject, message) = (warning.kind, warning.subject, warning.message)
            (url, pointer, count) = (warning.url, warning.pointer, warning.count)
            (first, last) = (StoreTime.text(warning.first), StoreTime.text(warning.last))
        }
    }
}

/// The documentation of `next` in every list with pages: a text, which clients return and do not compute with.
let nextSentence = ["next": "What to give as `after` for the next page; absent on the last."]

let ownerSentences = [
    "upstream": "The upstream's name.", "principal": "The principal's label.",
    "context": "The representation that was asked for.",
]
let objectSentences = ownerSentences.merging([
    "model": "The model's name.", "id": "The identity.", "observed": "When it was last observed (RFC 3339).",
]) { $1 }
let documentSentences = ownerSentences.merging([
    "id": "Its number, for `/documents/{id}`.", "url": "Path and query, as clients send them.",
    "status": "The status code.", "objects": "How many objects it shows.", "bytes": "The length of the body received.",
    "received": "When it was received (RFC 3339).",
]) { $1 }

extension Page {
    var cursor: String? { next.map { String($0) } }
}

/// Times of the store's clock as text (RFC 3339, UTC, milliseconds).
enum StoreTime {
    /// `2026-11-21T09:52:33.250Z` for microseconds since 1970.
    static func text(_ microseconds: Int64) -> String { Timestamp.text(milliseconds: max(0, microseconds) / 1000) }
}

/// The remedy for a warning: a sentence, and lines for the config if there are any.
package struct WarningRemedy: AdminBody, Equatable {
    static let sentences = [
        "sentence": "What to do.",
        "lines": "What to write into the config, as YAML; `…` stands for what only you know.",
    ]
    package var sentence: String
    package var lines: String?

    /// Nil if nothing needs to be done: the upstream sends values that do not fit, and they are stored as they came.
    ///
    /// - Parameters:
    ///   - subject: a model, or a model, a dot and a property.
    ///   - local: the members that the model currently declares as local.
    init?(kind: String, subject: String, local: (_ model: String) -> [String]) {
        guard let kind = MappingWarning.Kind(rawValue: kind) else { return nil }
        let parts = subject.split(separator: ".", maxSplits: 1).map(String.init)
        let (model, property) = (parts.first ?? "…", parts.count == 2 ? parts[1] : nil)
        func ofModel(_ line: String) -> String { "models:\n  \(model):\n    \(line)" }
        func ofProperty(_ keys: String) -> String {
            ofModel("properties:\n      \(property ?? "…"): { from: …, \(keys) }")
        }
        func ofRoute(_ keys: String) -> String { "routes:\n  - { path: \"…\", \(keys) }" }
        let remedy: (sentence: String, lines: String)? =
            switch kind {
            case .flipFlop, .disagreement:
                property.map { property in
                    let members = local(model).filter { $0 != property } + [property]
                    return (
                        "Let each response show its own value: it no longer moves between responses.",
                        ofModel("local: [\(members.joined(separator: ", "))]")
                    )
                }
            case .identityMissing, .identityUnusable, .identityRepeated:
                ("Name the member that identifies \(model), or write [] if it has none.", ofModel("identity: …"))
            case .unknownModel:
                ("Declare the model, or correct its name where it is used.", "models:\n  \(model): { identity: id }")
            case .objectForList:
                (
                    "If the response is one object, declare one object.",
                    property == nil ? ofRoute("model: \(model)") : ofProperty("model: …")
                )
            case .arrayForObject:
                (
                    "If the response is a list, declare a list.",
                    property == nil ? ofRoute("model: [\(model)]") : ofProperty("models: …")
                )
            case .envelopeMissing, .notAnObject, .nothingMapped:
                (
                    "Say which member of the body contains the objects, or give the route another model.",
                    ofRoute("model: \(model), root: …")
                )
            case .notJSON:
                (
                    "Restrict the route to JSON; other bodies are then stored as they are.",
                    ofRoute("model: \(model), content_type: application/json")
                )
            case .tooManyObjects:
                ("Allow more objects in one response, if you have the memory.", "limits:\n  objects: …")
            case .requiredMissing: ("Do not require the property.", ofProperty("required: false"))
            case .unexpectedNull: ("Allow null.", ofProperty("null: true"))
            case .quarantined:
                (
                    "Widen the check that the value fails: type, range, length, pattern, one_of or null.",
                    ofProperty("type: …")
                )
            case .conversionFailed: ("Add the value to the conversion, or remove the conversion.", ofProperty("as: …"))
            case .coerced:
                ("Nothing is lost. To see the value unconverted, turn coercion off.", ofProperty("coerce: false"))
            case .pathBlocked:
                (
                    "Correct the key path: it leads through a value that is not an object.",
                    ofModel("properties:\n      \(property ?? "…"): { from: … }")
                )
            case .noChoice:
                (
                    "End the cluster with a model that has no condition; it then applies to all other objects.",
                    ofModel("cluster: [ …, { model: … } ]")
                )
            case .tooDeep, .reservedText, .keyCollision, .completionIgnored, .undeclaredMember, .notWritten,
                .notRecomposed:
                nil
            }
        guard let remedy else { return nil }
        (sentence, lines) = remedy
    }
}
