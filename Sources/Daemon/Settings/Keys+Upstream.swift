import HTTPSemantics

/// The keys of one upstream and of its credential.
extension UpstreamDraft: ConfigSection {
    static let keys: [ConfigKey<UpstreamDraft>] = [
        ConfigKey(
            "url",
            .text,
            example: "https://api.github.com",
            isRequired: true,
            "The origin, and the base path if there is one. No user name, query or fragment."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a URL") else { return }
            do throws(UpstreamURLError) {
                draft.settings.url = try UpstreamURL(text)
            } catch {
                reader.errorHere(node.place, error.description)
            }
        },
        ConfigKey(
            "prefix",
            .text,
            example: "/github",
            """
            The path under which programs reach it. Several upstreams on one address need one each.
            """
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a path such as /github") else { return }
            do throws(PathPrefix.Misfit) {
                draft.settings.prefix = try PathPrefix.read(text)
            } catch {
                draft.hasValidPrefix = false
                reader.errorHere(node.place, error.description)
            }
        },
        .addresses(
            "listen",
            \.settings.listen,
            example: "127.0.0.1:8790",
            "Addresses of its own, in the forms of \"listen\" above."
        ),
        .credential,
        ConfigKey(
            "principal",
            .list(.text),
            fallback: ConfigText.list(Configuration.Upstream.defaultPrincipal),
            """
            The header fields and query parameters that decide whose data a response is. "auto": those whose names look like a \
            credential or an identity. "+NAME" adds a field, "+?NAME" a query parameter; "-NAME" removes one. "all": every \
            field that is not known to be harmless. Plain names replace all of that. A client never sees what was fetched \
            with other values, and the values are never stored. See docs/http.md.
            """
        ) { node, draft, reader in
            guard let words = reader.checkedTexts(node, PrincipalWords.complaint) else { return }
            if let complaint = PrincipalWords.contradiction(in: words) ?? PrincipalWords.vain(in: words) {
                return reader.errorHere(node.place, complaint)
            }
            draft.settings.principal = words
        },
        .texts(
            "context",
            \.settings.context,
            """
            Header fields that select another representation of the same object, such as its language. "*" stands for \
            any text. The fields that Vary names count, too.
            """,
            check: FieldName.patternComplaint
        ),
        .boolean(
            "shared",
            \.settings.shared,
            """
            Follow the rules of a cache that many people share: s-maxage counts, private forbids storing, and a response to a \
            request with Authorization, or with Larder's own credential, is stored only if it says public, must-revalidate or \
            s-maxage. It is then served to all clients, whatever their Authorization.
            """
        ),
        .texts(
            "targets",
            \.settings.targets,
            "Response fields that replace Cache-Control, in order of preference (RFC 9213).",
            check: FieldName.complaint
        ),
        .choice("cookies", \.settings.cookies, "What happens to Set-Cookie in stored responses: drop or replay."),
        .texts(
            "cors",
            \.settings.cors,
            example: "[\"http://localhost:3000\"]",
            "Origins of web pages that may use Larder. All others are refused.",
            check: WebOrigin.complaint
        ),
        .origin,
        .boolean(
            "rewrite_links",
            \.settings.rewriteLinks,
            """
            Rewrite the upstream's absolute URLs in JSON responses so that they point to Larder, for clients that follow them. \
            Stored responses stay as received.
            """
        ),
        .texts(
            "hosts",
            \.settings.hosts,
            example: "[larder.internal]",
            "Further host names under which programs reach it. The listen address and localhost are always allowed.",
            check: HostName.complaint
        ),
        .text(
            "ca_file",
            \.settings.caFile,
            example: "/etc/ssl/company.pem",
            "Certificate authorities (PEM) to trust in place of the system's."
        ),
        .proxy,
        .boolean("http2", \.settings.http2, "Use HTTP/2 if the upstream offers it."),
        .duration(
            "heuristic",
            \.settings.heuristic,
            in: .zero ... .forever,
            isWhole: true,
            """
            The longest freshness to assume if the upstream says nothing about it: a tenth of the time since Last-Modified, \
            at most this. 0s assumes none.
            """
        ),
        .duration(
            "stale_if_error",
            \.settings.staleIfError,
            in: .zero ... .forever,
            isWhole: true,
            "How long a stale response may be served if the upstream fails or limits requests."
        ),
        .choice(
            "back_off",
            \.settings.backOff,
            """
            Which requests wait when the upstream responds with Retry-After. resource: those of the credential for the limited \
            resource (named by X-RateLimit-Resource or RateLimit, else the first segment of the path). credential: all of the \
            credential's. never: none, not even after a failure.
            """
        ),
        ResponseLag.key,
        ConfigKey.models(\.models).ofOneUpstream(example: "{}"),
        ConfigKey.routes(\.routes).ofOneUpstream(example: "[]"),
        ConfigKey.errors(\.errors).ofOneUpstream(example: "[]"),
    ]
}

extension ConfigKey<UpstreamDraft> {
    /// A key that the top of the file has as well, where it is documented.
    fileprivate func ofOneUpstream(example: String) -> ConfigKey {
        var key = self
        key.facts.text = "The \(facts.name) of this upstream only, in the form of \"\(facts.name)\" below."
        key.facts.example = example
        key.facts.sample = []
        return key
    }
}

extension CredentialDraft: ConfigSection {
    static let keys: [ConfigKey<CredentialDraft>] = [
        ConfigKey(
            "header",
            .text,
            fallback: Configuration.Credential().header,
            "The header field that carries it."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a header field's name") else { return }
            if let complaint = FieldName.complaint(text) { reader.errorHere(node.place, "\"\(text)\" \(complaint)") }
            draft.settings.header = text
        },
        ConfigKey(
            "from",
            .text,
            example: "\"${CREDENTIALS_DIRECTORY}/github\"",
            isRequired: true,
            "The file that contains it on one line; only Larder's user may be able to read it."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a file's path") else { return }
            draft.settings.from = text
            draft.read(at: node.place, &reader)
        },
        .text("scheme", \.settings.scheme, example: "Bearer", "Written before the file's content, with a space."),
        .boolean(
            "writes",
            \.settings.writes,
            "Whether it is also used for POST, PUT, PATCH and DELETE, so that every program can change things."
        ),
    ]
}
