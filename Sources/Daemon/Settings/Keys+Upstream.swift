import CachePolicy
import HTTPSemantics
package import Mapping
import Yams

extension UpstreamDraft: ConfigSection {
    static let keys: [ConfigKey<UpstreamDraft>] = documented([
        "The origin, and the base path if there is one. No user name, query or fragment.":
            .parsed(
                "url",
                wanted: "a URL",
                example: "https://api.github.com",
                isRequired: true,
                comparing: ConfigChange.comparison(of: \.settings.url, .text)
            ) { text, draft in
                draft.settings.url = try UpstreamURL(text)
            },
        "The path under which programs reach it. Several upstreams on one address need one each.":
            .parsed(
                "prefix",
                wanted: "a path such as /github",
                example: "/github",
                comparing: ConfigChange.comparison(of: \.settings.prefix, .text)
            ) { text, draft in
                // Stays false if the next line throws.
                draft.hasValidPrefix = false
                draft.settings.prefix = try PathPrefix.read(text)
                draft.hasValidPrefix = true
            },
        """
        Further paths for programs that expect the API elsewhere, such as at an Enterprise server's: each path, below the \
        prefix, with the one that it stands for. A path below it stands for the one below that.
        """: .aliases,
        "Addresses of its own, in the forms of \"listen\" above.":
            .addresses("listen", \.settings.listen, example: "127.0.0.1:8790"),
        """
        A credential that Larder adds to requests, for programs that have none of their own. Everyone who can connect to \
        the upstream's addresses uses it.
        """: .credential,
        """
        The header fields and query parameters that decide whose data a response is. "auto": those whose names look like a \
        credential or an identity. "+NAME" adds a field, "+?NAME" a query parameter; "-NAME" removes one. "all": every \
        field that is not known to be harmless. Plain names replace all of that. A client never sees what was fetched \
        with other values, and the values are never stored. See docs/http-reference.md#principal.
        """: .texts("principal", \.settings.principal, check: PrincipalWords.complaint) { words in
            PrincipalWords.contradiction(in: words) ?? PrincipalWords.vain(in: words)
        },
        """
        Header fields that select another representation of the same object, such as its language. "*" stands for \
        any text. The fields that Vary names count, too.
        """: .texts("context", \.settings.context, check: FieldName.patternComplaint),
        """
        Whether a response stored for one principal may become another's, for clients whose tokens change. computed: where \
        nothing is stored for a principal, its request carries the entity tag that the upstream would give it for the stored \
        bytes, made by the recipe in "etag". Only if the upstream says with a 304 and that very tag that they are current for this \
        principal, it gets them. etag: the same with the stored entity tag itself, among the clients of one address in "listen", \
        for upstreams whose tags are those of the content, whoever asks. See docs/quota.md.
        """: .choice("validate_across", \.settings.validateAcross),
        "How the upstream makes its entity tags: the recipe for validate_across.":
            .section("etag", \.settings.etag),
        """
        Follow the rules of a cache that many people share: s-maxage counts, private forbids storing, and a response to a \
        request with Authorization, or with Larder's own credential, is stored only if it says public, must-revalidate or \
        s-maxage. It is then served to all clients, whatever their Authorization.
        """: .boolean("shared", \.settings.shared),
        "Response fields that replace Cache-Control, in order of preference (RFC 9213).":
            .texts("targets", \.settings.targets, check: FieldName.complaint),
        "What happens to Set-Cookie in stored responses: drop or replay.": .choice("cookies", \.settings.cookies),
        "Origins of web pages that may use Larder. All others are refused.":
            .texts("cors", \.settings.cors, example: "[\"http://localhost:3000\"]", check: WebOrigin.complaint),
        """
        The Origin field that the upstream gets: drop removes it, pass keeps the client's, and an origin such as \
        https://tracker.example is sent with every request, for servers that refuse writes without a known one.
        """: .origin,
        """
        Rewrite the upstream's links in JSON so that they lead to Larder, for clients that follow them: absolute URLs, and \
        paths in members that are links by their names (next, href, html_url); also in header fields such as Next-Page. \
        Location and Link are rewritten always. Stored responses stay as received.
        """: .boolean("rewrite_links", \.settings.rewriteLinks),
        """
        Further host names under which programs reach it. The listen address and localhost are always allowed. https:// \
        before a name says that a proxy in front of Larder serves it by HTTPS; links then lead there.
        """: .texts("hosts", \.settings.hosts, example: "[larder.internal]", check: HostName.complaint),
        "Certificate authorities (PEM) to trust in place of the system's.":
            .file("ca_file", \.settings.caFile, example: "/etc/ssl/company.pem"),
        """
        The proxy on the way to the upstream: a URL (http, https, socks4a, socks5, socks5h), none, or environment \
        for http_proxy, https_proxy and no_proxy.
        """: .proxy,
        """
        Use HTTP/2 if the upstream offers it. libcurl does not tell a whole response in HTTP/2 from a cut one: only those with a \
        length or a content coding are stored, and the others end like cut ones.
        """: .boolean("http2", \.settings.http2),
        """
        The longest freshness to assume if the upstream says nothing about it: a tenth of the time since Last-Modified, \
        at most this. 0s assumes none.
        """: .duration("heuristic", \.settings.heuristic, in: .zero ... .forever, isWhole: true),
        """
        How long responses to GET are fresh that say nothing of caching: those without Cache-Control, Expires and Pragma. It \
        takes the place of the heuristic. What a response does say, such as no-cache, and what a route says come first.
        """: .duration("fresh_unsaid", \.settings.freshUnsaid, in: .zero ... .forever, isWhole: true, example: "60s"),
        "How long a stale response may be served if the upstream fails or limits requests.":
            .duration("stale_if_error", \.settings.staleIfError, in: .zero ... .forever, isWhole: true),
        """
        How long a client waits for the upstream if a stored response is merely stale and may be served stale. It then gets \
        the stored one, and the fetch goes on behind it. What a write or the request itself sends upstream is waited for. \
        forever: it always waits.
        """: .duration("patience", \.settings.patience, in: .zero ... .forever),
        "The upstream's own limits, in place of those in \"timeouts\" below.":
            .section("timeouts", \.settings.timeouts),
        """
        Which requests wait when the upstream responds with Retry-After. resource: those of the credential for the limited \
        resource (named by X-RateLimit-Resource or RateLimit, else the first segment of the path). credential: all of the \
        credential's. never: none, not even after a failure.
        """: .choice("back_off", \.settings.backOff),
        "How Larder spends what the upstream's rate limits allow. See docs/quota.md.":
            .section("budget", \.settings.budget),
        """
        How the upstream signs what it sends to its webhooks. github: X-Hub-Signature-256. gitlab: X-Gitlab-Token. stripe: \
        Stripe-Signature.
        """: .choice("webhook_signature", \.settings.webhookSignature, example: "github"),
        """
        Paths at which the upstream says that objects have changed: POST /.well-known/larder/webhooks/NAME on its addresses. \
        The signature stands in for every other credential. "hosts" names the host by which the upstream reaches Larder. See \
        docs/webhooks.md.
        """: .webhooks,
        """
        How far responses of this upstream may lag behind its newest data. A single duration is for lists and searches; \
        {lists: 30s, details: 5s} sets both.
        """: .section("lag", \.settings.lag, orValueOf: "lists"),
        "The models of this upstream only, in the form of \"models\" below.":
            .models(\.models).ofOneUpstream(example: "{}", \.settings.models, named: \.name),
        "The routes of this upstream only, in the form of \"routes\" below.":
            .routes(\.routes).ofOneUpstream(example: "[]", \.settings.routes, named: \.label),
        "The errors of this upstream only, in the form of \"errors\" below.":
            .errors(\.errors).ofOneUpstream(example: "[]", \.settings.errors, named: \.label),
    ])
}

extension ConfigKey<UpstreamDraft> {
    /// A key that also exists at the top of the file, where it is documented; its elements are compared by their names.
    fileprivate func ofOneUpstream<Element: Equatable & SendableMetatype>(
        example: String,
        _ path: any KeyPath<UpstreamDraft, [Element]> & Sendable,
        named name: @escaping @Sendable (Element) -> String
    ) -> ConfigKey {
        var key = self
        (key.facts.example, key.facts.sample) = (example, [])
        key.compare = ConfigChange.comparison(of: path, named: name)
        return key
    }

    static var credential: ConfigKey {
        ConfigKey(
            "credential",
            .section(CredentialDraft.keys.map(\.facts)),
            comparing: ConfigChange.comparison(ofHidden: \.settings.credential)
        ) { node, draft, reader in
            var credential = CredentialDraft()
            reader.section(node, into: &credential)
            switch (credential.file, credential.command) {
            case (let file?, nil):
                credential.settings.source = .file(file.path)
                do {
                    try credential.settings.read(file.path)
                } catch { reader.under("from") { $0.errorAtPath(file.place, "\(error)") } }
                if credential.settings.expires != nil {
                    reader.errorAtPath(
                        node.place,
                        "\"expires\" is for a \"command\"; a file is read again when it changes"
                    )
                }
            case (nil, let words?): credential.settings.source = .command(words)
            case (.some, .some):
                reader.errorAtPath(node.place, "\"from\" and \"command\" are two sources; remove one")
            case (nil, nil): break
            }
            draft.settings.credential = credential.settings
        }
    }

    static var aliases: ConfigKey {
        ConfigKey(
            "aliases",
            .named(.text, name: "/api/v3"),
            example: "{ /api/v3: / }",
            comparing: ConfigChange.comparison(of: \.settings.aliases, named: \.path)
        ) { node, draft, reader in
            for (path, place, value) in reader.pairs(node, wanted: "paths, each with the path that it stands for") ?? []
            {
                guard let target = reader.text(value, wanted: "a path such as /") else { continue }
                do {
                    let alias = PathAlias(path: try PathPrefix.read(path), target: try PathPrefix.read(target))
                    guard alias.path.isEmpty else {
                        draft.settings.aliases.append(alias)
                        continue
                    }
                    reader.errorAtPath(
                        place,
                        "\"/\" stands for itself; use \"url\" to say where the API begins upstream"
                    )
                } catch { reader.errorAtPath(place, "\(error)") }
            }
        }
    }

    static var origin: ConfigKey {
        .parsed(
            "origin",
            wanted: "drop, pass or an origin",
            fallback: "\(UpstreamDraft().settings.origin)",
            comparing: ConfigChange.comparison(ofHidden: \.settings.origin)
        ) { text, draft in
            switch text {
            case "drop": draft.settings.origin = .drop
            case "pass": draft.settings.origin = .pass
            case "*":
                throw InvalidValue("\"*\" is not an origin; write drop, pass, or the origin that the upstream wants")
            default:
                if let complaint = WebOrigin.complaint(text) {
                    throw InvalidValue("\"\(text)\" \(complaint); or write drop or pass")
                }
                guard text.hasPrefix("http://") || text.hasPrefix("https://") else {
                    throw InvalidValue(
                        "\"\(text)\" is not the origin of a web page; write one that begins with http:// or https://, or drop or pass"
                    )
                }
                draft.settings.origin = .replace(text)
            }
        }
    }

    static var proxy: ConfigKey {
        // It may contain a password.
        .parsed(
            "proxy",
            wanted: "a URL, none or environment",
            fallback: "\(UpstreamDraft().settings.proxy)",
            comparing: ConfigChange.comparison(ofHidden: \.settings.proxy)
        ) { text, draft in
            switch text {
            case "environment": draft.settings.proxy = .environment
            case "none": draft.settings.proxy = .none
            default:
                let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]
                guard let mark = text.firstRange(of: "://"), schemes.contains(String(text[..<mark.lowerBound])),
                    mark.upperBound < text.endIndex
                else {
                    throw InvalidValue(
                        "\"\(text)\" is not a proxy; write its URL, for example \"http://proxy.internal:3128\", or none, or environment"
                    )
                }
                draft.settings.proxy = .url(text)
            }
        }
    }
}

extension CredentialDraft: ConfigSection {
    static let keys: [ConfigKey<CredentialDraft>] = documented([
        "The header field that carries it.":
            .parsed("header", wanted: "a header field's name", fallback: Configuration.Credential().header) {
                (text, draft) in
                if let complaint = FieldName.complaint(text) { throw InvalidValue("\"\(text)\" \(complaint)") }
                draft.settings.header = text
            },
        """
        The file that contains it on one line; only Larder's user may be able to read it. It is read again when it changes.
        """:
            ConfigKey(
                "from",
                .text,
                example: "\"${CREDENTIALS_DIRECTORY}/github\"",
                isRequired: true,
                orElse: "command"
            ) { node, draft, reader in
                draft.file = reader.text(node, wanted: "a file's path").map { ($0, node.place) }
            },
        """
        A program with its arguments that prints it, in place of a file. It runs when Larder starts, when "expires" has \
        passed, and when the upstream responds with 401; it must end within 10 seconds.
        """:
            ConfigKey("command", .list(.text), example: "[gh, auth, token]") { (node, draft, reader) in
                guard let words = reader.checkedTexts(node, { _ in nil }) else { return }
                guard words.first?.isEmpty == false else {
                    return reader.errorAtPath(
                        node.place,
                        "there is no program; write it with its arguments: [gh, auth, token]"
                    )
                }
                draft.command = words
            },
        "How long what the program has printed is used.":
            .duration("expires", \.settings.expires, in: .seconds(10) ... .forever, example: "50m"),
        "The authentication scheme: sent before the credential, separated by a space.":
            .text("scheme", \.settings.scheme, example: "Bearer"),
        "Whether it is also used for POST, PUT, PATCH and DELETE, so that every program can change things.":
            .boolean("writes", \.settings.writes),
    ])
}

extension ConfigKey<ConfigDraft> {
    static var upstreams: ConfigKey {
        ConfigKey(
            "upstreams",
            .named(.section(UpstreamDraft.keys.map(\.facts)), name: "github"),
            comparing: { [Configuration.Upstream].changes($0.settings.upstreams, &$1.settings.upstreams) }
        ) { node, draft, reader in
            guard let pairs = reader.pairs(node, wanted: "names of upstreams, each with its keys") else { return }
            if pairs.isEmpty { reader.errorAtPath(node.place, "there is none; name one, with its url") }
            draft.upstreams = pairs.map { name, place, value in
                var upstream = UpstreamDraft(settings: .init(name: name), place: place)
                reader.check(name: name, at: place, of: "an upstream")
                upstream.places = reader.under(name) { $0.section(value, into: &upstream) }
                return upstream
            }
        }
    }
}

enum UpstreamName {
    static func isValid(_ name: String) -> Bool {
        guard let first = name.utf8.first, FieldSyntax.isLetter(first) else { return false }
        return name.utf8.isAlphanumeric(or: "_-")
    }
}

extension ConfigReader {
    /// Reports a name that cannot be one of an upstream or a webhook.
    mutating func check(name: String, at place: Place?, of what: String) {
        if UpstreamName.isValid(name) { return }
        errorAtPath(
            place,
            "\"\(name)\" is not a name for \(what); write a letter followed by letters, digits, \"_\" or \"-\""
        )
    }
}

/// How far an upstream's responses may lag behind its newest data (`lag`).
package struct ResponseLag: ConfigSection, Equatable {
    package var lists: Duration = .seconds(30)
    var details: Duration = .zero

    package init() {}

    private static let range: ClosedRange<Duration> = .zero ... .seconds(86_400)

    static let keys: [ConfigKey<ResponseLag>] = documented([
        "For lists, searches, and objects that are embedded in others.":
            .duration("lists", \.lists, in: range, isWhole: true),
        "For responses that show one object, if lagging replicas serve them. Your own write may stay invisible that long.":
            .duration("details", \.details, in: range, isWhole: true),
    ])

    package var stored: Lag { Lag(lists: lists.seconds * 1_000_000, details: details.seconds * 1_000_000) }
}
