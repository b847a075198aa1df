import ArgumentParser
import Glibc
import HTTPSemantics
import Settings

/// What environment variables say in the place of flags and of a config, mostly in a container.
///
/// An empty variable counts as unset, as `${NAME}` of an unset one is in a compose file.
extension ConfigOverrides {
    /// Takes over where the daemon can be reached: `LARDER_BIND` and `LARDER_HOSTS`.
    mutating func takeReach(from environment: [String: String]) throws {
        if let text = Self.value("LARDER_BIND", environment) {
            let host = text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
            var address = in6_addr()
            guard inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1 else {
                throw ValidationError(
                    "LARDER_BIND: \"\(text)\" is not an IP address; write 0.0.0.0 for all of IPv4, or :: for all addresses"
                )
            }
            bind = host
        }
        if let text = Self.value("LARDER_HOSTS", environment) {
            hosts = try given(text, for: "LARDER_HOSTS", HostName.list)
        }
    }

    /// What `LARDER_FRESH` says, which stands for `--fresh`.
    static func fresh(_ environment: [String: String]) throws -> Duration? {
        try value("LARDER_FRESH", environment).map { try wholeSeconds($0, for: "LARDER_FRESH") }
    }

    static func wholeSeconds(_ text: String, for name: String? = nil) throws -> Duration {
        let duration = try given(text, for: name, Units.duration)
        guard duration.components.attoseconds == 0 else {
            throw ValidationError(
                "\(name.map { "\($0): " } ?? "")\(Units.text(duration)) is not a whole number of seconds"
            )
        }
        return duration
    }

    private static func value(_ name: String, _ environment: [String: String]) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// Variables that look as if they were Larder's, and are not read.
enum EnvironmentMistakes {
    private static let prefix = "LARDER_"
    private static let read = ["ADMIN", "ADMIN_TOKEN", "BIND", "CONFIG", "FRESH", "HOSTS", "PRESET", "UPSTREAM", "URL"]
    private static let flags = ["ACCESS_LOG", "JSON", "LISTEN", "LOG_LEVEL", "MODE", "STORE", "WORKERS"]

    /// A sentence for each; others, such as those that Kubernetes makes for a service named `larder`, are no mistakes.
    static func find(in environment: [String: String]) -> [String] {
        environment.keys.sorted().compactMap { name in
            guard name.hasPrefix(prefix) else { return nil }
            let word = String(name.dropFirst(prefix.count))
            if read.contains(word) { return nil }
            if flags.contains(word) {
                let flag = word.lowercased().replacing("_", with: "-")
                return "\(name) is not read; use the flag --\(flag) of larder serve"
            }
            return Suggestion.nearest(to: word, among: read).map { "\(name) is not read; did you mean \(prefix)\($0)?" }
        }
    }
}
