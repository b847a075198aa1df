import ArgumentParser
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Larder
@testable import Settings

/// What the environment says in the place of flags.
struct EnvironmentVariablesTests {
    /// The settings of `larder serve` with these arguments, and with variables beside those that it needs.
    private func settings(_ arguments: String..., variables: [String: String]) throws -> Configuration {
        let serve = try #require(try LarderCommand.parseAsRoot(["serve"] + arguments) as? ServeCommand)
        return try serve.settings(environment: variables.merging(["STATE_DIRECTORY": "/s"]) { $1 })
    }

    /// The message that refuses the variables.
    private func refusal(_ variables: [String: String]) -> String {
        do {
            _ = try settings(variables: variables)
            return ""
        } catch { return LarderCommand.message(for: error) }
    }

    @Test func `a URL, a preset or a config may be named in the environment`() throws {
        let url = try settings(variables: ["LARDER_UPSTREAM": "https://a.example"])
        #expect(url.upstreams.map(\.url.description) == ["https://a.example"])
        #expect(try settings(variables: ["LARDER_PRESET": "github"]).upstreams.map(\.name) == ["github"])
        let both = try settings(variables: ["LARDER_PRESET": "github", "LARDER_UPSTREAM": "https://a.example"])
        #expect(both.upstreams.map { "\($0.name) \($0.url)" } == ["github https://a.example"])
        let folder = TemporaryFolder()
        let config = try folder.write("upstreams: { own: { url: 'https://b.example' } }\n", to: "larder.yaml")
        let moved = try settings(variables: ["LARDER_CONFIG": config, "LARDER_UPSTREAM": "https://a.example"])
        #expect(moved.upstreams.map { "\($0.name) \($0.url)" } == ["own https://a.example"])
    }

    @Test func `flags come before all variables that name a source`() throws {
        let variables = [
            "LARDER_PRESET": "nonsense", "LARDER_CONFIG": "/nowhere", "LARDER_UPSTREAM": "https://a.example",
        ]
        let preset = try settings("--preset", "github", variables: variables)
        #expect(preset.upstreams.map { "\($0.name) \($0.url)" } == ["github https://api.github.com"])
        let url = try settings("--upstream", "https://b.example", variables: variables)
        #expect(url.upstreams.map(\.url.description) == ["https://b.example"])
    }

    @Test func `LARDER_BIND moves the default addresses, without a warning, and a config comes first`() throws {
        let moved = try settings(variables: ["LARDER_UPSTREAM": "https://a.example", "LARDER_BIND": "0.0.0.0"])
        #expect(moved.listen == [.tcp(host: "0.0.0.0", port: 8787)])
        #expect(moved.admin == [.tcp(host: "0.0.0.0", port: 8788)])
        let six = try settings(variables: ["LARDER_UPSTREAM": "https://a.example", "LARDER_BIND": "[::]"])
        #expect(six.listen == [.tcp(host: "::", port: 8787)])
        let overrides = { (host: String?) in
            var overrides = ConfigOverrides(upstream: try UpstreamURL("https://a.example"))
            overrides.bind = host
            return overrides
        }
        let text = "listen: 0.0.0.0:9000\n"
        let own = ConfigFile.parse(text, file: "x", environment: [:], overriding: try overrides("0.0.0.0"))
        #expect(own.settings.listen == [.tcp(host: "0.0.0.0", port: 9000)])
        #expect(own.settings.admin == [.tcp(host: "0.0.0.0", port: 8788)])
        #expect(own.diagnostics.isEmpty)
        #expect(
            ConfigFile.parse(text, file: "x", environment: [:], overriding: try overrides(nil)).diagnostics.count == 1
        )
    }

    @Test func `LARDER_HOSTS adds names, and LARDER_FRESH stands for its flag`() throws {
        let folder = TemporaryFolder()
        let config = try folder.write("upstreams: { a: { url: 'https://b.example', hosts: [x] } }\n", to: "larder.yaml")
        let variables = ["LARDER_CONFIG": config, "LARDER_HOSTS": "larder, larder.svc:80,", "LARDER_FRESH": "1m"]
        let read = try settings(variables: variables)
        #expect(read.upstreams[0].hosts == ["x", "larder", "larder.svc:80"])
        #expect(read.upstreams[0].freshUnsaid == .seconds(60))
        #expect(try settings("--fresh", "5s", variables: variables).upstreams[0].freshUnsaid == .seconds(5))
    }

    @Test func `an empty variable counts as unset`() throws {
        let variables = [
            "LARDER_PRESET": "", "LARDER_CONFIG": "", "LARDER_BIND": "", "LARDER_HOSTS": "", "LARDER_FRESH": "",
        ]
        let read = try settings(variables: variables.merging(["LARDER_UPSTREAM": "https://a.example"]) { $1 })
        #expect(read.listen == Configuration().listen)
        #expect(read.upstreams[0].freshUnsaid == nil)
    }

    @Test(
        arguments: [
            (["LARDER_UPSTREAM": "api.example.com"], "LARDER_UPSTREAM: "),
            (["LARDER_PRESET": "githob"], "LARDER_PRESET: "),
            (["LARDER_PRESET": "github", "LARDER_CONFIG": "/x"], "LARDER_CONFIG and LARDER_PRESET are both set"),
            (["LARDER_UPSTREAM": "https://a.example", "LARDER_FRESH": "60"], "LARDER_FRESH: "),
            (
                ["LARDER_UPSTREAM": "https://a.example", "LARDER_FRESH": "1500ms"],
                "LARDER_FRESH: 1s500ms is not a whole number"
            ),
            (
                ["LARDER_UPSTREAM": "https://a.example", "LARDER_HOSTS": "http://a"],
                "LARDER_HOSTS: \"http://a\" is not a host name"
            ),
            (
                ["LARDER_UPSTREAM": "https://a.example", "LARDER_BIND": "0.0.0.0:8787"],
                "LARDER_BIND: \"0.0.0.0:8787\" is not an IP"
            ),
            ([:], "LARDER_UPSTREAM, LARDER_PRESET or LARDER_CONFIG"),
        ] as [([String: String], String)]
    )
    func `a mistake names its variable`(_ variables: [String: String], _ text: String) {
        #expect(refusal(variables).contains(text), "\(refusal(variables))")
    }

    @Test func `unknown variables are reported, with the flag or name that may be meant, except those of Kubernetes`() {
        let variables = [
            "LARDER_UPSTRAEM": "x", "LARDER_LISTEN": "x", "LARDER_ACCESS_LOG": "x", "LARDER_HOST": "x",
            "LARDER_BIND": "x",
            "LARDER_PORT": "x", "LARDER_SERVICE_HOST": "x", "LARDER_SERVICE_PORT_HTTP": "x",
            "LARDER_PORT_8787_TCP_ADDR": "x",
            "LARDER_ADMIN_SERVICE_HOST": "x", "LARDER_ADMIN_PORT": "x", "UPSTREAM": "x", "LARDER_BINARY": "x",
        ]
        #expect(
            EnvironmentMistakes.find(in: variables) == [
                "LARDER_ACCESS_LOG is not read; use the flag --access-log of larder serve",
                "LARDER_HOST is not read; did you mean LARDER_HOSTS?",
                "LARDER_LISTEN is not read; use the flag --listen of larder serve",
                "LARDER_UPSTRAEM is not read; did you mean LARDER_UPSTREAM?",
            ]
        )
    }
}
