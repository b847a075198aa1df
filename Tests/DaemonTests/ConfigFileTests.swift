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

private func settings(_ yaml: String, environment: [String: String] = [:]) throws -> Settings {
    try ConfigFile.parse(yaml, file: "larder.yaml", environment: environment).checked().settings
}

private let minimal = "upstreams: { a: { url: 'https://a.example' } }\n"

struct ConfigFileTests {
    @Test func `the least config names one upstream`() throws {
        let settings = try settings(minimal)
        #expect(settings.upstreams.map(\.name) == ["a"])
        #expect(settings.upstreams[0].url.description == "https://a.example")
        #expect(settings.listen == [.tcp(host: "127.0.0.1", port: 8787)])
        #expect(settings.upstreams[0].principal == Settings.Upstream.defaultPrincipal)
    }
    @Test func trial() {
        for (yaml) in [
            "", "# nothing\n", "- a", "upstreams:", "upstreams: {}", "upstreams: { a: {} }", "upstreams: { a: { url: example.com } }",
            minimal + "workers: many", minimal + "workers: 0", minimal + "timeouts: { conect: 5s }", minimal + "timeouts: { connect: 5 }",
            minimal + "timeouts: { connect: 5 s }", minimal + "connect: 5s", minimal + "prefix: /a", minimal + "limits: { head: 1MB, body: big }",
            minimal + "mode: offlne", minimal + "listen: 8787", minimal + "listen: [':8787', '/run/x', 'http://x:1', 'a:99999']",
            minimal + "listen: { address: 'unix:/run/x', mode: 660 }", minimal + "listen: { address: '127.0.0.1:80', mode: '0660' }",
            minimal + "admin: 127.0.0.1:8787", minimal + "log: { level: ${LEVEL} }", minimal + "store: { path: '${A' }",
            minimal + "routes:\n  - { path: ** }", minimal + "routes:\n  - path: #\n    model: User",
            minimal + "models: { User: {} }\n", minimal + "models: { User: { identity: id, properties: { login: , a: {from: b, as: dte}, c: {model: Usr}}}}\n",
            minimal + "models: { User: { identity: id }, user: { identity: id } }\n",
            minimal + "models: { User: { identity: id } }\nroutes: [{path: a, model: Usr}, {path: 'b/{x}', model: User, object: {login: y}}, {path: a}, {path: a, status: 2x, method: get}]\nerrors: [{path: '**'}, {path: '**', status: 200, model: User}]\n",
            "upstreams: { a: { url: 'https://a.example' }, b: { url: 'https://b.example' } }",
            "upstreams: { a: { url: 'https://a.example', prefix: /x }, b: { url: 'https://b.example', prefix: /x/y }, A: {url: 'ftp://x', prefix: y} }",
            "upstreams:\n  a:\n    url: https://u:p@a.example/?x\n    credential: { from: /nonexistent }\n    cors: ['*', http://x/]\n    principal: ['a b', '?']\n    ca_file: /nonexistent\n    proxy: foo\n    hosts: ['a b']\n    colour: red\n",
            minimal + minimal, minimal + "x: [", minimal + "\tx: 1", minimal + "store: { path: *foo }", minimal + "? [a, b]\n: c\n", "a: \u{1}", minimal + "workers: ~", minimal + "memory: { maximum_size: 5MB5 }",
            String(repeating: "[", count: 100_000),
        ] {
            print("--- \(yaml.prefix(300))\n\(complaints(yaml).joined(separator: "\n"))")
        }
    }
}
