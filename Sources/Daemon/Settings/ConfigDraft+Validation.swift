import Glibc
import Mapping

extension ConfigDraft {
    /// Holds the parts against each other and says what does not fit.
    mutating func validate(_ reader: inout ConfigReader) {
        if upstreams.isEmpty, places["upstreams"] == nil {
            reader.error(
                nil,
                "no upstream is named; add one, for example `upstreams: { github: { url: https://api.github.com } }`"
            )
        }
        validateAddresses(&reader)
        validateNames(&reader)
        validateGroups(&reader)
        for upstream in upstreams {
            validateFiles(of: upstream, &reader)
            warnOfExposure(of: upstream, &reader)
            validateMapping(of: upstream, &reader)
        }
        warnOfReach(&reader)
    }

    /// The settings, once nothing is wrong.
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

    /// The addresses at which an upstream is served.
    func addresses(of upstream: UpstreamDraft) -> [Address] {
        upstream.settings.listen.isEmpty ? settings.listen : upstream.settings.listen
    }

    /// The models that hold for an upstream: its own, then those at the top of the file.
    func models(for upstream: UpstreamDraft) -> [ModelDraft] { upstream.models + models }

    // MARK: Addresses and names

    private func validateAddresses(_ reader: inout ConfigReader) {
        for (index, upstream) in upstreams.enumerated() {
            for other in upstreams[..<index] {
                guard upstream.hasValidPrefix, other.hasValidPrefix, let shared = sharedAddress(upstream, other) else {
                    continue
                }
                let (here, there) = (upstream.settings.prefix, other.settings.prefix)
                guard PathPrefix.overlap(here, there) else { continue }
                let place = upstream.places["prefix"] ?? upstream.place
                let problem =
                    if here.isEmpty || there.isEmpty {
                        "\"\(upstream.settings.name)\" and \"\(other.settings.name)\" are both served at \(shared); "
                            + "give each a prefix, or an address of its own by \"listen\""
                    } else {
                        "the prefix \(here) of \"\(upstream.settings.name)\" and \(there) of \"\(other.settings.name)\" "
                            + "overlap at \(shared); let neither begin with the other"
                    }
                reader.error(place, problem)
            }
        }
        guard settings.admin.isFixed else { return }
        for upstream in upstreams where addresses(of: upstream).contains(where: settings.admin.isSamePlace(as:)) {
            reader.error(
                places["admin"] ?? upstream.places["listen"] ?? places["listen"],
                "the admin side and \"\(upstream.settings.name)\" cannot both listen on \(settings.admin); change one of them"
            )
        }
    }

    /// Where both are served, in words; nil where that is nowhere.
    private func sharedAddress(_ left: UpstreamDraft, _ right: UpstreamDraft) -> String? {
        // What is wrong with addresses does not change whose they are.
        guard [left, right].allSatisfy({ !$0.settings.listen.isEmpty || $0.places["listen"] == nil }) else {
            return nil
        }
        if settings.listen.isEmpty, left.settings.listen.isEmpty, right.settings.listen.isEmpty {
            return "the same addresses"
        }
        return addresses(of: left).first { $0.isFixed && addresses(of: right).contains(where: $0.isSamePlace(as:)) }?
            .description
    }

    private func validateNames(_ reader: inout ConfigReader) {
        for (index, upstream) in upstreams.enumerated() {
            let name = upstream.settings.name
            for other in upstreams[..<index] where other.settings.name.lowercased() == name.lowercased() {
                reader.error(
                    upstream.place,
                    "\"\(name)\" and \"\(other.settings.name)\" are the same name but for capitals; rename one"
                )
            }
        }
    }

    private func validateGroups(_ reader: inout ConfigReader) {
        let named =
            [(places["listen"], settings.listen), (places["admin"], [settings.admin])]
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

    // MARK: Files

    private func validateFiles(of upstream: UpstreamDraft, _ reader: inout ConfigReader) {
        guard let path = upstream.settings.caFile, access(path, R_OK) != 0 else { return }
        reader.error(
            upstream.places["ca_file"],
            "upstreams.\(upstream.settings.name).ca_file: \(path) cannot be read: \(systemMessage(errno))"
        )
    }

    // MARK: Safety

    /// A credential is lent to whoever can connect.
    private func warnOfExposure(of upstream: UpstreamDraft, _ reader: inout ConfigReader) {
        guard let credential = upstream.settings.credential else { return }
        let place = upstream.places["credential"]
        if upstream.settings.url.scheme == "http", !upstream.settings.url.isLocal {
            reader.warning(place, "the credential crosses the network unencrypted; use an https URL")
        }
        guard let address = addresses(of: upstream).first(where: \.isTCP) else { return }
        let who = address.isLocal ? "every user and program of this machine" : "everybody who can reach \(address)"
        let what = credential.writes ? "reads and writes" : "reads"
        reader.warning(
            place,
            "\(who) \(what) with this credential, through \(address); "
                + "listen on a Unix socket with a mode and a group to choose who may"
        )
    }

    private func warnOfReach(_ reader: inout ConfigReader) {
        for address in settings.listen where !address.isLocal {
            reader.warning(
                places["listen"],
                "\(address) can be reached from other machines, unencrypted and without a password; keep it to 127.0.0.1 or a Unix socket"
            )
        }
        if !settings.admin.isLocal {
            reader.warning(
                places["admin"],
                "\(settings.admin) can be reached from other machines, and the admin token crosses the network unencrypted"
            )
        }
    }
}

extension Address {
    fileprivate var isTCP: Bool {
        if case .tcp = self { true } else { false }
    }
}

extension UpstreamURL {
    fileprivate var isLocal: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }
}
