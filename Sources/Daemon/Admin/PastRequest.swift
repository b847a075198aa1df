import CachePolicy
import HTTPSemantics
import Proxy
import Store

/// `GET /requests/{id}`.
struct PastRequest: AdminBody {
    static let sentences = [
        "request": "As in `/requests`.",
        "document": "The stored response that it got, for `/documents/{id}`; absent if there is none.",
        "isCurrent": "Whether the document is that response still; else a newer one has taken its place.",
        "note": "Why there is no such document, or not the same any more.",
    ]
    var request: RequestsResponse.Request
    var document: Int64?
    var isCurrent: Bool
    var note: String?

    /// How long after a request its own response may count as received, in µs.
    private static let tolerance: Int64 = 2_000_000

    init(to request: AdminRequest, _ daemon: DaemonCore) async throws {
        let name = request.capture("id")
        guard let number = Int64(name), number > 0 else {
            throw ProblemDocument.badRequest("a request's id is a number, as /requests lists it; it was \"\(name)\"")
        }
        guard let served = daemon.requests.request(number) else {
            throw ProblemDocument.notFound(
                "there is no request \(number): Larder remembers the latest \(RequestLog.capacity), until it ends"
            )
        }
        self.request = .init(served)
        isCurrent = false
        if let reason = served.reasonNotStored {
            note = reason
            return
        }
        guard let key = served.key else {
            note = "It got no response that could be stored."
            return
        }
        let documents = try await daemon.store.documents(under: key)
        // 206 and 304 are made of a whole response.
        guard let row = documents.first(where: { $0.status == served.status || [206, 304].contains(served.status) })
        else {
            note =
                "The store has no such response: it was removed, replaced by one of another status, or is not written yet."
            return
        }
        document = row.id.rawValue
        let end = served.time + Int64(served.seconds * 1_000_000) + Self.tolerance
        isCurrent = row.end <= (served.outcome.isHit ? served.time : end)
        if !isCurrent {
            note = "This response was received, or validated, after the request; the one it got is not kept."
        }
    }
}

extension ServedRequest {
    /// Why the store cannot have its response; nil if it may.
    fileprivate var reasonNotStored: String? {
        if end == "broke-off" { return "Its response is incomplete, and was not stored." }
        switch outcome {
        case .hit, .stale, .composed, .revalidated, .offline, .staleIfError: return nil
        case .error where cacheStatus == nil: return "Its client left before the response began."
        case .error: return "Its response is a problem document of Larder's own, which is not stored."
        case .bypass: return "Its response was passed on, and not stored."
        case .miss:
            if let notStored { return "Its response was not stored: \(notStored.printable)." }
            // One that joined another's fetch does not learn how that ended.
            return cacheStatus.map { $0.isStored || $0.isCollapsed } == true ? nil : "Its response was not stored."
        }
    }
}
