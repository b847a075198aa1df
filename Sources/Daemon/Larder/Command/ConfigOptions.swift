import ArgumentParser
import Foundation
import HTTPSemantics
import Mapping
import Proxy
import Settings

/// The source of the settings: a file, a preset, or a URL alone.
struct ConfigOptions: ParsableArguments {
    @Option(help: .value("file", "The config file. (default: that of LARDER_CONFIG)"), completion: .config)
    var config: String?

    @Option(
        help: .value("name", "A config that comes with Larder: github, gitlab, mastodon or stripe."),
        completion: .names { Preset.names(environment: $0) }
    )
    var preset: String?

    @Option(help: .value("url", "The URL of the API; with a config or preset, it replaces the url there."))
    var upstream: String?

    func validate() throws {
        try GivenText.check(["--config": config, "--preset": preset, "--upstream": upstream])
        if config != nil, preset != nil { throw ValidationError("use either --config or --preset, not both") }
    }

    func file(_ overrides: ConfigOverrides, environment: [String: String]) throws -> ConfigFile {
        var overrides = overrides
        let chosen = try chosen(environment)
        overrides.upstream = chosen.upstream
        if let path = chosen.path { return ConfigFile.read(path, environment: environment, overriding: overrides) }
        guard overrides.upstream != nil else {
            let places = Self.usualPaths(environment).joined(separator: " and no ")
            throw ValidationError(
                "name the API: --upstream URL, --preset NAME or --config FILE, or the same in LARDER_UPSTREAM, LARDER_PRESET or "
                    + "LARDER_CONFIG (there is no \(places))"
            )
        }
        return ConfigFile.parse("", file: "command line", environment: environment, overriding: overrides)
    }

    /// Reads and checks the selected config; mistakes are printed and end the command.
    func settings() throws -> Configuration {
        let file = try file(ConfigOverrides(), environment: Environment.variables)
        for diagnostic in file.errors { Terminal.complain(diagnostic.description) }
        guard file.errors.isEmpty else { throw ExitCode.badConfig }
        return file.settings
    }

    func portable(_ settings: Configuration, environment: [String: String]) throws -> String {
        ConfigFile.portable(try path(environment: environment), settings, environment: environment)
    }

    /// The file to read; nil if a URL alone suffices.
    func path(environment: [String: String]) throws -> String? { try chosen(environment).path }

    /// The file to read, and the URL of the API; if the command line names neither, what the environment says in its place.
    private func chosen(_ environment: [String: String]) throws -> (path: String?, upstream: UpstreamURL?) {
        let isGiven = config != nil || preset != nil || upstream != nil
        let variables = isGiven ? [:] : environment.filter { !$0.value.isEmpty }
        let url =
            try upstream.map(UpstreamURL.option)
            ?? variables["LARDER_UPSTREAM"].map { try given($0, for: "LARDER_UPSTREAM", UpstreamURL.init) }
        if let name = preset ?? variables["LARDER_PRESET"] {
            guard variables["LARDER_CONFIG"] == nil else {
                throw ValidationError("LARDER_CONFIG and LARDER_PRESET are both set; keep one of them")
            }
            do {
                return (try Preset.find(name, environment: environment).path, url)
            } catch { throw ValidationError((isGiven ? "" : "LARDER_PRESET: ") + error.description) }
        }
        if let path = config ?? variables["LARDER_CONFIG"] { return (path, url) }
        return (url == nil ? Self.usualPath(environment: environment) : nil, url)
    }

    /// A usual file that is not read because of a variable, which its owner may not expect.
    func passedOver(environment: [String: String]) -> (path: String, variable: String)? {
        guard config == nil, preset == nil, upstream == nil, environment["LARDER_CONFIG"] ?? "" == "",
            let variable = ["LARDER_PRESET", "LARDER_UPSTREAM"].first(where: { environment[$0] ?? "" != "" }),
            let path = Self.usualPath(environment: environment)
        else { return nil }
        return (path, variable)
    }

    /// The default file: that of `LARDER_CONFIG`, else the first existing one of the usual files.
    static func usualPath(environment: [String: String]) -> String? {
        if let named = environment["LARDER_CONFIG"], !named.isEmpty { return named }
        return usualPaths(environment).first { access($0, F_OK) == 0 }
    }

    private static func usualPaths(_ environment: [String: String]) -> [String] {
        Defaults(environment: environment).configFolders.map { "\($0)/larder.yaml" }
    }
}

extension ConfigFile {
    /// The settings; warnings are printed, errors end the command.
    func usable() throws -> Configuration {
        for diagnostic in diagnostics { Terminal.complain(diagnostic.description) }
        guard errors.isEmpty else { throw ExitCode.badConfig }
        return settings
    }
}

extension Configuration {
    var compiledUpstreams: [ProxiedUpstream] {
        get throws { try CompiledConfiguration(self).upstreams }
    }
}

/// Reads a value of the command line; the error says what to write instead.
func given<Value>(
    _ text: String,
    for option: String? = nil,
    _ read: (String) throws(InvalidValue) -> Value
) throws -> Value {
    do {
        return try read(text)
    } catch { throw ValidationError((option.map { "\($0): " } ?? "") + error.description) }
}

extension UpstreamURL {
    static func option(_ text: String) throws -> UpstreamURL { try given(text, for: "--upstream", UpstreamURL.init) }
}

extension Address {
    static func option(_ text: String) throws -> Address { try given(text, Address.init) }
}

/// `-H`: fields of the request that a command examines.
struct FieldOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .customLong("header")],
        parsing: .unconditionalSingleValue,
        help: .value("name: value", "A header field of the request; may be repeated.")
    )
    var header: [String] = []
}

/// The body of a POST that reads, as curl takes it.
struct DataOption: ParsableArguments {
    @Option(
        help: .value("text", "The JSON body of a POST that reads; @FILE reads it from a file, @- from standard input.")
    )
    var data: String?

    func body() throws -> [UInt8]? {
        guard let data else { return nil }
        guard data.hasPrefix("@") else { return Array(data.utf8) }
        return try FileBytes.readInput(String(data.dropFirst()), limit: ReadBody.byteLimit)
    }
}

enum GivenNumber {
    static func check(_ option: String, _ number: Int, in range: ClosedRange<Int>) throws {
        if range.contains(number) { return }
        throw ValidationError("\(option): \(number) is not a number from \(range.lowerBound) to \(range.upperBound)")
    }
}

/// Checks for empty values on the command line, which unset shell variables produce.
enum GivenText {
    static func require(_ arguments: KeyValuePairs<String, String?>) throws {
        for (name, text) in arguments where text?.isEmpty == true {
            throw ValidationError("the \(name) is empty; is a variable unset?")
        }
    }

    static func check(_ options: KeyValuePairs<String, String?>) throws {
        for (name, text) in options where text?.isEmpty == true {
            throw ValidationError("\(name) is empty: give it a value, or leave it out")
        }
    }

    static func check(_ options: KeyValuePairs<String, [String]>) throws {
        for (name, texts) in options where texts.contains("") {
            throw ValidationError("\(name) is empty: give it a value, or leave it out")
        }
    }
}

extension FileBytes {
    /// The bytes of a file, or of standard input for `-`.
    static func readInput(_ file: String, limit: Int) throws -> [UInt8] {
        file == "-" ? try readStandardInput(limit: limit) : try read(file, limit: limit).bytes
    }
}

enum Environment {
    static var variables: [String: String] { ProcessInfo.processInfo.environment }
}

extension ArgumentHelp {
    static let urlOrPath: Self = "A path as programs send it to Larder or as it goes upstream, or a URL of either."

    static func value(_ name: String, _ abstract: String) -> ArgumentHelp { ArgumentHelp(abstract, valueName: name) }
}

extension CompletionKind {
    static let config = CompletionKind.file(extensions: ["yaml", "yml"])

    static func names(_ find: @escaping @Sendable ([String: String]) -> [String]) -> CompletionKind {
        .custom { (_: [String], _: Int, prefix: String) in find(Environment.variables).filter { $0.hasPrefix(prefix) } }
    }

    static let models = names { environment in
        Set(usualSettings(environment).upstreams.flatMap { $0.models.map(\.name) }).sorted()
    }

    static let upstreams = names { usualSettings($0).upstreams.map(\.name) }

    static let routes = names { environment in
        Set(usualSettings(environment).upstreams.flatMap { $0.routes.map(\.declaration.path) }).sorted()
    }

    /// Ignores a config named on the command line, because completion happens while that is being typed.
    private static func usualSettings(_ environment: [String: String]) -> Configuration {
        ConfigOptions.usualPath(environment: environment)
            .map { ConfigFile.read($0, environment: environment).settings } ?? Configuration()
    }
}
