import Foundation
import TestSupport
import Testing

/// Servers that say nothing of caching: `fresh_unsaid`, `--fresh`, and what names them.
@Suite(.scripts) struct UnsaidFreshnessTests {
    /// An origin whose paths are named after what their responses say of caching.
    private static func origin() throws -> Origin {
        try Origin { request in
            let fields: FieldLines =
                switch request.path {
                case "/no-cache": ["Cache-Control": "no-cache"]
                case "/no-store": ["Cache-Control": "no-store"]
                case "/vary": ["Cache-Control": "max-age=60", "Vary": "*"]
                case "/expires": ["Expires": "0"]
                case "/pragma": ["Pragma": "no-cache"]
                case "/modified": ["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]
                default: [:]
                }
            return .json(#"{"id":1}"#, fields, status: request.path == "/missing" ? 404 : 200)
        }
    }

    private func isHit(_ path: String, _ larder: Larder) throws -> Bool {
        for _ in 0..<2 { _ = try larder.get(path) }
        #expect(try larder.waitForQuiet())
        return try larder.get(path).isHit
    }

    @Test(arguments: [
        ("/plain", true), ("/modified", true), ("/no-cache", false), ("/no-store", false), ("/expires", false),
        ("/pragma", false), ("/missing", false),
    ])
    func `with --fresh only a response that says nothing of caching becomes a hit`(path: String, isHit: Bool) throws {
        let larder = try Larder(try Self.origin(), "--fresh", "60s")
        #expect(try self.isHit(path, larder) == isHit)
    }

    @Test func `fresh_unsaid gives a lifetime that Cache-Status and explain name, and a route's fresh precedes it`()
        throws
    {
        let origin = try Self.origin()
        let larder = try Larder(
            config: Configs.plain(origin, upstream: ["fresh_unsaid: 60s"], top: ["routes: [{ path: own, fresh: 5s }]"])
        )
        #expect(try isHit("/plain", larder))
        #expect(try larder.get("/plain").cacheStatus.hasSuffix("detail=fresh-unsaid"))
        let explained = try larder.command("explain", "/plain").output
        #expect(explained.contains("the upstream's fresh_unsaid: 1m, as the response says nothing of caching"))
        #expect(try isHit("/own", larder))
        #expect(try larder.get("/own").cacheStatus.hasSuffix("detail=fresh-by-route"))
        // The lifetime is the config's, not the stored response's: without the key it is gone.
        _ = try larder.folder.write(Configs.plain(origin), to: "larder.yaml")
        try larder.restart()
        #expect(try larder.get("/plain").cacheStatus.hasPrefix("larder;fwd=stale"))
    }

    @Test func `explain names the line of config that makes a hit`() throws {
        let origin = try Self.origin()
        let larder = try Larder(origin, config: Configs.plain(origin))
        func remedy(_ path: String) throws -> String? {
            _ = try larder.get(path)
            #expect(try larder.waitForQuiet())
            return try ExplainTests.explain(larder, path)["remedy"] as? String
        }
        #expect(
            try remedy("/plain")
                == "The response says nothing of caching. Write upstreams: { api: { fresh_unsaid: 60s } }, "
                + "or start with `larder serve --fresh 60s`."
        )
        #expect(
            try remedy("/no-cache")
                == "The response gives itself no lifetime. If you know better, write "
                + #"routes: [{ path: "no-cache", fresh: 60s }]."#
        )
        #expect(
            try remedy("/no-store")
                == #"The response forbids storing. If you know better, write routes: [{ path: "no-store", cache: force, fresh: 60s }]."#
        )
        #expect(
            try remedy("/vary")
                == "By Vary: * the response is for no other request. If you know better, write "
                + #"routes: [{ path: "vary", cache: force, fresh: 60s }]."#
        )
        #expect(try remedy("/modified") == nil)
        #expect(try larder.command("explain", "/plain").output.contains("To make it a hit:\n  The response says"))
    }

    @Test func `tail and a notice in the log name the line of config that would make hits`() throws {
        let origin = try Self.origin()
        let larder = try Larder(origin, config: Configs.plain(origin))
        let line = "upstreams: { api: { fresh_unsaid: 60s } }"
        for number in 0..<25 {
            #expect(!larder.process.errors.contains(line), "\(number)")
            if number == 20 { break }
            _ = try larder.get("/plain")
            #expect(try larder.waitForQuiet())
        }
        _ = try larder.get("/plain")
        #expect(larder.process.waitForErrors { $0.contains("say nothing of caching") && $0.contains(line) })
        #expect(larder.process.errors.contains("requests=20") || larder.process.errors.contains("requests: 20"))
        let tail = try TestProcess(
            Larder.binary,
            [
                "tail", "-n", "3", "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
                larder.folder.file("larder.db"),
            ],
            environment: Larder.environment
        )
        defer { tail.signal(SIGTERM) }
        #expect(tail.waitForErrors { $0.contains("with this line of config these requests are hits: \(line)") })
        #expect(tail.errors.components(separatedBy: line).count == 2, "it is said once")
    }

    @Test func `make run says whether a repeated request to its upstream is a hit`() throws {
        for (control, expected) in [
            ("max-age=3600", "says `Cache-Status: larder; hit"), (nil, "ARGUMENTS='--fresh 60s'"),
        ] {
            let origin = try Origin { _ in .json("{}", control.map { ["Cache-Control": $0] } ?? [:]) }
            let folder = TemporaryFolder()
            let run = try TestProcess(
                "\(Repository.root)/scripts/run",
                [Larder.binary],
                environment: Larder.environment.merging([
                    "UPSTREAM": origin.url, "STORE": folder.file("larder.db"),
                    "LISTEN": "127.0.0.1:0", "ADMIN": "127.0.0.1:0",
                ]) { $1 }
            )
            defer {
                run.signal(SIGTERM)
                run.waitForEnd()
            }
            #expect(eventually { run.output.contains("Ctrl-C ends Larder") || run.end != nil })
            #expect(run.output.contains(expected), "\(run.output)\(run.errors)")
        }
    }
}
