import HTTPSemantics
import Proxy

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
        entityTag = "\"" + code.map { $0.hexadecimal(width: 2) }.joined() + "\""
    }

    /// The file, or 304 if the browser has it.
    func response(to request: AdminRequest) -> AdminResponse {
        let known = request.fields.combined("if-none-match")?.contains(entityTag) == true
        var response = known ? AdminResponse(status: 304) : .text(bytes, type: type)
        // Browsers must revalidate: their copy may be of an earlier version.
        for (name, value) in [
            ("Cache-Control", "no-cache"), ("ETag", entityTag), ("Content-Security-Policy", Self.policy),
            ("Cross-Origin-Opener-Policy", "same-origin"),
        ] {
            response.fields.append(name, value)
        }
        return response
    }
}

/// `POST /login/codes`.
package struct LoginCodeResponse: AdminBody {
    package static let sentences = [
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
    static let dashboard: [AdminRoute] = [
        file("/", "The dashboard for people. It holds no data before somebody logs in.", "text/html", .page),
        file("/dashboard.css", "The dashboard's style.", "text/css", .style),
        file("/dashboard.js", "The dashboard's script.", "text/javascript", .script),
        .json(
            "POST /login/codes",
            "A code for one login to the dashboard, as `larder dashboard` asks for it.",
            status: 201
        ) { _, daemon in
            LoginCodeResponse(
                code: daemon.logins.makeCode(),
                seconds: DashboardLogins.linkSeconds,
                url: daemon.dashboardURL
            )
        },
        .json(
            "POST /login",
            "Begins a session for a code or for the admin token.",
            access: .open,
            body: [
                Parameter("code", "A code of `/login/codes`."),
                Parameter("token", "The admin token, in its place."),
            ]
        ) { request, daemon in
            let texts = try request.texts(["code", "token"], advice: "code or token")
            switch (texts["code"], texts["token"]) {
            case (let code?, nil): return LoginResponse(session: try daemon.logins.redeem(code))
            case (nil, let token?): return LoginResponse(session: try daemon.logins.open(with: token))
            default: throw ProblemDocument.badRequest("give a code or the token, not both")
            }
        },
        .json("DELETE /login", "Ends the session that it is sent with; the admin token stays good.") {
            request,
            daemon in
            for field in request.fields.all("authorization") { daemon.logins.end(field) }
            return LogoutResponse()
        },
        .json("GET /traffic", "How many requests there were in the last hour, and how many of them were hits.") {
            _,
            daemon in
            TrafficResponse(daemon.traffic, version: daemon.version)
        },
    ]

    private static func file(_ path: String, _ sentence: String, _ type: String, _ file: DashboardFile) -> AdminRoute {
        AdminRoute("GET \(path)", sentence, access: .open, mediaType: type) { request, _ in file.response(to: request) }
    }
}
