import CachePolicy
import HTTPSemantics
import Logging
package import Store

/// What the daemon decides and stores, line by line at the level debug; hits from memory on a worker's loop are not logged.
extension Logger {
    /// Logs what happens to a request, and why.
    func decided(_ plan: Plan, on request: ProxyRequest, at now: Int64) {
        guard logLevel <= .debug else { return }
        var metadata: Metadata = ["url": "\(request.key.url)", "reason": "\(plan.sentence)"]
        switch plan {
        case .serve(let ready, let use, _), .serveAndRefresh(let ready, let use, _, _):
            let status = use.cacheStatus(of: ready, sent: ready.response.status, isCollapsed: false, now: now)
            metadata["decision"] = "serve"
            metadata["as"] = "\(status.text)"
        case .ask(let inquiry):
            metadata["decision"] = "ask"
            metadata["fwd"] = "\(inquiry.request.reason.forward.rawValue)"
        case .write: metadata["decision"] = "write"
        case .refuse, .refuseAndExpire: metadata["decision"] = "refuse"
        }
        debug("decided", metadata: metadata)
    }

    /// Logs why a response is not stored.
    func notStored(_ reason: NotStoredReason, _ request: ProxyRequest) {
        debug(
            "not stored",
            metadata: ["url": "\(request.key.url)", "rule": "\(reason.rule)", "reason": "\(reason.text)"]
        )
    }

    /// Logs a commit of the store.
    package func committed(_ report: CommitReport) {
        guard logLevel <= .debug else { return }
        let jobs = report.jobs.map { "\($0.count) \($0.kind)" }.joined(separator: ", ")
        let milliseconds = (report.seconds * 1_000_000).rounded() / 1_000
        debug("committed", metadata: ["jobs": "\(jobs)", "bytes": "\(report.bytes)", "ms": "\(milliseconds)"])
    }
}
