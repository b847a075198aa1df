import Glibc
import TestSupport
import Testing

@testable import Settings

/// What differs between two configs, as a reload reports it.
struct ConfigChangeTests {
    private static let upstream = "upstreams: { api: { url: https://a.example } }"

    private func settings(_ text: String) throws -> Configuration {
        let file = ConfigFile.parse(text, file: "larder.yaml", environment: [:])
        #expect(file.errors.isEmpty, "\(file.errors)")
        return file.settings
    }

    /// Each change as `changed limits.head 32KiB → 8KiB`, with `, restart` if it needs one.
    private func changes(from former: String, to new: String) throws -> [String] {
        try settings(new).changes(since: settings(former)).changes.map { change in
            let values = [change.former, change.new].compactMap(\.self).joined(separator: " → ")
            let text = "\(change.kind) \(change.key)" + (values.isEmpty ? "" : " \(values)")
            return text + (change.needsRestart ? ", restart" : "")
        }
    }

    @Test func `a config does not differ from itself, however it is written`() throws {
        let other = "upstreams:\n  api:\n    url: 'https://a.example'\nlimits: { head: 32KiB }\nmode: auto\n"
        #expect(try changes(from: Self.upstream, to: other) == [])
    }

    @Test(arguments: [
        ("listen: 127.0.0.1:1", "changed listen [127.0.0.1:8787] → [127.0.0.1:1]"),
        ("admin: [127.0.0.1:1]", "changed admin [127.0.0.1:8788] → [127.0.0.1:1]"),
        ("workers: 3", "changed workers 3, restart"),
        ("mode: offline", "changed mode auto → offline"),
        ("store: { path: /x }", "changed store.path /x, restart"),
        ("store: { group: x }", "changed store.group x, restart"),
        ("store: { maximum_size: 64MiB }", "changed store.maximum_size 1GiB → 64MiB"),
        ("store: { batch_delay: 1s }", "changed store.batch_delay 20ms → 1s"),
        ("store: { withhold: 1s }", "changed store.withhold 50ms → 1s"),
        ("store: { queue_size: 1MiB }", "changed store.queue_size 64MiB → 1MiB"),
        ("store: { readers: 2 }", "changed store.readers 4 → 2, restart"),
        ("store: { changes: 0 }", "changed store.changes 100000 → 0, restart"),
        ("memory: { maximum_size: 1MiB }", "changed memory.maximum_size 64MiB → 1MiB"),
        ("limits: { head: 8KiB }", "changed limits.head 32KiB → 8KiB"),
        ("limits: { objects: 500 }", "changed limits.objects 50000 → 500"),
        ("limits: { upstream_connections: 5 }", "changed limits.upstream_connections 256 → 5"),
        ("timeouts: { first_byte: 2s }", "changed timeouts.first_byte 30s → 2s"),
        ("live: { streams: 5 }", "changed live.streams 2048 → 5"),
        ("log: { level: debug }", "changed log.level info → debug"),
        ("access_log: json", "changed access_log.format json"),
        ("access_log: { file: /x }", "changed access_log.file /x"),
        ("slow_requests: 1s", "changed slow_requests 0s → 1s"),
    ])
    func `a key of the daemon is named with both values`(text: String, change: String) throws {
        #expect(try changes(from: Self.upstream, to: "\(text)\n\(Self.upstream)") == [change])
    }

    @Test(arguments: [
        ("url: https://b.example", "changed upstreams.api.url https://a.example → https://b.example"),
        ("prefix: /x", "changed upstreams.api.prefix /x"),
        ("aliases: { /api/v3: / }", nil),
        ("listen: 127.0.0.1:1", "changed upstreams.api.listen [] → [127.0.0.1:1]"),
        ("principal: [all]", "changed upstreams.api.principal [auto] → [all]"),
        ("context: [X-Tenant]", nil), ("shared: true", "changed upstreams.api.shared false → true"),
        ("targets: [CDN-Cache-Control]", nil), ("cookies: replay", "changed upstreams.api.cookies drop → replay"),
        ("cors: [\"http://localhost:1\"]", nil), ("origin: pass", "changed upstreams.api.origin"),
        ("rewrite_links: true", "changed upstreams.api.rewrite_links false → true"), ("hosts: [x.internal]", nil),
        ("proxy: \"http://me:secret@proxy.internal:1\"", "changed upstreams.api.proxy"),
        ("http2: true", nil), ("heuristic: 5s", nil), ("stale_if_error: 5s", nil), ("back_off: never", nil),
        ("lag: 5s", "changed upstreams.api.lag.lists 30s → 5s"),
    ])
    func `a key of an upstream is named`(text: String, change: String?) throws {
        let url = text.hasPrefix("url") ? "" : "url: https://a.example, "
        let found = try changes(from: Self.upstream, to: "upstreams: { api: { \(url)\(text) } }")
        let key = text.prefix { $0 != ":" }
        // An alias is named by its path.
        let kind = key == "aliases" ? "added" : "changed"
        #expect(found.count == 1 && found[0].hasPrefix("\(kind) upstreams.api.\(key)"), "\(found)")
        if let change { #expect(found == [change]) }
    }

    @Test func `a credential's content counts, and is not shown`() throws {
        let folder = TemporaryFolder()
        let path = try folder.write("one", to: "token")
        #expect(chmod(path, 0o600) == 0)
        let config = "upstreams: { api: { url: https://a.example, credential: { from: \(path) } } }"
        let former = try settings(config)
        try folder.write("two", to: "token")
        #expect(
            try settings(config).changes(since: former).changes == [ConfigChange(key: "upstreams.api.credential")]
        )
    }

    @Test func `upstreams, models and routes come, go and change by their names`() throws {
        let former = """
            upstreams: { api: { url: https://a.example, prefix: /a }, old: { url: https://o.example, prefix: /o } }
            models: { User: { identity: id, share: all }, Gone: { identity: id } }
            routes:
              - { path: "users/{id}", model: User }
              - { path: gone }
              - { path: "users/{id}", method: POST, status: 201 }
            errors: [{ path: "**", status: 4xx, model: User }]
            """
        let new = """
            upstreams: { api: { url: https://a.example, prefix: /a }, new: { url: https://n.example, prefix: /n } }
            models: { User: { identity: id, version: 1 }, Added: { identity: id } }
            routes:
              - { path: added, query: { state: open } }
              - { path: "users/{id}", model: User, fresh: 5m }
              - { path: "users/{id}", method: POST, status: 201 }
            errors: [{ path: "**", status: 4xx, model: User, root: error }]
            """
        #expect(
            try changes(from: former, to: new) == [
                "removed upstreams.old",
                "added upstreams.api.models.Added", "removed upstreams.api.models.Gone",
                "changed upstreams.api.models.User",
                "added upstreams.api.routes.added?state=open", "removed upstreams.api.routes.gone",
                "changed upstreams.api.routes.users/{id}", "changed upstreams.api.errors.** 4xx",
                "added upstreams.new",
            ]
        )
    }

    @Test func `settings that only a restart can change keep their values, and are reported again the next time`()
        throws
    {
        let former = try settings(Self.upstream)
        let new = try settings("workers: 3\nstore: { path: /x, withhold: 1s }\n" + Self.upstream)
        let inForce = new.changes(since: former).inForce
        #expect(inForce.workers == nil && inForce.store.path == nil)
        #expect(inForce.store.withhold == .seconds(1))
        // So it is named again the next time.
        #expect(new.changes(since: inForce).changes.map(\.key) == ["workers", "store.path"])
    }
}
