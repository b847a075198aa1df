import CachePolicy
import HTTPSemantics
import HTTPServer
import Upstream

extension Demand {
    /// Makes the fields of a relayed response the client's: links lead back here, and `Cache-Status` says what happened on the way.
    func decorate(_ fields: inout Fields, with status: CacheStatus) {
        upstream.links(for: base).rewrite(&fields)
        fields.remove("alt-svc")
        Via.append(to: &fields)
        if !fields.contains("age") { fields.append("Age", "0") }
        fields.vary(by: upstream.variesBy)
        let known = fields.all("cache-status")
        fields.remove("cache-status")
        fields.lines.append(Field(name: Array("Cache-Status".utf8), value: status.appended(to: known)))
        upstream.addCORS(to: &fields, for: request.fields)
    }

    /// The fields of an interim response as its client gets them.
    func interim(_ fields: Fields) -> Fields {
        var fields = fields
        upstream.links(for: base).rewrite(&fields)
        fields.remove("alt-svc")
        return fields
    }

    /// What `Cache-Status` says when the upstream gave no response.
    func failed(_ error: UpstreamError) -> CacheStatus {
        var status = CacheStatus.forwarded(reason)
        status.detail = error.label
        return status
    }

    /// Whether the client has the representation that the upstream sends already.
    func hasCurrent(status: Int, fields: Fields, now: Int64) -> Bool {
        let conditions = Preconditions(fields: request.fields, now: now)
        guard !conditions.isEmpty else { return false }
        let sent = Preconditions.Stored(status: status, fields: fields, now: now)
        return conditions.evaluateForCache(method: request.method, against: sent) == .notModified
    }
}
