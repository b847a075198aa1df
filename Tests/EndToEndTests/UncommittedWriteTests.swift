import Foundation
import TestSupport
import Testing

/// Writes that are answered, and that the store has no room to take in: what it has from before them is not believed.
@Suite(.scripts) struct UncommittedWriteTests {
    /// A disk that is full at will: no file of the daemon's may be written past its first byte.
    final class Disk: Sendable {
        private let daemon = Monitor<Int32>(0)

        func isUsed(by larder: Larder) { daemon.withLock { $0 = larder.process.pid } }

        func fill() throws { try limit("0") }

        func makeRoom() throws { try limit("unlimited") }

        private func limit(_ size: String) throws {
            try TestProcess.run("prlimit", ["--pid", "\(daemon.current)", "--fsize=\(size):unlimited"])
        }
    }

    /// An origin with one user, whom a write changes while the disk gets full.
    private static func larder(_ disk: Disk, tells: Bool = true) throws -> (Larder, Origin) {
        let name = Monitor("old")
        let origin = try Origin { request in
            func user(_ name: String) -> String { #"{"id":1,"login":"ada","name":"\#(name)"}"# }
            if request.method == "PATCH" {
                name.withLock { $0 = "new" }
                try? disk.fill()
                return tells ? .json(user("new")) : .empty(204)
            }
            switch request.path {
            case "/search/users": return .json(#"{"items":[\#(user(name.current))]}"#, Fresh.tagged(name.current))
            case "/plain": return .text("plain", Fresh.hour)
            default: return .json(user(name.current), Fresh.tagged(name.current))
            }
        }
        let folder = TemporaryFolder()
        let config = Configs.blog(origin, upstream: [UnobservedWriteTests.Users.bound])
        let larder = try Larder(
            arguments: ["--config", try folder.write(config, to: "larder.yaml")],
            folder: folder
        )
        disk.isUsed(by: larder)
        _ = try larder.get("/search/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        #expect(try larder.get("/search/users").isHit)
        return (larder, origin)
    }

    private static func search(_ name: String) -> String { #"{"items":[{"id":1,"login":"ada","name":"\#(name)"}]}"# }

    @Test(arguments: [true, false])
    func `while the disk has no room for a write, older responses are fetched again`(tells: Bool)
        throws
    {
        let disk = Disk()
        let (larder, origin) = try Self.larder(disk, tells: tells)
        #expect(try larder.request("PATCH", "/people/ada", body: "{}").status == (tells ? 200 : 204))
        for _ in 0..<3 {
            let list = try larder.get("/search/users")
            #expect(!list.isHit && list.text == Self.search("new"))
            #expect(origin.requests.last?["If-None-Match"] == nil)
        }
        #expect(larder.log.contains("what a write changed could not be stored"))
        // Other answers are passed on as ever.
        #expect(try larder.get("/plain").text == "plain")
        try disk.makeRoom()
        #expect(eventually { larder.log.contains("what a write changed is stored now") })
        let after = try larder.get("/search/users")
        #expect(after.text == Self.search("new"))
        #expect(try eventually { try larder.get("/search/users").isHit })
        #expect(try larder.get("/search/users").text == Self.search("new"))
    }

    @Test func `without the upstream, a response older than an uncommitted write is served, with a detail`() throws {
        let disk = Disk()
        let (larder, origin) = try Self.larder(disk)
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 200)
        #expect(try larder.get("/search/users", ["Cache-Control": "only-if-cached"]).status == 504)
        origin.stop()
        let stale = try larder.get("/search/users")
        #expect(stale.status == 200 && stale.text == Self.search("old"))
        #expect(stale.cacheStatus.contains("detail="))
    }

    @Test func `a restart applies the durable mark of an uncommitted write`() throws {
        let disk = Disk()
        let (larder, origin) = try Self.larder(disk)
        #expect(try larder.request("PATCH", "/people/ada", body: "{}").status == 200)
        larder.kill()
        try larder.start()
        let user = try larder.get("/users/1")
        #expect(!user.isHit && user.text.contains("new"))
        #expect(try larder.get("/search/users").text == Self.search("new"))
        #expect(origin.count("/search/users") == 2)
    }
}
