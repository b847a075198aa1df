import HTTPSemantics
import Proxy
import Settings
import Synchronization

/// One of the dashboard's files, which are part of the binary (`Dashboard/`).
///
/// None contains data: the script uses the endpoints below, and shows nothing before a login. So they are open to anyone who can
/// connect.
struct DashboardFile: Sendable {
    private let bytes: [UInt8]
    private let type: String
    private let entityTag: String

    static let page = DashboardFile(PackageResources.index_html, "text/html; charset=utf-8")
    static let style = DashboardFile(PackageResources.dashboard_css, "text/css; charset=utf-8")
    static let script = DashboardFile(PackageResources.dashboard_js, "text/javascript; charset=utf-8")

    /// Allows only the page's own files; the script may not make markup from text anywhere.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

    private init(_ bytes: [UInt8], _ type: String) {
        (self.bytes, self.type) = (bytes, type)
        let code = Crypto.authenticationCode(key: [], message: bytes).prefix(12)
        entityTag = "\"\(code.hexadecimal)\""
    }

    func response(to request: AdminRequest) -> AdminResponse {
        let known = request.fields.combined("if-none-match")?.contains(entityTag) == true
        var response = known ? AdminResponse(status: 304) : .text(bytes, type: type)
        // Browsers must revalidate: their copy may be of an earlier version.
        for (name, value) in [
            ("Cache-Control", "no-cache"), ("ETag", entityTag), ("Content-Security-Policy", Self.policy),
            ("Cross-Origin-Opener-Policy", "same-origin"),
        ] { response.fields.append(name, value) }
        return response
    }
}

/// `POST /login/codes`.
package struct LoginCodeResponse: AdminBody {
    static let sentences = [
        "code": "What `/login` takes for a session, once.", "seconds": "How long it is good for.",
        "url": "The dashboard's URL; absent where the admin side has no address that a browser can open.",
    ]
    package var code: String
    package var seconds: Int
    package var url: String?
}

/// `POST /login`.
struct LoginResponse: AdminBody {
    static let sentences = ["session": "What to send as `Authorization: Bearer`, until it ends."]
    var session: String
}

/// `DELETE /login`.
struct LogoutResponse: AdminBody {
    static let sentences = ["ended": "Always true."]
    var ended = true
}

extension AdminRoute {
    /// The dashboard: its files, its login, and the endpoints that only it uses.
    static let dashboard: [AdminRoute] = documented([
        "The dashboard for people. It holds no data before somebody logs in.": file("/", "text/html", .page),
        "The dashboard's style.": file("/dashboard.css", "text/css", .style),
        "The dashboard's script.": file("/dashboard.js", "text/javascript", .script),
        "A code for one login to the dashboard, as `larder dashboard` asks for it.":
            .json("POST /login/codes", status: 201) { _, daemon in
                let (code, seconds) = (daemon.logins.makeCode(), DashboardLogins.linkSeconds)
                return LoginCodeResponse(code: code, seconds: seconds, url: daemon.dashboardURL)
            },
        "Begins a session for a code or for the admin token.": .json(
            "POST /login",
            access: .open,
            body: Parameter.documented([
                "A code of `/login/codes`.": Parameter("code"), "The admin token, in its place.": Parameter("token"),
            ])
        ) { request, daemon in
            let texts = try request.texts(["code", "token"], advice: "code or token")
            switch (texts["code"], texts["token"]) {
            case (let code?, nil): return LoginResponse(session: try daemon.logins.redeem(code))
            case (nil, let token?): return LoginResponse(session: try daemon.logins.open(with: token))
            default: throw ProblemDocument.badRequest("give a code or the token, not both")
            }
        },
        "Ends the session that it is sent with; the admin token stays good.":
            .json("DELETE /login") { request, daemon in
                for field in request.fields.all("authorization") { daemon.logins.end(field) }
                return LogoutResponse()
            },
        "How many requests there were in the last hour, and how many of them were hits.":
            .json("GET /traffic") { _, daemon in TrafficResponse(daemon.traffic, version: daemon.version) },
    ])

    private static func file(_ path: String, _ type: String, _ file: DashboardFile) -> AdminRoute {
        AdminRoute("GET \(path)", access: .open, mediaType: type) { request, _ in file.response(to: request) }
    }
}

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
final class DashboardLogins: Sendable {
    static let linkSeconds = 120
    static let idle: Duration = .seconds(7 * 24 * 3600)
    /// The maximum number of links and of sessions; beyond it the oldest ones end.
    static let maximumLogins = 64

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

    init(token: AdminToken) { self.token = token }

    func makeCode(now: ContinuousClock.Instant = .now) -> String {
        let code = AdminToken.random()
        state.withLock { state in
            // Used ones are kept for a while, so that a second use is recognised.
            state.links.removeAll { $0.end + Self.idle < now }
            if state.links.count >= Self.maximumLogins { state.links.removeFirst() }
            state.links.append(Link(code: Array(code.utf8), end: now + .seconds(Self.linkSeconds)))
        }
        return code
    }

    func redeem(_ code: String, now: ContinuousClock.Instant = .now) throws(ProblemDocument) -> String {
        let again = "run `larder dashboard` for a new one"
        let given = Array(code.utf8)
        return try state.withLock { (state) throws(ProblemDocument) -> String in
            guard let index = state.links.firstIndex(where: { Crypto.areEqual($0.code, given) }) else {
                let what = "this login link is not known; Larder may have been restarted since"
                throw ProblemDocument(403, "\(what): \(again)")
            }
            if let session = state.links[index].session {
                state.sessions.removeAll { $0.key == session }
                let what = "this login link has been used already, and whoever used it is now logged out"
                throw ProblemDocument(410, "\(what): \(again)")
            }
            guard now < state.links[index].end else {
                let seconds = Self.linkSeconds
                throw ProblemDocument(410, "this login link has expired, it is good for \(seconds) seconds: \(again)")
            }
            let session = Self.open(&state.sessions, now: now)
            state.links[index].session = Array(session.utf8)
            return session
        }
    }

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

    /// Ends all sessions, and the links that were not used.
    func endAll() { state.withLock { $0 = ([], []) } }

    func end(_ field: some Collection<UInt8>) {
        guard let key = AdminToken.bearer(field).map({ Array($0) }) else { return }
        state.withLock { state in state.sessions.removeAll { Crypto.areEqual($0.key, key) } }
    }

    private static func open(_ sessions: inout [Session], now: ContinuousClock.Instant) -> String {
        let key = AdminToken.random()
        if sessions.count >= maximumLogins,
            let oldest = sessions.indices.min(by: { sessions[$0].used < sessions[$1].used })
        {
            sessions.remove(at: oldest)
        }
        sessions.append(Session(key: Array(key.utf8), used: now))
        return key
    }
}
