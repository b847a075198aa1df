import Mapping
import Testing

@testable import Daemon

/// Parses a config and gives its diagnostics as `line:column: message`.
private func complaints(_ yaml: String, environment: [String: String] = [:]) -> [String] {
    ConfigFile.parse(yaml, file: "larder.yaml", environment: environment).diagnostics.map { diagnostic in
        let place = diagnostic.place.map { "\($0.line):\($0.column): " } ?? ""
        return place + (diagnostic.severity == .warning ? "warning: " : "") + diagnostic.message
    }
}

private func settings(
    _ yaml: String,
    environment: [String: String] = [:],
    overriding: ConfigOverrides = .init()
) throws -> Settings {
    try ConfigFile.parse(yaml, file: "larder.yaml", environment: environment, overriding: overriding).checked().settings
}

/// The first line of most configs here: one upstream, without a mistake.
private let one = "upstreams: { a: { url: 'https://a.example' } }\n"

/// A config in which one upstream has what is under test.
private func upstream(_ keys: String) -> String {
    "upstreams:\n  a:\n    url: https://a.example\n" + keys.split(separator: "\n").map { "    \($0)\n" }.joined()
}

struct ConfigFileTests {
    // MARK: What is right

    @Test func `the least config names one upstream, all else is at its default`() throws {
        let settings = try settings(one)
        var expected = Settings()
        expected.upstreams = [Settings.Upstream()]
        expected.upstreams[0].name = "a"
        expected.upstreams[0].url = try UpstreamURL("https://a.example")
        #expect(settings == expected)
        #expect(settings.listen == [.tcp(host: "127.0.0.1", port: 8787)])
        #expect(settings.admin == .tcp(host: "127.0.0.1", port: 8788))
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
                            transform: .enumeration([
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
        #expect(upstream.models[0].properties[1].transform == .named("url"))
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

    @Test func `what stands at the top holds for every upstream, after its own`() throws {
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

    @Test func `variables stand for their values, a doubled dollar for itself`() throws {
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
        #expect(settings.admin == .unix(path: "/run/a", mode: 0o600))
    }

    @Test func `flags win over the file, and an upstream's URL over the file's`() throws {
        let overrides = ConfigOverrides(
            upstream: try UpstreamURL("http://127.0.0.1:9001"),
            listen: [.unix(path: "/run/x")],
            admin: .tcp(host: "127.0.0.1", port: 1),
            storePath: "/tmp/s",
            mode: .offline,
            workers: 2,
            logLevel: .debug
        )
        let settings = try settings(one + "listen: 127.0.0.1:1\nworkers: 8\nmode: online\n", overriding: overrides)
        #expect(settings.upstreams[0].url.description == "http://127.0.0.1:9001")
        #expect(settings.listen == [.unix(path: "/run/x")])
        #expect(settings.store.path == "/tmp/s")
        #expect(settings.mode == .offline)
        #expect(settings.workers == 2)
        #expect(settings.log.level == .debug)
    }

    @Test func `a URL alone is a config`() throws {
        let settings = try settings("", overriding: ConfigOverrides(upstream: try UpstreamURL("https://a.example/v1")))
        #expect(settings.upstreams.map(\.url.description) == ["https://a.example/v1"])
        #expect(settings.upstreams[0].models.isEmpty)
    }

    // MARK: What is wrong

    @Test func `every mistake is found at once, in the order of the file`() {
        let yaml = """
            upstreams:
              a:
                url: example.com
                prefx: /a
            workers: many
            modle: { }
            timeouts: { connect: 5 }
            """
        #expect(
            complaints(yaml) == [
                "3:10: upstreams.a.url: \"example.com\" is no URL; write it with its scheme, for example \"https://example.com\"",
                "4:5: upstreams.a: unknown key \"prefx\"; did you mean \"prefix\"?",
                "5:10: workers: \"many\" is not a whole number from 1 to 64",
                "6:1: unknown key \"modle\"; did you mean \"mode\"?",
                "7:22: timeouts.connect: \"5\" has no unit; write 5s for seconds",
            ]
        )
    }

    @Test func `a mistake is told with file, line and column`() throws {
        let file = ConfigFile.parse("upstreams: {}", file: "/etc/larder/larder.yaml", environment: [:])
        #expect(
            file.diagnostics.map(\.description)
                == ["/etc/larder/larder.yaml:1:12: error: upstreams: there is none; name one, with its url"]
        )
        #expect(throws: ConfigError.self) { try file.checked() }
    }

    @Test(arguments: [
        ("", "no upstream is named; add one, for example `upstreams: { github: { url: https://api.github.com } }`"),
        ("- a", "1:1: a list stands here; write keys with values"),
        ("upstreams: {}", "1:12: upstreams: there is none; name one, with its url"),
        ("upstreams:", "1:11: upstreams: nothing stands here; write names of upstreams, each with its keys"),
        (
            "upstreams: { a: {} }",
            "1:17: upstreams.a: \"url\" is missing; add it, for example `url: https://api.github.com`"
        ),
        (one + one, "1:1: \"upstreams\" stands twice among the same keys; keep one of them"),
        (one + "connect: 5s", "2:1: unknown key \"connect\" here; it belongs under \"timeouts\""),
        (one + "prefix: /a", "2:1: unknown key \"prefix\" here; it belongs under \"upstreams.NAME\""),
        (
            one + "log: { colour: red }",
            "2:8: log: unknown key \"colour\"; known here are level"
        ),
        (one + "? [a, b]\n: c\n", "2:3: a key is plain text, this is a list"),
        (one + "workers: ~", "2:10: workers: nothing stands here; write a whole number from 1 to 64"),
        (one + "workers: 0", "2:10: workers: \"0\" is not a whole number from 1 to 64"),
        (one + "workers: [1]", "2:10: workers: a list stands here; write a whole number from 1 to 64"),
        (one + "mode: offlne", "2:7: mode: \"offlne\" is not one of online, offline; did you mean \"offline\"?"),
        (
            one + "timeouts: { connect: 5 s }",
            "2:22: timeouts.connect: \"5 s\" is not a whole number with a unit, such as 30s or 64MiB"
        ),
        (one + "timeouts: { connect: 2d }", "2:22: timeouts.connect: 2d is more than 1d, the most allowed"),
        (one + "timeouts: { stall: 0s }", "2:20: timeouts.stall: 0s is less than 1ms, the least allowed"),
        (
            one + "timeouts: { stall: 5y }",
            "2:20: timeouts.stall: \"5y\" has an unknown unit \"y\"; units are ms, s, m, h, d and w"
        ),
        (
            one + "limits: { head: 5megs }",
            "2:17: limits.head: \"5megs\" has an unknown unit \"megs\"; units are B, KiB, MiB, GiB, TiB, kB, MB, GB and TB"
        ),
        (one + "limits: { head: 1GiB }", "2:17: limits.head: 1GiB is more than 1MiB, the most allowed"),
        (
            one + "listen: 8787",
            "2:9: listen: \"8787\" has no port; write HOST:PORT, for example \"127.0.0.1:8787\", or unix:PATH"
        ),
        (
            one + "listen: ':8787'",
            "2:9: listen: \":8787\" has no host; write \"127.0.0.1:8787\" (or \"0.0.0.0:8787\" for every interface)"
        ),
        (one + "listen: /run/x", "2:9: listen: \"/run/x\" looks like a socket's path; write \"unix:/run/x\""),
        (
            one + "listen: 'a:99999'",
            "2:9: listen: \"99999\" is no port; a port is a number from 0 to 65535 (0: any free one)"
        ),
        (
            one + "listen: '::1:80'",
            "2:9: listen: \"::1:80\" is ambiguous; write an IPv6 address in brackets: \"[::1]:PORT\""
        ),
        (one + "listen: []", "2:9: listen: the list is empty; name an address or leave the key out"),
        (one + "listen: ['127.0.0.1:1', '127.0.0.1:1']", "2:25: listen: 127.0.0.1:1 is named twice"),
        (
            one + "listen: { address: '127.0.0.1:80', mode: '0660' }",
            "2:20: listen: only a Unix socket has a mode and a group; 127.0.0.1:80 is a TCP address"
        ),
        (
            one + "listen: { address: 'unix:/x', mode: rw }",
            "2:37: listen.mode: \"rw\" is no mode; write permissions in octal such as \"0660\""
        ),
        (
            one + "listen: { address: 'unix:/x', group: no such }",
            "2:9: the socket /x is to belong to the group \"no such\", which this machine does not have"
        ),
        (
            one + "admin: 127.0.0.1:8787",
            "2:8: the admin side and \"a\" cannot both listen on 127.0.0.1:8787; change one of them"
        ),
        (
            one + "store: { path: '${NOWHERE}/x' }",
            "2:16: store.path: the environment variable NOWHERE is not set; a literal \"${\" is written \"$${\""
        ),
        (
            one + "store: { path: '${A' }",
            "2:16: store.path: \"${A\" has a \"${\" without its \"}\"; a literal \"${\" is written \"$${\""
        ),
    ])
    func `a mistake in a value says what to write instead`(_ yaml: String, _ message: String) {
        #expect(complaints(yaml) == [message])
    }

    @Test(arguments: [
        (
            "{ path: ** }",
            "this is not YAML: did not find expected alphabetic or numeric character, while scanning an alias; a value that begins with \"*\" needs quotes"
        ),
        ("[", "this is not YAML: did not find expected node content, while parsing a flow node"),
        (
            "{ path: ${A} }",
            "this is not YAML: did not find expected ',' or '}', while parsing a flow mapping; a value with \"${…}\" needs quotes between braces"
        ),
        ("*a", "this is not YAML: found undefined alias; a value that begins with \"*\" needs quotes"),
    ])
    func `broken YAML is told with the likely reason`(_ value: String, _ message: String) {
        let found = complaints(one + "routes: \(value)")
        #expect(found.count == 1)
        #expect(found.first?.hasSuffix(message) == true, "\(found)")
    }

    @Test func `a file that nests without end is refused, not fatal`() {
        #expect(complaints(String(repeating: "[", count: 100_000)).count == 1)
    }

    @Test(arguments: [
        (
            "url: ftp://a.example",
            "4:10: upstreams.a.url: \"ftp\" is not spoken here; an upstream is reached by http or https"
        ),
        (
            "url: https://u:p@a.example",
            "4:10: upstreams.a.url: a URL holds no user name or password; give them by \"credential:\" instead"
        ),
        (
            "url: https://a.example/?x=1",
            "4:10: upstreams.a.url: the URL of an upstream has no query; leave out what follows \"?\""
        ),
        (
            "url: 'https://a.example/#x'",
            "4:10: upstreams.a.url: the URL of an upstream has no fragment; leave out what follows \"#\""
        ),
        ("url: https://a.example:0", "4:10: upstreams.a.url: \"0\" is no port; a port is a number from 1 to 65535"),
        ("url: https:///x", "4:10: upstreams.a.url: the URL has no host"),
        (
            "url: https://bücher.example",
            "4:10: upstreams.a.url: \"bücher.example\" is no host name; write international names in their xn-- form"
        ),
        (
            "url: https://a.example/x/../y",
            "4:10: upstreams.a.url: the path \"/x/../y\" has an empty component or dots in it; write it out"
        ),
    ])
    func `an upstream's URL is an origin and a path`(_ line: String, _ message: String) {
        #expect(complaints("upstreams:\n  a:\n    lag: 30s\n    \(line)\n") == [message])
    }

    @Test(arguments: [
        ("prefix: github", "4:13: upstreams.a.prefix: \"github\" begins with no slash; write \"/github\""),
        (
            "prefix: /a//b",
            "4:13: upstreams.a.prefix: \"/a//b\" is no prefix; use letters, digits and -._~ between single slashes"
        ),
        (
            "cors: '*'",
            "4:11: upstreams.a.cors: \"*\" would let in every page on the web; name the origins that may ask"
        ),
        ("cors: 'null'", "4:11: upstreams.a.cors: \"null\" is the origin of any sandboxed page; it cannot be let in"),
        (
            "cors: [http://x/]",
            "4:12: upstreams.a.cors: \"http://x/\" is more than an origin; write scheme, host and port only, without a \"/\" at the end"
        ),
        (
            "cors: localhost",
            "4:11: upstreams.a.cors: \"localhost\" is no origin; write it with its scheme, for example \"https://localhost\""
        ),
        ("principal: ['a b']", "4:17: upstreams.a.principal: \"a b\" is no header field's name"),
        ("principal: ['?']", "4:17: upstreams.a.principal: \"?\" names no query parameter"),
        (
            "context: ['*']",
            "4:15: upstreams.a.context: \"*\" is no header field's name, nor one with a \"*\" at its beginning or end such as \"*-Version\""
        ),
        (
            "hosts: a b",
            "4:12: upstreams.a.hosts: \"a b\" is no host name; write it as in a Host field, for example \"larder.internal\" or \"larder.internal:8787\""
        ),
        (
            "proxy: foo",
            "4:12: upstreams.a.proxy: \"foo\" is no proxy; write its URL, for example \"http://proxy.internal:3128\", or none, or environment"
        ),
        ("ca_file: /nonexistent", "4:14: upstreams.a.ca_file: /nonexistent cannot be read: No such file or directory"),
        ("shared: yes", "4:13: upstreams.a.shared: \"yes\" is neither true nor false"),
        ("cookies: keep", "4:14: upstreams.a.cookies: \"keep\" is not one of drop, replay"),
        ("corss: red", "4:5: upstreams.a: unknown key \"corss\"; did you mean \"cors\"?"),
    ])
    func `a mistake in an upstream says what to write instead`(_ line: String, _ message: String) {
        #expect(complaints(upstream(line)).first == message)
    }

    @Test func `upstreams that would answer for each other are told apart`() {
        #expect(
            complaints("upstreams: { a: { url: 'https://a.example' }, b: { url: 'https://b.example' } }") == [
                "1:47: \"b\" and \"a\" are both served at 127.0.0.1:8787; give each a prefix, or an address of its own by \"listen\""
            ]
        )
        #expect(
            complaints(
                "upstreams: { a: { url: 'https://a.example', prefix: /x }, b: { url: 'https://b.example', prefix: /x/y } }"
            ) == [
                "1:98: the prefix /x/y of \"b\" and /x of \"a\" overlap at 127.0.0.1:8787; let neither begin with the other"
            ]
        )
        #expect(
            complaints(
                "upstreams: { a: { url: 'https://a.example' }, A: { url: 'https://b.example', listen: '127.0.0.1:1' } }"
            ) == ["1:47: \"A\" and \"a\" are the same name but for capitals; rename one"]
        )
        #expect(
            complaints(
                "upstreams: { a: { url: 'https://a.example', prefix: /x }, b: { url: 'https://b.example', prefix: /xy } }"
            ).isEmpty
        )
    }

    @Test(arguments: [
        ("User: {}", "2:17: models.User: \"identity\" is missing; add it, for example `identity: id`"),
        ("2User: { identity: id }", "2:11: model name \"2User\" is not a letter followed by letters, digits and _"),
        (
            "User: { identity: id }, USER: { identity: id }",
            "2:35: model \"USER\" differs only in capitals from \"User\", in line 2; rename one"
        ),
        (
            "User: { identity: id, properties: { a: { from: b, as: dte } } }",
            "2:65: models.User.properties.a.as: there is no conversion \"dte\"; did you mean \"date\"?"
        ),
        (
            "User: { identity: id, properties: { a: { model: Usr } } }",
            "2:59: there is no model \"Usr\"; did you mean \"User\"?"
        ),
        (
            "User: { identity: id, properties: { a: { model: User, models: User } } }",
            "2:73: models.User.properties.a: \"model\" (one object), \"models\" (a list of them) and \"keyed\" (an object of them) exclude each other"
        ),
        (
            "User: { identity: id, properties: { a: } }",
            "2:50: models.User.properties.a: nothing stands here; write the member it is read from, or { from: …, as: …, model: … }"
        ),
        (
            "User: { identity: id, properties: { a: { as: { enum: { } } } } }",
            "2:64: models.User.properties.a.as.enum: it has no case; write { open: open, closed: done }"
        ),
        (
            "User: { identity: id, properties: { a: 'b..c' } }",
            "2:47: model User, property a: \"b..c\" is no key path; write member names separated by dots, \\. for a dot within a name"
        ),
        ("User: { identity: id, share: some }", "2:40: models.User.share: \"some\" is not one of declared, all"),
    ])
    func `a mistake in a model says what to write instead`(_ model: String, _ message: String) {
        #expect(complaints(one + "models: { \(model) }") == [message])
    }

    @Test(arguments: [
        ("{ model: User }", "3:11: routes.1: \"path\" is missing; add it, for example `path: \"users/{login}\"`"),
        ("{ path: a, model: Usr }", "3:29: there is no model \"Usr\"; did you mean \"User\"?"),
        (
            "{ path: a, model: [User, User] }",
            "3:29: routes.1.model: one model stands here, in brackets if the body is a list of its objects"
        ),
        (
            "{ path: a, method: get }",
            "3:30: routes.1.method: \"get\" is no method; methods are in capitals, such as \"GET\""
        ),
        (
            "{ path: a, status: 2x }",
            "3:30: routes.1.status: \"2x\" is no status; write one such as 201, a class such as 2xx, or any"
        ),
        (
            "{ path: a, root: items }",
            "3:28: \"root\" says where a model is found, but the rule names none; add \"model\""
        ),
        (
            "{ path: a, cache: never, fresh: 5m }",
            "3:43: \"cache: never\" stores nothing that could be fresh or stale; remove one of the two"
        ),
        (
            "{ path: a, cache: never, vary: { ignore: [X-A] } }",
            "3:42: \"cache: never\" stores nothing that could be found again; remove one of the two"
        ),
        (
            "{ path: a, cache: never, key: { sort: true } }",
            "3:41: \"cache: never\" stores nothing that could be found again; remove one of the two"
        ),
        (
            "{ path: a, cache: force, stale: 1d }",
            "3:43: \"cache: force\" alone keeps answers fresh for ever, never stale; add \"fresh\" for how long"
        ),
        (
            "{ path: a, method: POST, fresh: 1m }",
            "3:43: \"fresh\" speaks of answers to GET, but the rule of POST; remove \"method\" or \"fresh\""
        ),
        (
            "{ path: a, key: { ignore: ['a=b'] } }",
            "3:38: routes.1.key.ignore: \"a=b\" is no query parameter's name; write it without \"?\", \"=\" and \"&\""
        ),
        ("{ path: a, cache: always }", "3:29: routes.1.cache: \"always\" is not one of never, force"),
        (
            "{ path: 'a/**/b' }",
            "3:19: path \"a/**/b\": \"**\" must be the last component; nothing after it would be looked at"
        ),
        ("{ path: 'a/{x}', model: User, object: { id: y } }", "3:51: \"a/{x}\" has no capture \"y\"; it has x"),
        (
            "{ path: 'a/{x}', method: POST, invalidates: ['b/{y}'] }",
            "3:56: \"a/{x}\" has no capture \"y\"; it has x. Write \"*\" for any component"
        ),
        (
            "{ path: a, method: POST, invalidates: ['b/{y}'] }",
            "3:50: \"a\" has no capture \"y\"; it has none. Write \"*\" for any component"
        ),
        (
            "{ path: a, method: GET, invalidates: [b] }",
            "3:49: \"invalidates\" speaks of writes, but the rule of GET; remove \"method\" or \"invalidates\""
        ),
        (
            "{ path: a, method: POST, invalidates: ['b?x=1'] }",
            "3:50: path \"b?x=1\": a pattern speaks of the path only; leave out what follows \"?\""
        ),
        (
            "{ path: a, model: User, object: { id: y } }",
            "3:45: \"a\" has no capture \"y\"; it has none; write {y} there"
        ),
        (
            "{ path: 'a/{x}', model: User, object: { login: x } }",
            "3:51: \"login\" is no identity, key or property of model \"User\"; known are id"
        ),
        (
            "{ path: 'a/{x}', model: [User], object: { id: x } }",
            "3:51: \"object\" speaks of one object, but the body is a list; write \"model: User\" or remove \"object\""
        ),
        (
            "{ path: 'a/{x}' }, { path: 'a/*' }",
            "3:38: \"a/*\" has the same pattern, method and status as the rule in line 3, and nothing tells which of the two is meant; remove one, or demand more of one"
        ),
    ])
    func `a mistake in a route says what to write instead`(_ route: String, _ message: String) {
        #expect(complaints(one + "models: { User: { identity: id } }\nroutes: [ \(route) ]") == [message])
    }

    @Test func `a path that YAML takes for a comment is explained`() {
        #expect(
            complaints(one + "routes:\n  - path: #\n") == [
                "3:10: routes.1.path: nothing stands here; write a path pattern in quotes; a \"#\" begins a comment, so quote a value that has one"
            ]
        )
    }

    @Test func `rules for errors speak of errors, and of models`() {
        #expect(
            complaints(one + "errors: [{ path: '**', status: 200, model: X }, { path: a }, { path: b, fresh: 5m }]")
                == [
                    "2:32: errors speak of answers that are not 2xx; move this rule to \"routes\"",
                    "2:44: there is no model \"X\"; declare it under \"models\"",
                    "2:49: the rule names no model; add one, for example \"model: Problem\"",
                    "2:62: the rule names no model; add one, for example \"model: Problem\"",
                    "2:73: errors.3: unknown key \"fresh\" here; it belongs under \"routes\"",
                ]
        )
    }

    @Test func `what several upstreams share is complained of once`() {
        let yaml = """
            upstreams: { a: { url: "https://a.example", prefix: /a }, b: { url: "https://b.example", prefix: /b } }
            models: { User: { identity: id, properties: { boss: { model: Boss } } } }
            """
        #expect(complaints(yaml) == ["2:62: there is no model \"Boss\"; declare it under \"models\""])
    }
}
