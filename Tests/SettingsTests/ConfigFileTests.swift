import HTTPSemantics
import Mapping
import TestSupport
import Testing

@testable import CachePolicy
@testable import Settings

struct ConfigFileTests {
    @Test func `streams are looked at as often as a short interval or heartbeat needs`() {
        #expect(Configuration().live.tick == .milliseconds(200))
        for (keys, tick) in [("interval: 10ms", 10), ("heartbeat: 50ms", 50), ("interval: 1s", 200)] {
            let file = ConfigFile.parse("live: { \(keys) }", file: "larder.yaml", environment: [:])
            #expect(file.settings.live.tick == .milliseconds(tick))
        }
    }

    @Test func `the smallest config names one upstream, and all else has its default`() throws {
        let settings = try settings(one)
        var expected = Configuration()
        expected.upstreams = [Configuration.Upstream()]
        expected.upstreams[0].name = "a"
        expected.upstreams[0].url = try UpstreamURL("https://a.example")
        #expect(settings == expected)
        #expect(settings.listen == [.tcp(host: "127.0.0.1", port: 8787)])
        #expect(settings.admin == [.tcp(host: "127.0.0.1", port: 8788)])
    }

    @Test func `models, routes and errors are read in short and long form`() throws {
        let upstream = try settings(
            one + """
                models:
                  User: { identity: id, keys: [login], properties: { login: login, avatarURL: { from: avatar_url, as: url } } }
                  Label: { identity: id, share: all }
                  Problem: { identity: [] }
                  Issue:
                    identity: [id]
                    modified: updated_at
                    properties:
                      state: { as: { enum: { open: open, closed: done } } }
                      reporterLogin: user.login
                      user: { model: User }
                      labels: { from: labels, models: Label }
                    local: score
                routes:
                  - { path: "repos/*/*/issues", model: [Issue], fresh: 5m, stale: 1d }
                  - { path: "users/{login}", method: GET, status: 200, model: User, object: { login: login } }
                  - { path: "search/issues", model: [Issue], root: items, vary: { ignore: Origin } }
                  - { path: "feed", cache: never }
                errors:
                  - { path: "**", model: Problem }
                  - { path: "**", status: 5xx, model: Problem, root: error }
                """
        ).upstreams[0]
        #expect(upstream.models.map(\.name) == ["User", "Label", "Problem", "Issue"])
        #expect(
            upstream.models[3]
                == ModelDeclaration(
                    name: "Issue",
                    identity: ["id"],
                    properties: [
                        .init(
                            name: "state",
                            from: "state",
                            conversion: .enumeration([
                                .init(wire: "open", mapped: "open"), .init(wire: "closed", mapped: "done"),
                            ])
                        ),
                        .init(name: "reporterLogin", from: "user.login"),
                        .init(name: "user", from: "user", relation: .one("User")),
                        .init(name: "labels", from: "labels", relation: .many("Label")),
                    ],
                    local: ["score"],
                    modified: "updated_at"
                )
        )
        #expect(upstream.models[0].properties[1].conversion == .named("url"))
        #expect(upstream.models[1].sharesAll)
        #expect(upstream.routes[0].body == BodyRule(model: "Issue", isList: true))
        #expect(upstream.routes[0].overrides.fresh == .seconds(300))
        #expect(upstream.routes[0].overrides.stale == .seconds(86_400))
        #expect(
            upstream.routes[1].declaration
                == RouteDeclaration(path: "users/{login}", method: "GET", status: .exact(200))
        )
        #expect(upstream.routes[1].object == [.init(key: "login", capture: "login")])
        #expect(upstream.routes[2].body == BodyRule(model: "Issue", isList: true, root: "items"))
        #expect(upstream.routes[2].overrides.vary.ignore == ["Origin"])
        #expect(upstream.routes[3].overrides.cache == .never)
        #expect(upstream.errors.map(\.declaration.status) == [.any, .class(5)])
    }

    @Test func `top-level models and routes apply to every upstream, after its own`() throws {
        let settings = try settings(
            """
            upstreams:
              a: { url: "https://a.example", prefix: /a, models: { Post: { identity: id } }, routes: [{ path: p, model: Post }] }
              b: { url: "https://b.example/api/", prefix: /b/ }
            models: { User: { identity: id } }
            routes: [{ path: u, model: User }]
            """
        )
        #expect(settings.upstreams[0].models.map(\.name) == ["Post", "User"])
        #expect(settings.upstreams[0].routes.map(\.declaration.path) == ["p", "u"])
        #expect(settings.upstreams[1].models.map(\.name) == ["User"])
        #expect(settings.upstreams[1].prefix == "/b")
        #expect(settings.upstreams[1].url.basePath == "/api")
    }

    @Test func `variables are replaced by their values, and a doubled dollar by one`() throws {
        let yaml = one + "store: { path: '${DIR}/x$${y}/${NAME}.db' }\nworkers: ${N}\n"
        let path = try settings(yaml, environment: ["DIR": "/d", "NAME": "n", "N": "3"])
        #expect(path.store.path == "/d/x${y}/n.db")
        #expect(path.workers == 3)
    }

    @Test func `sockets have modes and groups in the long form`() throws {
        let settings = try settings(
            one
                + "listen: [{ address: 'unix:/run/l', mode: '0660', group: root }, '[::1]:80']\nadmin: { address: 'unix:/run/a', mode: 600 }\n"
        )
        #expect(settings.listen == [.unix(path: "/run/l", mode: 0o660, group: "root"), .tcp(host: "::1", port: 80)])
        #expect(settings.admin == [.unix(path: "/run/a", mode: 0o600)])
    }

    @Test func `flags override the file, and --upstream its upstreams`() throws {
        var overrides = ConfigOverrides(
            upstream: try UpstreamURL("http://127.0.0.1:9001"),
            listen: [.unix(path: "/run/x")],
            admin: [.tcp(host: "127.0.0.1", port: 1)],
            storePath: "/tmp/s"
        )
        (overrides.mode, overrides.workers, overrides.logLevel) = (.offline, 2, .debug)
        let settings = try settings(one + "listen: 127.0.0.1:1\nworkers: 8\nmode: online\n", overriding: overrides)
        #expect(settings.upstreams[0].url.description == "http://127.0.0.1:9001")
        #expect(settings.listen == [.unix(path: "/run/x")])
        #expect(settings.store.path == "/tmp/s")
        #expect(settings.mode == .offline)
        #expect(settings.workers == 2)
        #expect(settings.log.level == .debug)
    }

    @Test(arguments: [
        ("https://git.example.com", true), ("https://git.example.com/api/v3", false),
        ("https://api.acme.ghe.com", false),
        ("http://127.0.0.1:9", false), ("http://localhost", false), ("https://api.github.com", false),
    ])
    func `a URL without the path of an Enterprise server gets a warning with that path`(url: String, warns: Bool) throws
    {
        let overrides = ConfigOverrides(upstream: try UpstreamURL(url))
        let path = "\(Repository.root)/config/github.yaml"
        let warnings = ConfigFile.read(path, environment: [:], overriding: overrides).diagnostics.map(\.message)
        #expect(warnings.contains { $0.hasSuffix("write --upstream \(url)/api/v3") } == warns, "\(warnings)")
        #expect(warnings.count == (warns ? 1 : 0))
    }

    @Test func `a URL alone is a complete config`() throws {
        let settings = try settings("", overriding: ConfigOverrides(upstream: try UpstreamURL("https://a.example/v1")))
        #expect(settings.upstreams.map(\.url.description) == ["https://a.example/v1"])
        #expect(settings.upstreams[0].models.isEmpty)
    }
}

extension ConversionDeclaration {
    /// A map of strings to strings.
    static func enumeration(
        _ cases: [Pair],
        fallback: String? = nil,
        reverseFallback: String? = nil
    ) -> ConversionDeclaration {
        .values(
            cases,
            fallback: fallback.map(Pair.json),
            reverseFallback: reverseFallback.map(Pair.json)
        )
    }
}

extension ConversionDeclaration.Pair {
    init(wire: String, mapped: String) { self.init(wire: Self.json(wire), mapped: Self.json(mapped)) }

    fileprivate static func json(_ text: String) -> [UInt8] { Array("\"\(text)\"".utf8) }
}
