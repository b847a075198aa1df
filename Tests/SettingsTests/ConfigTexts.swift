@testable import Settings

/// Parses a config and gives its diagnostics as `line:column: message`.
func complaints(_ yaml: String, environment: [String: String] = [:]) -> [String] {
    ConfigFile.parse(yaml, file: "larder.yaml", environment: environment).diagnostics.map { diagnostic in
        let place = diagnostic.place.map { "\($0.line):\($0.column): " } ?? ""
        return place + (diagnostic.severity == .warning ? "warning: " : "") + diagnostic.message
    }
}

func settings(
    _ yaml: String,
    environment: [String: String] = [:],
    overriding: ConfigOverrides = .init()
) throws -> Configuration {
    try ConfigFile.parse(yaml, file: "larder.yaml", environment: environment, overriding: overriding).checked().settings
}

/// A config that cannot be used, with everything there is to say about it.
struct ConfigError: Error, CustomStringConvertible {
    let diagnostics: [Diagnostic]

    var description: String { diagnostics.map(\.description).joined(separator: "\n") }
}

extension ConfigFile {
    /// The settings and the warnings; throws when there is any error.
    func checked() throws -> (settings: Configuration, warnings: [Diagnostic]) {
        if !errors.isEmpty { throw ConfigError(diagnostics: diagnostics) }
        return (settings, diagnostics)
    }
}

/// The first line of most configs here: one upstream, without a mistake.
let one = "upstreams: { a: { url: 'https://a.example' } }\n"

/// A config in which one upstream has what is under test.
func upstream(_ keys: String) -> String {
    "upstreams:\n  a:\n    url: https://a.example\n" + keys.split(separator: "\n").map { "    \($0)\n" }.joined()
}
