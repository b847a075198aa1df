import HTTPSemantics
import Testing

@testable import Settings

/// What is wrong with the form of a config, or with one of its values.
struct ConfigMistakesTests {
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
                "3:10: upstreams.a.url: \"example.com\" is not a URL; write it with its scheme, for example \"https://example.com\"",
                "4:5: upstreams.a: unknown key \"prefx\"; did you mean \"prefix\"?",
                "5:10: workers: \"many\" is not a whole number from 1 to 64",
                "6:1: unknown key \"modle\"; did you mean \"mode\"?",
                "7:22: timeouts.connect: \"5\" has no unit; write 5s for seconds",
            ]
        )
    }

    @Test func `a mistake is reported with file, line and column`() throws {
        let file = ConfigFile.parse("upstreams: {}", file: "/etc/larder/larder.yaml", environment: [:])
        #expect(
            file.diagnostics.map(\.description)
                == ["/etc/larder/larder.yaml:1:12: error: upstreams: there is none; name one, with its url"]
        )
        #expect(throws: ConfigError.self) { try file.checked() }
    }

    @Test(arguments: [
        ("", "no upstream is named; add one, for example `upstreams: { github: { url: https://api.github.com } }`"),
        ("- a", "1:1: a list was found here; write keys with values"),
        ("upstreams: {}", "1:12: upstreams: there is none; name one, with its url"),
        ("upstreams:", "1:11: upstreams: nothing was found here; write names of upstreams, each with its keys"),
        (
            "upstreams: { a: {} }",
            "1:17: upstreams.a: \"url\" is missing; add it, for example `url: https://api.github.com`"
        ),
        (one + one, "2:1: \"upstreams\" occurs twice among the same keys, first in line 1; keep one of them"),
        (one + "connect: 5s", "2:1: unknown key \"connect\" here; it belongs under \"timeouts\""),
        (
            one + "admin: { address: '127.0.0.1:1', listen: '127.0.0.1:2' }",
            "2:34: admin: unknown key \"listen\" here; it belongs at the top of the file"
        ),
        (one + "prefix: /a", "2:1: unknown key \"prefix\" here; it belongs under \"upstreams.NAME\""),
        (
            one + "log: { colour: red }",
            "2:8: log: unknown key \"colour\"; expected: level"
        ),
        (one + "? [a, b]\n: c\n", "2:3: a key is plain text, this is a list"),
        (one + "workers: ~", "2:10: workers: nothing was found here; write a whole number from 1 to 64"),
        (one + "workers: 0", "2:10: workers: \"0\" is not a whole number from 1 to 64"),
        (one + "workers: [1]", "2:10: workers: a list was found here; write a whole number from 1 to 64"),
        (one + "mode: offlne", "2:7: mode: \"offlne\" is not one of auto, online, offline; did you mean \"offline\"?"),
        (
            one + "timeouts: { connect: 5 s }",
            "2:22: timeouts.connect: \"5 s\" is not a duration as Larder writes it; write 5s"
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
            "2:9: listen: \"8787\" has no host; write \"127.0.0.1:8787\""
        ),
        (
            one + "listen: ':8787'",
            "2:9: listen: \":8787\" has no host; write \"127.0.0.1:8787\" (or \"0.0.0.0:8787\" for every interface)"
        ),
        (one + "listen: /run/x", "2:9: listen: \"/run/x\" looks like a socket's path; write \"unix:/run/x\""),
        (
            one + "listen: 'a:99999'",
            "2:9: listen: \"99999\" is not a port; a port is a number from 0 to 65535 (0: any free one)"
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
            "2:37: listen.mode: \"rw\" is not a mode; write permissions in octal such as \"0660\""
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
    func `broken YAML is reported with the likely reason`(_ value: String, _ message: String) {
        let found = complaints(one + "routes: \(value)")
        #expect(found.count == 1)
        #expect(found.first?.hasSuffix(message) == true, "\(found)")
    }

    @Test func `a small size needs a unit, unless it is zero`() throws {
        #expect(
            complaints(one + "memory: { maximum_size: 64 }\nlimits: { minimum_rate: 0, body: 512B, head: 4096 }\n")
                == ["2:25: memory.maximum_size: \"64\" has no unit; write 64MiB, or 64B if bytes are meant"]
        )
        let settings = try settings(one + "memory: { maximum_size: 0 }\nlimits: { target: 2000 }\n")
        #expect(settings.memory.maximumSize == 0 && settings.limits.http.maxTarget == 2000)
    }

    @Test func `a path that only a shell would expand is refused`() {
        #expect(
            complaints("upstreams: { a: { url: http://a.example } }\nstore: { path: ~/x.db }") == [
                #"2:16: store.path: "~" is not expanded here; write "${HOME}/x.db""#
            ]
        )
    }

    @Test func `a file that nests without end is refused, not fatal`() {
        #expect(complaints(String(repeating: "[", count: 100_000)).count == 1)
    }

    @Test(arguments: [
        (
            "url: ftp://a.example",
            "4:10: upstreams.a.url: an upstream is reached by http or https, not by \"ftp\""
        ),
        (
            "url: https://u:p@a.example",
            "4:10: upstreams.a.url: a URL must not contain a user name or password; give them by \"credential:\" instead"
        ),
        (
            "url: https://a.example/?x=1",
            "4:10: upstreams.a.url: the URL of an upstream has no query; leave out what follows \"?\""
        ),
        (
            "url: 'https://a.example/#x'",
            "4:10: upstreams.a.url: the URL of an upstream has no fragment; leave out what follows \"#\""
        ),
        ("url: https://a.example:0", "4:10: upstreams.a.url: \"0\" is not a port; a port is a number from 1 to 65535"),
        ("url: https:///x", "4:10: upstreams.a.url: the URL has no host"),
        (
            "url: https://bücher.example",
            "4:10: upstreams.a.url: \"bücher.example\" is not a host name; write international names in their xn-- form"
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
            "4:13: upstreams.a.prefix: \"/a//b\" is not a prefix; use letters, digits and -._~ between single slashes"
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
            "4:11: upstreams.a.cors: \"localhost\" is not an origin; write it with its scheme, for example \"https://localhost\""
        ),
        ("principal: ['a b']", "4:17: upstreams.a.principal: \"a b\" is not a header field's name"),
        ("principal: ['?']", "4:17: upstreams.a.principal: \"?\" names no query parameter"),
        ("principal: ['+?']", "4:17: upstreams.a.principal: \"+?\" names no query parameter"),
        ("principal: ['-']", "4:17: upstreams.a.principal: \"-\" is not a header field's name"),
        (
            "principal: [-Cookie, X-Key]",
            "4:16: upstreams.a.principal: \"X-Key\" beside words with a sign leaves open what counts; write \"+X-Key\" to add it to what is recognised, or plain names only, which replace that"
        ),
        (
            "context: ['*']",
            "4:15: upstreams.a.context: \"*\" is not a header field's name, nor one with a \"*\" at its beginning or end such as \"*-Version\""
        ),
        (
            "hosts: a b",
            "4:12: upstreams.a.hosts: \"a b\" is not a host name; write it as in a Host field, for example \"larder.internal\" or \"larder.internal:8787\", or \"https://larder.internal\" if a proxy in front of Larder serves it by HTTPS"
        ),
        (
            "proxy: foo",
            "4:12: upstreams.a.proxy: \"foo\" is not a proxy; write its URL, for example \"http://proxy.internal:3128\", or none, or environment"
        ),
        ("ca_file: /nonexistent", "4:14: upstreams.a.ca_file: /nonexistent cannot be read: No such file or directory"),
        (
            "lag: 500ms",
            "4:10: upstreams.a.lag: 500ms is not a whole number of seconds, which this key requires; write 1s"
        ),
        (
            "lag: { details: 1500ms }",
            "4:21: upstreams.a.lag.details: 1s500ms is not a whole number of seconds, which this key requires; write 2s"
        ),
        (
            "stale_if_error: 1m1ms",
            "4:21: upstreams.a.stale_if_error: 1m1ms is not a whole number of seconds, which this key requires; write 1m1s"
        ),
        (
            "heuristic: 1500ms",
            "4:16: upstreams.a.heuristic: 1s500ms is not a whole number of seconds, which this key requires; write 2s"
        ),
        (
            "routes: [{ path: x, fresh: 500ms }]",
            "4:32: upstreams.a.routes.1.fresh: 500ms is not a whole number of seconds, which this key requires; write 1s"
        ),
        (
            "routes: [{ path: x, fresh: 1s, stale: 1s1ms }]",
            "4:43: upstreams.a.routes.1.stale: 1s1ms is not a whole number of seconds, which this key requires; write 2s"
        ),
        (
            "routes: [{ path: x, negative: 10ms }]",
            "4:35: upstreams.a.routes.1.negative: 10ms is not a whole number of seconds, which this key requires; write 1s"
        ),
        (
            "origin: ftp://x",
            "4:13: upstreams.a.origin: \"ftp://x\" is not the origin of a web page; write one that begins with http:// or https://, or drop or pass"
        ),
        (
            "principal: [-Cokie]",
            "4:16: upstreams.a.principal: \"-Cokie\" removes nothing that is recognised; did you mean \"-Cookie\"?"
        ),
        (
            "principal: [auto, -Accept]",
            "4:16: upstreams.a.principal: \"-Accept\" removes nothing: the field Accept does not count anyway; remove the word"
        ),
        (
            "principal: ['-?page']",
            "4:16: upstreams.a.principal: \"-?page\" removes nothing: the parameter page does not count anyway; correct the name, or remove the word"
        ),
        ("shared: yes", "4:13: upstreams.a.shared: \"yes\" is neither true nor false; write true"),
        ("cookies: keep", "4:14: upstreams.a.cookies: \"keep\" is not one of drop, replay"),
        ("corss: red", "4:5: upstreams.a: unknown key \"corss\"; did you mean \"cors\"?"),
    ])
    func `a mistake in an upstream says what to write instead`(_ line: String, _ message: String) {
        #expect(complaints(upstream(line)).first == message)
    }
}
