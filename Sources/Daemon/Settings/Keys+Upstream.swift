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
            The path under which programs find it. Without one it has its addresses to itself; several upstreams on one \
            address need one each.
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
            What says whose data a response is: "auto" is every header field and query parameter whose name looks like a \
            credential or an identity. "+NAME" adds a field, "+?NAME" a query parameter, "-NAME" takes one away that is none. \
            "all" lets every field count that is not known to be harmless. Plain names replace all that. Nobody is shown \
            what was fetched with other values; the values themselves are never stored. See docs/http.md.
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
            Header fields that choose another representation of the same object, such as its language. "*" stands for \
            any text. What Vary names counts as well.
            """,
            check: FieldName.patternComplaint
        ),
        .boolean(
            "shared",
            \.settings.shared,
            """
            Read the caching rules as for a cache shared by many people: s-maxage counts, private forbids, and what was \
            asked for with Authorization, or with a credential of Larder's own, is stored only if the answer says public, \
            must-revalidate or s-maxage. It is then for all: Authorization no longer tells programs apart.
            """
        ),
        .texts(
            "targets",
            \.settings.targets,
            "Fields that take the place of Cache-Control where an answer has them, the first one first (RFC 9213).",
            check: FieldName.complaint
        ),
        .choice("cookies", \.settings.cookies, "What becomes of Set-Cookie in stored answers: drop or replay."),
        .texts(
            "cors",
            \.settings.cors,
            example: "[\"http://localhost:3000\"]",
            "Origins of web pages that may ask Larder. All others are refused.",
            check: WebOrigin.complaint
        ),
        .origin,
        .boolean(
            "rewrite_links",
            \.settings.rewriteLinks,
            """
            Let absolute URLs of the upstream in JSON answers point at Larder, for clients that follow them. What is \
            stored stays as received.
            """
        ),
        .texts(
            "hosts",
            \.settings.hosts,
            example: "[larder.internal]",
            "Further names (Host fields) under which programs reach it. The listen address and localhost always count.",
            check: HostName.complaint
        ),
        .text(
            "ca_file",
            \.settings.caFile,
            example: "/etc/ssl/company.pem",
            "Certificate authorities (PEM) to trust in place of the system's."
        ),
        .proxy,
        .boolean("http2", \.settings.http2, "Speak HTTP/2 where the upstream offers it."),
        .duration(
            "heuristic",
            \.settings.heuristic,
            in: .zero ... .forever,
            isWhole: true,
            """
            The longest freshness to assume where the upstream says nothing: a tenth of an answer's age since \
            Last-Modified, this at most. 0s assumes none.
            """
        ),
        .duration(
            "stale_if_error",
            \.settings.staleIfError,
            in: .zero ... .forever,
            isWhole: true,
            "How long past its freshness an answer may stand in when the upstream fails or limits."
        ),
        .choice(
            "back_off",
            \.settings.backOff,
            """
            What a rate limit with Retry-After holds back until its time is over: resource, what the credential asks of the \
            limited resource (X-RateLimit-Resource, RateLimit, else the path's first segment); credential, all that it asks \
            for; never, nothing, not even after a failure.
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
        key.facts.text = "The \(facts.name) of this upstream alone, in the form of \"\(facts.name)\" below."
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
            "The header field it is sent in."
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
            "The file that holds it, on one line, readable by nobody but Larder's user."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a file's path") else { return }
            draft.settings.from = text
            draft.read(at: node.place, &reader)
        },
        .text("scheme", \.settings.scheme, example: "Bearer", "Put before the file's content, with a space."),
        .boolean(
            "writes",
            \.settings.writes,
            "Whether it also serves POST, PUT, PATCH and DELETE, and so lets every program change things."
        ),
    ]
}
