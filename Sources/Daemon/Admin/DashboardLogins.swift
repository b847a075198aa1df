import HTTPSemantics
import Proxy
import Synchronization

/// The browsers that are logged in, and the links by which they do so.
///
/// Any thread. All of it is in memory: a restart ends every session.
///
/// Why a session in `sessionStorage`, sent as a bearer, and no cookie: cookies know no ports. A cookie for 127.0.0.1 would go to
/// every server on this machine that the browser visits, those of other users among them. `sessionStorage` belongs to one tab
/// and one origin, port included, and no page of another origin can make the browser send what is in it. If another user's
/// program takes the port after the daemon has ended, it can read what the tab has kept, but that session ended with the
/// daemon. For this reason the page never keeps the admin token itself.
///
/// Why links work once and briefly: other users may see a browser's command line. Who uses a link a second time ends the
/// session that it gave to the first (as RFC 6749 §4.1.2 has it for its codes), so that a stolen link does not go unnoticed.
package final class DashboardLogins: Sendable {
    /// How long a link is valid, in seconds.
    static let linkSeconds = 120
    /// A session ends after being unused for this long.
    static let idle: Duration = .seconds(7 * 24 * 3600)
    /// The maximum number of links and of sessions; beyond it the oldest ones end.
    static let limit = 64

    private struct Link {
        let code: [UInt8]
        let end: ContinuousClock.Instant
        /// The session it gave; nil until it is used.
        var session: [UInt8]?
    }

    private struct Session {
        let key: [UInt8]
        var used: ContinuousClock.Instant
    }

    private let token: AdminToken
    private let state = Mutex<(links: [Link], sessions: [Session])>(([], []))

    package init(token: AdminToken) {
        self.token = token
    }

    /// A code for one login.
    func makeCode(now: ContinuousClock.Instant = .now) -> String {
        let code = AdminToken.random()
        state.withLock { state in
            // Used ones are kept for a while, so that a second use is recognised.
            state.links.removeAll { $0.end + Self.idle < now }
            if state.links.count >= Self.limit { state.links.removeFirst() }
            state.links.append(Link(code: Array(code.utf8), end: now + .seconds(Self.linkSeconds)))
        }
        return code
    }

    /// A session for the code of a link.
    func redeem(_ code: String, now: ContinuousClock.Instant = .now) throws(ProblemDocument) -> String {
        let again = "run `larder dashboard` for a new one"
        let given = Array(code.utf8)
        let outcome: Result<String, ProblemDocument> = state.withLock { state in
            guard let index = state.links.firstIndex(where: { Crypto.areEqual($0.code, given) }) else {
                return .failure(
                    ProblemDocument(403, "this login link is not known; Larder may have been restarted since: \(again)")
                )
            }
            if let session = state.links[index].session {
                state.sessions.removeAll { $0.key == session }
                return .failure(
                    ProblemDocument(
                        410,
                        "this login link has been used already, and whoever used it is now logged out: \(again)"
                    )
                )
            }
            guard now < state.links[index].end else {
                let seconds = Self.linkSeconds
                return .failure(
                    ProblemDocument(410, "this login link has expired, it is good for \(seconds) seconds: \(again)")
                )
            }
            let session = Self.open(&state.sessions, now: now)
            state.links[index].session = Array(session.utf8)
            return .success(session)
        }
        return try outcome.get()
    }

    /// A session for the admin token.
    func open(with token: String, now: ContinuousClock.Instant = .now) throws(ProblemDocument) -> String {
        guard self.token.matches(token.utf8) else {
            throw ProblemDocument(
                403,
                "this is not the token of this daemon: use the content of \(AdminToken.fileName) beside its store, or run `larder dashboard`"
            )
        }
        return state.withLock { Self.open(&$0.sessions, now: now) }
    }

    /// Whether the value of an `Authorization` field contains a session.
    func authorizes(_ field: some Collection<UInt8>, now: ContinuousClock.Instant = .now) -> Bool {
        guard let key = AdminToken.bearer(field).map({ Array($0) }) else { return false }
        return state.withLock { state in
            state.sessions.removeAll { $0.used + Self.idle < now }
            guard let index = state.sessions.firstIndex(where: { Crypto.areEqual($0.key, key) }) else { return false }
            state.sessions[index].used = now
            return true
        }
    }

    /// Ends the session in the value of an `Authorization` field.
    func end(_ field: some Collection<UInt8>) {
        guard let key = AdminToken.bearer(field).map({ Array($0) }) else { return }
        state.withLock { state in state.sessions.removeAll { Crypto.areEqual($0.key, key) } }
    }

    private static func open(_ sessions: inout [Session], now: ContinuousClock.Instant) -> String {
        let key = AdminToken.random()
        if sessions.count >= limit, let oldest = sessions.indices.min(by: { sessions[$0].used < sessions[$1].used }) {
            sessions.remove(at: oldest)
        }
        sessions.append(Session(key: Array(key.utf8), used: now))
        return key
    }
}
