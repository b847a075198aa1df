import CachePolicy
import HTTPSemantics
import Logging
package import Store

/// What the daemon decides and stores, line by line at the level debug; hits from memory on a worker's loop are not logged.
extension Logger {
    func decided(_ plan: @autoclosure () -> Plan, on request: ProxyRequest, at now: Int64) {
        guard logLevel <= .debug else { return }
        let plan = plan()
        debug(
            "decided",
            metadata: [
                "url": "\(request.shownURL)", "decision": "\(plan.action)", "reason": "\(plan.sentence)",
                "cache-status": "\(plan.cacheStatus(now: now))",
            ]
        )
    }

    func notStored(_ reason: NotStoredReason, _ request: ProxyRequest) {
        let (rule, text) = (reason.rule, reason.text)
        debug("not stored", metadata: ["url": "\(request.shownURL)", "rule": "\(rule)", "reason": "\(text)"])
    }

    package func committed(_ report: CommitReport) {
        guard logLevel <= .debug else { return }
        let jobs = report.jobs.map { "\($0.count) \($0.kind)" }.joined(separator: ", ")
        let milliseconds = (report.seconds * 1_000_000).rounded() / 1_000
        debug("committed", metadata: ["jobs": "\(jobs)", "bytes": "\(report.bytes)", "ms": "\(milliseconds)"])
    }
}
