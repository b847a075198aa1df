import CachePolicy
import HTTPSemantics

extension ReadyResponse {
    /// Adds the fields that say how old a response is and how it came to be served.
    ///
    /// - Parameter sent: the status that the client is given.
    func addHistory(to fields: inout Fields, as cacheUse: CacheUse, sent: Int, isCollapsed: Bool, now: Int64) {
        fields.append("Age", String(max(0, policy.age(at: now))))
        let status = cacheUse.cacheStatus(of: self, sent: sent, isCollapsed: isCollapsed, now: now)
        let upstreamStatus = fields.all("cache-status")
        fields.remove("cache-status")
        fields.lines.append(Field(name: Array("Cache-Status".utf8), value: status.appended(to: upstreamStatus)))
    }
}
