/// Where things are when nobody says.
package struct Defaults: Sendable {
    package let environment: [String: String]

    package init(environment: [String: String]) {
        self.environment = environment
    }

    /// The store: with the service's state under systemd, else with the user's caches; nil without any home.
    package var storePath: String? {
        // systemd separates several directories by colons.
        if let state = environment["STATE_DIRECTORY"]?.split(separator: ":").first { return "\(state)/larder.db" }
        if let cache = absolute("XDG_CACHE_HOME") { return "\(cache)/larder/larder.db" }
        return absolute("HOME").map { "\($0)/.cache/larder/larder.db" }
    }

    /// The folders of config files, the most personal first.
    package var configFolders: [String] {
        let personal = absolute("XDG_CONFIG_HOME") ?? absolute("HOME").map { "\($0)/.config" }
        return [personal.map { "\($0)/larder" }, "/etc/larder"].compactMap(\.self)
    }

    /// The XDG specification has relative paths ignored.
    private func absolute(_ name: String) -> String? {
        environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil }
    }
}
