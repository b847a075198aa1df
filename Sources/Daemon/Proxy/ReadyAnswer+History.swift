extension ReadyAnswer {
    /// Adds to its fields what changes from time to time: its age, and how it came to be served.
    func addHistory(to fields: inout Fields, as manner: Manner, isCollapsed: Bool, now: Int64) {
        fields.append("Age", String(max(0, policy.age(at: now))))
        let status = manner.cacheStatus(of: self, isCollapsed: isCollapsed, now: now)
        let upstreamStatus = fields.all("cache-status")
        fields.remove("cache-status")
        fields.lines.append(Field(name: Array("Cache-Status".utf8), value: status.appended(to: upstreamStatus)))
    }
}

extension Manner {
    /// The member of `Cache-Status` for an answer served in this manner.
    func cacheStatus(of ready: ReadyAnswer, isCollapsed: Bool, now: Int64) -> CacheStatus {
        cacheStatus(
            timeToLive: ready.policy.timeToLive(at: now),
            isComposed: ready.answer.form == .composed,
            isCollapsed: isCollapsed
        )
    }
}
