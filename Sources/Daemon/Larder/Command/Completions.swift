import ArgumentParser
import Mapping
import Settings

extension CompletionKind {
    /// Names that are found out when they are asked for, by the environment.
    static func names(_ find: @escaping @Sendable ([String: String]) -> [String]) -> CompletionKind {
        .custom { (_: [String], _: Int, prefix: String) in
            find(Environment.variables).filter { $0.hasPrefix(prefix) }
        }
    }

    /// The models of the config that the daemon reads.
    static let models = names { environment in
        Set(usualSettings(environment).upstreams.flatMap { $0.models.map(\.name) }).sorted()
    }

    /// The upstreams of that config.
    static let upstreams = names { usualSettings($0).upstreams.map(\.name) }

    /// The paths of that config's routes.
    static let routes = names { environment in
        Set(usualSettings(environment).upstreams.flatMap { $0.routes.map(\.declaration.path) }).sorted()
    }

    /// What a command line says of another config is not looked at: completions come while it is being typed.
    private static func usualSettings(_ environment: [String: String]) -> Configuration {
        ConfigOptions.usualPath(environment: environment)
            .map { ConfigFile.read($0, environment: environment).settings } ?? Configuration()
    }
}
