import CachePolicy
import Yams

extension ConfigKey<ConfigDraft> {
    static var upstreams: ConfigKey {
        ConfigKey(
            "upstreams",
            .named(.section(UpstreamDraft.keys.map(\.facts)), name: "github"),
            "The REST APIs that Larder serves, each under a name of your choice."
        ) { node, draft, reader in
            guard let pairs = reader.pairs(node, wanted: "names of upstreams, each with its keys") else { return }
            if pairs.isEmpty { reader.errorHere(node.place, "there is none; name one, with its url") }
            draft.upstreams = pairs.map { name, place, value in
                var upstream = UpstreamDraft()
                upstream.settings.name = name
                upstream.place = place
                if !UpstreamName.isValid(name) {
                    reader.errorHere(
                        place,
                        "\"\(name)\" is not a name for an upstream; write a letter followed by letters, digits, \"_\" or \"-\""
                    )
                }
                upstream.places = reader.under(name) { $0.section(value, into: &upstream) }
                return upstream
            }
        }
    }
}

/// What an upstream may be called.
enum UpstreamName {
    static func isValid(_ name: String) -> Bool {
        guard let first = name.utf8.first, (first | 0x20) &- 0x61 < 26 else { return false }
        return name.utf8.allSatisfy { ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || $0 == 0x5F || $0 == 0x2D }
    }
}

extension ConfigKey<UpstreamDraft> {
    static var credential: ConfigKey {
        ConfigKey(
            "credential",
            .section(CredentialDraft.keys.map(\.facts)),
            """
            A credential that Larder adds to requests, for programs that have none of their own. Everyone who can connect to \
            the upstream's addresses uses it.
            """
        ) { node, draft, reader in
            var credential = CredentialDraft()
            reader.section(node, into: &credential)
            draft.settings.credential = credential.finished
        }
    }

    static var origin: ConfigKey {
        ConfigKey(
            "origin",
            .text,
            fallback: "drop",
            """
            The Origin field that the upstream gets: drop removes it, pass keeps the client's, and an origin such as \
            https://tracker.example is sent with every request, for servers that refuse writes without a known one.
            """
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "drop, pass or an origin") else { return }
            switch text {
            case "drop": draft.settings.origin = .drop
            case "pass": draft.settings.origin = .pass
            case "*":
                reader.errorHere(
                    node.place,
                    "\"*\" is not an origin; write drop, pass, or the origin that the upstream wants"
                )
            default:
                if let complaint = WebOrigin.complaint(text) {
                    reader.errorHere(node.place, "\"\(text)\" \(complaint); or write drop or pass")
                } else if !text.hasPrefix("http://"), !text.hasPrefix("https://") {
                    reader.errorHere(
                        node.place,
                        "\"\(text)\" is not the origin of a web page; write one that begins with http:// or https://, or drop or pass"
                    )
                }
                draft.settings.origin = .replace(text)
            }
        }
    }

    static var proxy: ConfigKey {
        ConfigKey(
            "proxy",
            .text,
            fallback: "environment",
            """
            The proxy on the way to the upstream: a URL (http, https, socks4a, socks5, socks5h), none, or environment \
            for http_proxy, https_proxy and no_proxy.
            """
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a URL, none or environment") else { return }
            switch text {
            case "environment": draft.settings.proxy = .environment
            case "none": draft.settings.proxy = .none
            default:
                let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]
                guard let mark = text.firstRange(of: "://"), schemes.contains(String(text[..<mark.lowerBound])),
                    mark.upperBound < text.endIndex
                else {
                    reader.errorHere(
                        node.place,
                        "\"\(text)\" is not a proxy; write its URL, for example \"http://proxy.internal:3128\", or none, or environment"
                    )
                    return
                }
                draft.settings.proxy = .url(text)
            }
        }
    }
}
