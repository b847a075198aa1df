import DaemonTestSupport
import Glibc
import Store
import TestSupport
import Testing

@testable import Admin
@testable import HTTPServer
@testable import Proxy
@testable import Recording
@testable import Settings

/// Replacing the configuration of a daemon that serves.
@Suite struct ConfigurationReplacementTests {
    private func status(_ response: HTTPTestResponse) -> String { response.fields["cache-status"] ?? "" }

    @Test func `a request under way keeps its upstream, and the next one on the same connection gets the new one`()
        async throws
    {
        let (old, new) = (try NamedOrigin("old"), try NamedOrigin("new"))
        let running = try RunningCore("upstreams: { api: { url: \(old.url), prefix: /api } }")
        let client = try HTTPTestClient(running.address)
        #expect(try await running.request("/api/first", on: client).text.contains("old"))
        async let underWay = running.request("/api/held")
        await old.awaitHeld()
        try await running.replace(by: "upstreams: { api: { url: \(new.url), prefix: /api } }")
        #expect(try await running.request("/api/first", on: client).text.contains("new"))
        old.letGo()
        #expect(try await underWay.text.contains("old"))
    }

    @Test func `a request under way keeps its route, and the next one has the new one`() async throws {
        let origin = try NamedOrigin("one")
        func config(_ route: String) -> String {
            "upstreams: { api: { url: \(origin.url), prefix: /api } }\nroutes: [{ path: held, \(route) }]"
        }
        let running = try RunningCore(config("fresh: 1h"))
        async let underWay = running.request("/api/held")
        await origin.awaitHeld()
        try await running.replace(by: config("cache: never"))
        origin.letGo()
        #expect(try await underWay.status == 200)
        await running.core.proxy.finishTurn()
        await running.core.store.flush()
        #expect(try await running.core.store.count().documents == 1)
        async let next = running.request("/api/held")
        await origin.awaitHeld()
        origin.letGo()
        #expect(!status(try await next).contains("hit"))
        try await running.replace(by: config("fresh: 2h"))
        #expect(status(try await running.request("/api/held")).contains("hit; ttl=7"))
    }

    @Test func `responses in memory stay if their upstream is unchanged, and are read again if it has changed`()
        async throws
    {
        let origin = try NamedOrigin("one")
        func config(_ route: String) -> String {
            """
            upstreams:
              same: { url: \(origin.url), prefix: /same }
              other: { url: \(origin.url), prefix: /other, routes: [{ path: x, fresh: \(route) }] }
            """
        }
        let running = try RunningCore(config("1h"))
        for target in ["/same/x", "/other/x"] {
            _ = try await running.request(target)
            #expect(status(try await running.request(target)).contains("hit; ttl="))
        }
        await running.core.store.flush()
        let memory = running.core.proxy.cache.memory
        let before = memory.statistics.responses
        try await running.replace(by: config("2h"))
        for target in ["/same/x", "/other/x", "/other/x"] {
            #expect(status(try await running.request(target)).contains("hit"))
        }
        #expect(status(try await running.request("/other/x")).contains("ttl=7"))
        #expect(origin.count == 2)
        #expect(memory.statistics.responses == before)
    }

    @Test func `a removed upstream is unknown, and an added one is served`() async throws {
        let origin = try NamedOrigin("one")
        let gone = "  gone: { url: \(origin.url), prefix: /gone, hosts: [gone.example] }\n"
        let kept = "  kept: { url: \(origin.url), prefix: /kept }\n"
        let running = try RunningCore("upstreams:\n" + gone + kept)
        #expect(try await running.request("/gone/x").status == 200)
        #expect(try await running.request("/gone/x", "Host: gone.example").status == 200)
        try await running.replace(by: "upstreams:\n" + kept + "  new: { url: \(origin.url), prefix: /new }\n")
        let (missing, never) = (try await running.request("/gone/x"), try await running.request("/never/x"))
        #expect((missing.status, never.status) == (404, 404))
        #expect(missing.text.replacing("gone", with: "never") == never.text)
        #expect(try await running.request("/kept/x", "Host: gone.example").status == 421)
        #expect(try await running.request("/new/x").status == 200)
        #expect(running.core.upstreamStates.map(\.name) == ["kept", "new"])
        // Its documents are known by name and URL, as after a restart without it.
        await running.core.proxy.finishTurn()
        await running.core.store.flush()
        let names = try await running.core.store.ownerNames().upstreams
        #expect(names.contains("new") && !names.contains("gone") && names.contains { $0.hasPrefix("gone ") })
    }

    @Test func `fields that select a representation are those of the new configuration`() async throws {
        let origin = try NamedOrigin("one")
        func config(_ context: String) -> String {
            "upstreams: { api: { url: \(origin.url), prefix: /api, context: [\(context)] } }"
        }
        let running = try RunningCore(config("Accept"))
        _ = try await running.request("/api/x", "X-Tenant: a")
        try await running.replace(by: config("X-Tenant"))
        for tenant in ["a", "b"] {
            _ = try await running.request("/api/x", "X-Tenant: \(tenant)")
            #expect(status(try await running.request("/api/x", "X-Tenant: \(tenant)")).contains("hit"))
        }
        #expect(origin.count == 3)
    }

    @Test func `a response fetched with the former credential is not served with the new one`() async throws {
        let (origin, folder) = (try NamedOrigin("one"), TemporaryFolder())
        func config(_ token: String) throws -> String {
            let path = try folder.write(token, to: token)
            #expect(chmod(path, 0o600) == 0)
            return "upstreams: { api: { url: \(origin.url), prefix: /api, credential: { from: \(path) } } }"
        }
        let running = try RunningCore(try config("old"))
        for _ in 1...2 { _ = try await running.request("/api/x") }
        #expect(origin.count == 1)
        try await running.replace(by: try config("new"))
        _ = try await running.request("/api/x")
        #expect(origin.count == 2)
    }

    @Test func `a pause that an upstream has asked for outlives its configuration, but not its origin`() async throws {
        let (origin, other) = (try NamedOrigin("one"), try NamedOrigin("two"))
        func config(_ origin: NamedOrigin, _ rest: String = "") -> String {
            "upstreams: { api: { url: \(origin.url), prefix: /api\(rest) } }"
        }
        let running = try RunningCore(config(origin))
        #expect(try await running.request("/api/limited").status == 429)
        try await running.replace(by: config(origin, ", heuristic: 0s"))
        #expect(try await running.request("/api/limited").status == 429)
        #expect(running.core.upstreamStates[0].requests == 1)
        #expect(origin.count == 1)
        try await running.replace(by: config(other))
        #expect(running.core.upstreamStates[0].requests == 0)
        #expect(try await running.request("/api/limited").status == 429)
        #expect(other.count == 1)
    }

    @Test func `a stream under way keeps its upstream, and the next stream has the new one`() async throws {
        let (old, new) = (try NamedOrigin("old"), try NamedOrigin("new"))
        let running = try RunningCore("upstreams: { api: { url: \(old.url), prefix: /api } }")
        async let underWay = running.request("/api/held", "Larder-Live: once")
        await old.awaitHeld()
        try await running.replace(by: "upstreams: { api: { url: \(new.url), prefix: /api } }")
        async let next = running.request("/api/held", "Larder-Live: once")
        await new.awaitHeld()
        new.letGo()
        #expect(try await next.text.contains("new"))
        old.letGo()
        #expect(try await underWay.text.contains("old"))
    }

    @Test func `objects of a new upstream are stored by its models`() async throws {
        let origin = try NamedOrigin("one")
        let first = "upstreams:\n  first: { url: \(origin.url), prefix: /first }\n"
        let running = try RunningCore(first)
        let second = """
              second:
                url: \(origin.url)
                prefix: /second
                models: { Thing: { identity: id, properties: { origin: origin } } }
                routes: [{ path: x, model: Thing }]

            """
        try await running.replace(by: first + second)
        _ = try await running.request("/second/x")
        await running.core.store.flush()
        #expect(try await running.core.store.count().models == ["Thing": 1])
        // It is gone, and comes back.
        try await running.replace(by: first)
        #expect(running.core.complaint(aboutModel: "Thing") != nil)
        try await running.replace(by: first + second)
        #expect(status(try await running.request("/second/x")).contains("hit"))
    }

    @Test func `changed models apply to stored responses and to one under way`() async throws {
        let origin = try NamedOrigin("one")
        func config(_ rest: String) -> String {
            """
            upstreams: { api: { url: \(origin.url), prefix: /api } }
            models: { Thing: { identity: id, \(rest) } }
            routes: [{ path: x, model: Thing }, { path: held, model: Thing }]
            """
        }
        let running = try RunningCore(config("properties: { origin: origin }"))
        _ = try await running.request("/api/x")
        async let underWay = running.request("/api/held")
        await origin.awaitHeld()
        try await running.replace(
            by: config("properties: { from: source }, version: 1, migrations: [{ to: 1, rename: { origin: source } }]")
        )
        let mapped = try await running.request("/api/x", "Larder-View: mapped")
        #expect(mapped.text == #"{"id":1,"from":"one"}"#)
        #expect(status(mapped).contains("hit"))
        // The body is as it was received.
        #expect(try await running.request("/api/x").text == #"{"id": 1, "origin": "one"}"#)
        origin.letGo()
        #expect(try await underWay.text == #"{"id": 1, "origin": "one"}"#)
        await running.core.proxy.finishTurn()
        await running.core.store.flush()
        #expect(try await running.core.store.count().models == ["Thing": 1])
    }

    @Test func `models older than the stored objects are refused, and the former config stays in force`() async throws {
        let (origin, other) = (try NamedOrigin("one"), try NamedOrigin("two"))
        func config(_ rest: String, _ upstreams: String = "") -> String {
            """
            upstreams: { api: { url: \(origin.url), prefix: /api }\(upstreams) }
            models: { Thing: { identity: id\(rest) } }
            routes: [{ path: x, model: Thing }]
            """
        }
        let running = try RunningCore(config(", version: 2"))
        _ = try await running.request("/api/x")
        let error = await #expect(throws: ConfigurationReplacementError.self) {
            try await running.replace(by: config(", version: 1", ", b: { url: \(other.url), prefix: /b }"))
        }
        #expect(error?.description.contains("declares version 1") == true)
        #expect(try await running.request("/b/x").status == 404)
        #expect(status(try await running.request("/api/x")).contains("hit"))
    }

    @Test func `settings that need a restart are named, and the other changes apply`() async throws {
        let upstreams = "upstreams: { api: { url: http://127.0.0.1:9, prefix: /api } }"
        let running = try RunningCore(upstreams)
        let changes = try await running.replace(
            by: "workers: 3\nstore: { readers: 9, maximum_size: 100MiB }\nmode: offline\n" + upstreams
        )
        #expect(changes.filter(\.needsRestart).map(\.key) == ["workers", "store.readers"])
        #expect(changes.filter { !$0.needsRestart }.map(\.key) == ["mode", "store.maximum_size"])
        #expect(running.core.modes.current == .offline)
        let settings = running.core.settings
        #expect(settings.workers == nil && settings.store.readers == 4 && settings.store.maximumSize == 100 << 20)
    }

    @Test func `memory keeps to a bound that becomes smaller`() async throws {
        let origin = try NamedOrigin("one")
        let upstreams = "upstreams: { api: { url: \(origin.url), prefix: /api } }"
        let running = try RunningCore(upstreams)
        for number in 1...40 { _ = try await running.request("/api/\(number)") }
        let memory = running.core.proxy.cache.memory
        // A client has its response a moment before memory has it.
        #expect(await eventually { memory.statistics.responses == 40 })
        let bytes = memory.statistics.bytes
        try await running.replace(by: "memory: { maximum_size: \(bytes / 2)B }\n" + upstreams)
        #expect(memory.statistics.bytes <= bytes / 2)
        #expect(memory.statistics.responses > 0)
        // Nothing that requests read has changed, so the rest is still served from there.
        #expect(status(try await running.request("/api/40")).contains("hit"))
        #expect(origin.count == 40)
    }

    @Test func `preparations for a config are used, or abandoned if the config is refused`() async throws {
        let used = Monitor<[String]>([])
        let origin = try NamedOrigin("one")
        let upstreams = "upstreams: { api: { url: \(origin.url) } }"
        let running = try RunningCore(upstreams)
        func replace(by text: String) async throws {
            try await running.replace(by: text) { _ in
                (
                    commit: { used.withLock { $0.append("used") } },
                    abandon: { used.withLock { $0.append("given up") } }
                )
            }
        }
        let model = "models: { Thing: { identity: id, version: "
        let rest = " } }\nroutes: [{ path: x, model: Thing }]\n" + upstreams
        try await replace(by: model + "2" + rest)
        // The version cannot be lowered while an object of the model is stored.
        _ = try await running.request("/x")
        #expect(origin.count == 1)
        await #expect(throws: ConfigurationReplacementError.self) { try await replace(by: model + "1" + rest) }
        #expect(used.current == ["used", "given up"])
        await #expect(throws: ConfigurationReplacementError.self) {
            try await running.replace(by: "mode: offline\n" + model + "2" + rest) { _ in
                throw ListenError.inUse("127.0.0.1:1")
            }
        }
        #expect(running.core.modes.current == .auto)
    }

    @Test func `while a recording runs nothing is replaced, and a later one has the new config`() async throws {
        let origin = try NamedOrigin("one")
        let running = try RunningCore("upstreams: { api: { url: \(origin.url), prefix: /api } }")
        let recordings = try #require(running.core.state.recordings)
        let config = "upstreams: { new: { url: \(origin.url), prefix: /new } }"
        try recordings.start("first", session: nil)
        await #expect(throws: ConfigurationReplacementError.self) { try await running.replace(by: config) }
        _ = try recordings.stop("first")
        try await running.replace(by: config)
        try recordings.start("second", session: nil)
        #expect(try await running.request("/new/x", "Authorization: Bearer secret-token").status == 200)
        // The client has its response a moment before the recording.
        #expect(await eventually { recordings.runningCount(of: "second") == 1 })
        #expect(try recordings.stop("second").count == 1)
        let text = String(decoding: try recordings.file("exchanges.jsonl", of: "second"), as: UTF8.self)
        #expect(text.contains(#""upstream":"new""#) && !text.contains("secret-token"))
    }
}
