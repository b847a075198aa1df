import Glibc
import HTTPSemantics
import Mapping

/// The values read from a file with their places, before they are checked against each other.
struct ConfigDraft {
    var settings = Configuration()
    var places: [String: Place] = [:]
    var fleet = FleetDraft()
    var upstreams: [UpstreamDraft] = []
    var models: [ModelDraft] = []
    var routes: [RouteDraft] = []
    var errors: [RouteDraft] = []
    /// The host of the default addresses, where it was chosen.
    private(set) var boundHost: String?

    /// Chooses the host of the default addresses, before the file is read.
    mutating func bind(to host: String) {
        boundHost = host
        for path in [\Configuration.listen, \.admin] {
            settings[keyPath: path] = settings[keyPath: path].map { .tcp(host: host, port: $0.port ?? 0) }
        }
    }
}

struct UpstreamDraft {
    var settings = Configuration.Upstream()
    var place: Place?
    var places: [String: Place] = [:]
    /// Whether the prefix can be compared with others.
    var hasValidPrefix = true
    var webhooks: [WebhookDraft] = []
    var models: [ModelDraft] = []
    var routes: [RouteDraft] = []
    var errors: [RouteDraft] = []
}

struct CredentialDraft {
    var settings = Configuration.Credential()
    var file: (path: String, place: Place?)?
    var command: [String]?
}

struct ModelDraft {
    var declaration = ModelDeclaration(name: "")
    var place: Place?
    var places: [String: Place] = [:]
    var properties: [PropertyDraft] = []
    var choicePlaces: [(model: String, place: Place?)] = []
}

struct PropertyDraft {
    var declaration = PropertyDeclaration(name: "", from: "")
    var place: Place?
    var modelPlace: Place?
    /// Whether the source of its value is given; otherwise it follows from the name.
    var isNamed = false
}

struct RouteDraft {
    var route = Configuration.Route()
    /// Nil if the key is absent.
    var status: StatusPattern?
    var place: Place?
    var places: [String: Place] = [:]
    /// Nil if the key is absent or its value is not text.
    var path: String?
    /// The model that a body contains, its arity, and where it is named.
    typealias Model = (name: String, arity: Arity, place: Place?)
    var model: Model?
    var root: String?
    var envelope: (name: String, place: Place?)?
    var also: [(model: Model, root: String)] = []
    var objectPlaces: [Place?] = []
    var invalidates: [(text: String, place: Place?)] = []
}

extension ConfigDraft {
    /// Checks the parts against each other and reports mistakes.
    mutating func validate(_ reader: inout ConfigReader) {
        if upstreams.isEmpty, places["upstreams"] == nil {
            reader.error(
                nil,
                "no upstream is named; add one, for example `upstreams: { github: { url: https://api.github.com } }`"
            )
        }
        validateAddresses(&reader)
        validateNames(&reader)
        validateWebhookNames(&reader)
        validateGroups(&reader)
        validateFleet(&reader)
        for upstream in upstreams {
            validateFiles(of: upstream, &reader)
            warnOfExposure(of: upstream, &reader)
            validateMapping(of: upstream, &reader)
            validateAcross(upstream, &reader)
            validateWebhooks(of: upstream, &reader)
        }
        warnOfReach(&reader)
    }

    /// The settings, once there are no errors.
    var finished: Configuration {
        var settings = settings
        settings.upstreams = upstreams.map { upstream in
            var result = upstream.settings
            result.models = models(for: upstream).map(\.declaration)
            result.routes = (upstream.routes + routes).map(\.route)
            result.errors = (upstream.errors + errors).map(\.route)
            return result
        }
        return settings
    }

    func addresses(of upstream: UpstreamDraft) -> [Address] {
        upstream.settings.listen.isEmpty ? settings.listen : upstream.settings.listen
    }

    /// The models for an upstream: its own, then those at the top of the file.
    func models(for upstream: UpstreamDraft) -> [ModelDraft] { upstream.models + models }

    // MARK: Addresses and names

    private func validateAddresses(_ reader: inout ConfigReader) {
        // The first upstream with a prefix at an address, and the first with a prefix there or below.
        var (exact, within): ([String: Int], [String: Int]) = ([:], [:])
        for (index, upstream) in upstreams.enumerated() where upstream.hasValidPrefix {
            let prefix = upstream.settings.prefix
            let outer = PathPrefix.outer(prefix)
            let served = placesServed(by: upstream)
            for place in served {
                let known = within["\(place) \(prefix)"] ?? outer.lazy.compactMap { exact["\(place) \($0)"] }.first
                guard let known else { continue }
                overlap(upstream, upstreams[known], at: place, &reader)
                break
            }
            for place in served {
                exact["\(place) \(prefix)"] = exact["\(place) \(prefix)"] ?? index
                for path in [prefix] + outer { within["\(place) \(path)"] = within["\(place) \(path)"] ?? index }
            }
        }
        if let place = places["listen"], !upstreams.isEmpty, upstreams.allSatisfy({ $0.places["listen"] != nil }) {
            reader.warning(
                place,
                "no upstream is served here, because each has a \"listen\" of its own; remove this one, or one of those"
            )
        }
        for admin in settings.admin where admin.isFixed {
            for upstream in upstreams where addresses(of: upstream).contains(where: admin.isSamePlace(as:)) {
                reader.error(
                    places["admin"] ?? upstream.places["listen"] ?? places["listen"],
                    "the admin side and \"\(upstream.settings.name)\" cannot both listen on \(admin); change one of them"
                )
            }
        }
    }

    private func overlap(
        _ upstream: UpstreamDraft,
        _ other: UpstreamDraft,
        at address: String,
        _ reader: inout ConfigReader
    ) {
        let (here, there) = (upstream.settings.prefix, other.settings.prefix)
        let problem =
            if here.isEmpty || there.isEmpty {
                "\"\(upstream.settings.name)\" and \"\(other.settings.name)\" are both served at \(address); "
                    + "give each a prefix, or an address of its own by \"listen\""
            } else {
                "the prefix \(here) of \"\(upstream.settings.name)\" and \(there) of \"\(other.settings.name)\" "
                    + "overlap at \(address); let neither begin with the other"
            }
        reader.error(upstream.places["prefix"] ?? upstream.place, problem)
    }

    /// The addresses that an upstream is served at, in words, as far as another may be served there.
    private func placesServed(by upstream: UpstreamDraft) -> [String] {
        // An invalid address still belongs to its upstream.
        guard !upstream.settings.listen.isEmpty || upstream.places["listen"] == nil else { return [] }
        let addresses = addresses(of: upstream)
        return addresses.isEmpty ? ["the same addresses"] : addresses.filter(\.isFixed).map(\.description)
    }

    private func validateNames(_ reader: inout ConfigReader) {
        var known: [String: String] = [:]
        for upstream in upstreams {
            let name = upstream.settings.name
            guard let other = known[name.lowercased()] else {
                known[name.lowercased()] = name
                continue
            }
            reader.error(upstream.place, "\"\(name)\" and \"\(other)\" are the same name but for capitals; rename one")
        }
    }

    private func validateGroups(_ reader: inout ConfigReader) {
        let named =
            [(places["listen"], settings.listen), (places["admin"], settings.admin)]
            + upstreams.map { ($0.places["listen"], $0.settings.listen) }
        for (place, addresses) in named {
            for case .unix(let path, _, let group?) in addresses where getgrnam(group) == nil {
                reader.error(
                    place,
                    "the socket \(path) is to belong to the group \"\(group)\", which this machine does not have"
                )
            }
        }
    }

    private func validateFiles(of upstream: UpstreamDraft, _ reader: inout ConfigReader) {
        guard let path = upstream.settings.caFile, access(path, R_OK) != 0 else { return }
        reader.error(
            upstream.places["ca_file"],
            "upstreams.\(upstream.settings.name).ca_file: \(path) cannot be read: \(systemMessage(errno))"
        )
    }

    // MARK: Safety

    /// Warns if a credential is usable by anyone who can connect.
    private func warnOfExposure(of upstream: UpstreamDraft, _ reader: inout ConfigReader) {
        guard let credential = upstream.settings.credential else { return }
        let place = upstream.places["credential"]
        if upstream.settings.url.scheme == "http", !Address.tcp(host: upstream.settings.url.host, port: 0).isLocal {
            reader.warning(place, "the credential crosses the network unencrypted; use an https URL")
        }
        guard let address = addresses(of: upstream).first(where: { !$0.isUnix }) else { return }
        let who = address.isLocal ? "every user and program of this machine" : "everybody who can reach \(address)"
        let what = credential.writes ? "reads and writes" : "reads"
        reader.warning(
            place,
            "\(who) \(what) with this credential, through \(address); "
                + "listen on a Unix socket with a mode and a group to choose who may"
        )
    }

    private func warnOfReach(_ reader: inout ConfigReader) {
        for address in settings.listen where !address.isLocal && !isChosen(address) {
            reader.warning(
                places["listen"],
                "\(address) can be reached from other machines, unencrypted and without a password; keep it to 127.0.0.1 or a Unix socket"
            )
        }
        for admin in settings.admin where !admin.isLocal && !isChosen(admin) {
            reader.warning(
                places["admin"],
                "\(admin) can be reached from other machines, and the admin token crosses the network unencrypted"
            )
        }
    }

    /// Whether the address is at the host that was chosen for the default ones, as in a container.
    private func isChosen(_ address: Address) -> Bool {
        if case .tcp(let host, _) = address { host == boundHost } else { false }
    }

    // MARK: Models

    func validateKeys(of model: ModelDraft, among models: [String: ModelDraft], _ reader: inout ConfigReader) {
        let name = model.declaration.name
        if !Self.hasIdentity(model, among: models) {
            for (key, use) in Self.usesOfIdentity {
                guard let place = model.places[key] else { continue }
                reader.once(
                    place,
                    "objects of \"\(name)\" have no identity, and \(use); remove \"\(key)\", or give the model an identity"
                )
            }
            if let place = model.places["migrations"] {
                reader.once(
                    place,
                    "objects of \"\(name)\" have no identity, so none is stored by itself and these never apply; declare "
                        + "them in the model of the object that holds it",
                    .warning
                )
            }
        }
        guard let modified = model.declaration.modified else { return }
        if modified.hasPrefix("@") {
            reader.once(
                model.places["modified"],
                "\"\(modified)\" does not come with the object, so it cannot say when that changed; name a member of the object"
            )
        } else if Self.identity(of: model, among: models)?.contains(modified) == true {
            reader.once(
                model.places["modified"],
                "\"\(modified)\" is part of the identity, which never changes; name the member that says when the object changed"
            )
        }
    }

    /// Keys that only make sense for objects with an identity, and why.
    private static let usesOfIdentity = [
        ("keys", "so none is found by a key"),
        ("identity_types", "so there is none whose type could count"),
        ("modified", "so two responses are never known to show the same one"),
        ("deleted_when", "so other responses never learn that one is deleted"),
        ("on_delete", "so other responses never learn that one is deleted"),
    ]

    /// Whether objects of a model have an identity, their own or their base's.
    static func hasIdentity(_ model: ModelDraft, among models: [String: ModelDraft]) -> Bool {
        identity(of: model, among: models)?.isEmpty != true
    }

    /// Nil if it could not be read, which has already been reported.
    private static func identity(of model: ModelDraft, among models: [String: ModelDraft]) -> [String]? {
        let root = lineage(of: model, among: models)[0]
        guard root.declaration.base == nil || models[root.declaration.base ?? ""] != nil else { return nil }
        return root.places["identity"] == nil ? nil : root.declaration.identity
    }

    /// The model preceded by its bases, as far as they are declared.
    static func lineage(of model: ModelDraft, among models: [String: ModelDraft]) -> [ModelDraft] {
        var lineage = [model]
        var seen: Set<String> = [model.declaration.name]
        while let base = lineage[0].declaration.base, seen.insert(base).inserted, let next = models[base] {
            lineage.insert(next, at: 0)
        }
        return lineage
    }
}
