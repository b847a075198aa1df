package import HTTPSemantics
import Yams

extension Configuration {
    /// The server through which several Larders share what they know, and what they share.
    package struct Fleet: Sendable, Equatable {
        package var server = FleetServer()
        package var password: SecretText?
        /// The key of all machines: 32 bytes.
        package var key = SecretText()
        /// The names of the upstreams that are shared; empty for all.
        var upstreams: [String] = []
        /// How long a request waits for a response that another machine fetches.
        package var coalesce: Duration = .seconds(5)

        package init() {}

        /// Whether an upstream is shared.
        package func shares(upstreamNamed name: String) -> Bool { upstreams.isEmpty || upstreams.contains(name) }
    }

    /// A secret from a file; hidden from logs and errors.
    package struct SecretText: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
        package var bytes: [UInt8] = []

        package init(_ bytes: [UInt8] = []) { self.bytes = bytes }

        package var description: String { "[secret]" }
        package var customMirror: Mirror { Mirror(self, children: []) }
    }
}

/// Where a fleet's server is: `redis://[USER@]HOST[:PORT][/DATABASE]` or `unix:PATH`.
package struct FleetServer: Sendable, Equatable, CustomStringConvertible {
    package var address = Address.tcp(host: "", port: 0)
    /// The server's user; nil for its default one.
    package var user: String?
    package var database = 0

    init() {}

    /// Parses a URL; the error says what to write instead.
    package init(_ text: String) throws(InvalidValue) {
        if text.hasPrefix("unix:") {
            // `unix:///run/…` is how some other programs write it.
            address = try Address(text.hasPrefix("unix://") ? "unix:" + text.dropFirst(7) : text)
            return
        }
        if text.hasPrefix("rediss://") {
            throw InvalidValue(
                "TLS to the fleet's server is not supported; let a tunnel on this machine do it (docs/fleet.md), and write \"redis://127.0.0.1:PORT\""
            )
        }
        guard text.hasPrefix("redis://") else {
            throw InvalidValue("\"\(text)\" is not the URL of a Redis server; write redis://HOST:6379/0 or unix:PATH")
        }
        var rest = text.dropFirst(8)
        guard !rest.contains("?"), !rest.contains("#") else {
            throw InvalidValue("the URL of the fleet's server ends with the number of its database; leave out the rest")
        }
        if let slash = rest.firstIndex(of: "/") {
            let digits = rest[rest.index(after: slash)...]
            guard let number = digits.isEmpty ? 0 : UInt16(digits) else {
                throw InvalidValue(
                    "\"\(digits)\" is not the number of a database; write for example redis://HOST:6379/0"
                )
            }
            database = Int(number)
            rest = rest[..<slash]
        }
        if let at = rest.lastIndex(of: "@") {
            guard !rest[..<at].contains(":") else {
                throw InvalidValue(
                    "the URL must not contain a password; put it into a file, and name that by \"password\""
                )
            }
            user = at == rest.startIndex ? nil : String(rest[..<at])
            rest = rest[rest.index(after: at)...]
        }
        let hasPort = rest.hasPrefix("[") ? rest.contains("]:") : rest.contains(":")
        if hasPort, let digits = rest.split(separator: ":", omittingEmptySubsequences: false).last {
            guard let port = UInt16(digits), port > 0 else {
                throw InvalidValue("\"\(digits)\" is not a port; a port is a number from 1 to 65535")
            }
        }
        address = try Address(hasPort ? String(rest) : "\(rest):6379")
    }

    package var description: String {
        guard case .tcp = address else { return "\(address)" }
        return "redis://" + (user.map { "\($0)@" } ?? "") + "\(address)/\(database)"
    }
}

/// The section as the file has it, with its places.
struct FleetDraft: ConfigSection {
    var settings = Configuration.Fleet()
    var upstreamPlaces: [Place?] = []

    static let keys: [ConfigKey<FleetDraft>] = documented([
        "The server: redis://HOST:6379/0, redis://USER@HOST:6379/0 or unix:PATH.":
            .parsed(
                "url",
                wanted: "the URL of a Redis server",
                example: "redis://cache.internal:6379/0",
                isRequired: true,
                comparing: ConfigChange.comparison(of: \.settings.server, .text)
            ) { text, draft in
                draft.settings.server = try FleetServer(text)
            },
        "The server's password.":
            ConfigKey(
                "password",
                .section(PasswordDraft.keys.map(\.facts)),
                comparing: ConfigChange.comparison(ofHidden: \.settings.password)
            ) { node, draft, reader in
                var password = PasswordDraft()
                reader.section(node, into: &password)
                draft.settings.password = password.text
            },
        """
        The file with the fleet's key, the same on all machines: 64 hexadecimal digits, as `openssl rand -hex 32` prints them. \
        Principals are made with it, and what is shared is sealed with it. Only Larder's user may be able to read it.
        """:
            .parsed(
                "key_file",
                wanted: "a file's path",
                example: "/etc/larder/fleet.key",
                isRequired: true,
                comparing: ConfigChange.comparison(ofHidden: \.settings.key)
            ) { path, draft in
                draft.settings.key = .init(try readKey(path))
            },
        "The upstreams that are shared, by their names. Default: all.":
            ConfigKey(
                "upstreams",
                .list(.text),
                fallback: "[]",
                example: "[github]",
                comparing: ConfigChange.comparison(of: \.settings.upstreams, .list(.text))
            ) { node, draft, reader in
                let names = reader.texts(node, wanted: "names of upstreams") ?? []
                draft.settings.upstreams = names.map(\.text)
                draft.upstreamPlaces = names.map(\.place)
            },
        "How long a request waits for a response that another machine is fetching. Then it asks the upstream itself.":
            .duration("coalesce", \.settings.coalesce, in: .zero ... .seconds(60)),
    ])

    /// Reads the 32 bytes of a fleet's key; throws if the file has no key, or is not Larder's alone.
    private static func readKey(_ path: String) throws(InvalidValue) -> [UInt8] {
        var text = try FileBytes.readSecret(path, called: "the fleet's key")[...]
        while let last = text.last, last == 0x0A || last == 0x0D || last == 0x20 { text = text.dropLast() }
        guard let key = [UInt8](hexadecimal: text), key.count == 32 else {
            throw InvalidValue(
                "\"\(path)\" must contain 64 hexadecimal digits; make the key once, with: openssl rand -hex 32 > FILE, and copy it to all machines"
            )
        }
        return key
    }
}

/// `password:` as the file has it.
private struct PasswordDraft: ConfigSection {
    var text: Configuration.SecretText?

    static let keys: [ConfigKey<PasswordDraft>] = documented([
        "The file that contains it on its first line; only Larder's user may be able to read it.":
            .parsed(
                "from",
                wanted: "a file's path",
                example: "\"${CREDENTIALS_DIRECTORY}/redis\"",
                isRequired: true
            ) { path, draft in
                let bytes = try FileBytes.readSecret(path, called: "the server's password")
                let line = Array(bytes.prefix { $0 != 0x0A && $0 != 0x0D })
                if line.isEmpty { throw InvalidValue("\"\(path)\" is empty; put the password on its first line") }
                draft.text = .init(line)
            }
    ])
}

extension ConfigKey<ConfigDraft> {
    static var fleet: ConfigKey {
        ConfigKey("fleet", .section(FleetDraft.keys.map(\.facts)), comparing: changes) { node, draft, reader in
            reader.section(node, into: &draft.fleet)
            draft.settings.fleet = draft.fleet.settings
        }.readAtStart(\.settings.fleet)
    }

    private static let changes: ConfigComparison<ConfigDraft> = { former, new in
        let (old, now) = (former.settings.fleet, new.settings.fleet)
        guard old != now else { return [] }
        guard let old, let now else { return [ConfigChange(key: "", kind: old == nil ? .added : .removed)] }
        var draft = FleetDraft(settings: now)
        return ConfigChange.changes(of: FleetDraft.keys, FleetDraft(settings: old), &draft)
    }
}

extension ConfigDraft {
    /// Checks that the fleet's upstreams are there.
    func validateFleet(_ reader: inout ConfigReader) {
        let known = upstreams.map(\.settings.name)
        for (name, place) in zip(fleet.settings.upstreams, fleet.upstreamPlaces) where !known.contains(name) {
            let meant = Suggestion.nearest(to: name, among: known).map { "; did you mean \"\($0)\"?" } ?? ""
            reader.error(place, "fleet.upstreams: there is no upstream \"\(name)\"\(meant)")
        }
        guard let fleet = settings.fleet, fleet.password == nil, case .tcp(let host, _) = fleet.server.address,
            !host.isEmpty, !fleet.server.address.isLocal
        else { return }
        reader.warning(
            places["fleet"],
            "the fleet's server \(fleet.server) is reached without a password: whoever reaches it can delete what is shared, and make "
                + "machines miss writes; give it one by \"password\""
        )
    }
}
