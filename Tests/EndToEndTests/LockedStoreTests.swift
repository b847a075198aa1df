import Foundation
import TestSupport
import Testing

/// A program that locks a daemon's store: it may read the files, and so it may lock them.
@Suite(.scripts) struct LockedStoreTests {
    private static func origin() throws -> Origin {
        try Origin { request in
            request.method == "PATCH"
                ? .empty(204) : .json(#"{"id":1,"login":"ada","name":"\#(request.path)"}"#, Fresh.hour)
        }
    }

    /// Holds a shared lock on one byte of the WAL's index, which stops every writer.
    static func lock(_ larder: Larder, byte: Int = 120) throws -> TestProcess {
        let script = """
            import fcntl, os, sys, time
            fcntl.lockf(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH, 1, \(byte))
            print("held", file=sys.stderr, flush=True)
            time.sleep(600)
            """
        let process = try TestProcess("python3", ["-c", script, larder.folder.file("larder.db-shm")])
        guard process.waitForErrors(until: { $0.contains("held") }) else { throw SocketError.timedOut }
        return process
    }

    @Test func `while a process locks the store, reads are served, and writes are refused with the process's name`()
        throws
    {
        let origin = try Self.origin()
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users/1")
        _ = try larder.get("/other")
        #expect(try larder.waitForDocuments(2))
        let holder = try Self.lock(larder)
        let name = "process \(holder.pid) (python3)"
        for number in 2...10 {
            #expect(try larder.get("/users/1").isHit)
            #expect(try larder.get("/other").isHit)
            #expect(try larder.get("/users/\(number)").status == 200)
            #expect(try larder.get("/users/1", ["Authorization": "Bearer \(number)"]).status == 200)
            // Without objects a response is kept in memory.
            #expect(try larder.get("/more/\(number)").status == 200)
            #expect(try larder.get("/more/\(number)").isHit)
            let asked = origin.count()
            let refusal = try larder.request("PATCH", "/users/1", body: "{}")
            #expect(refusal.status == 503 && refusal.text.contains(name), "\(refusal.text)")
            #expect(origin.count() == asked)
        }
        #expect(larder.log.contains("\(name) keeps it locked"), "\(larder.log)")
        #expect(try larder.admin("GET", "/metrics").text.contains(#"larder_store_locked{by="\#(name)"} 1"#))
        #expect(try larder.admin("GET", "/count").object["documents"] as? Int == 2)
        holder.signal(SIGKILL)
        #expect(eventually { larder.log.contains("the store can be written again") })
        #expect(try larder.admin("GET", "/metrics").text.contains("larder_store_locked 0"))
        #expect(try larder.request("PATCH", "/users/1", body: "{}").status == 204)
        _ = try larder.get("/users/3")
        #expect(try eventually { try larder.get("/users/3").isHit })
    }

    @Test func `while the store is locked Cache-Status does not say stored`() throws {
        let origin = try Self.origin()
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(1))
        let holder = try Self.lock(larder)
        // Its commit begins to wait.
        _ = try larder.get("/users/2")
        let requests: [(String, FieldLines)] = [
            ("/users/2", [:]), ("/users/2", ["Cache-Control": "no-cache"]), ("/users/3", ["Authorization": "Bearer 3"]),
        ]
        for (target, fields) in requests {
            let response = try larder.get(target, fields)
            #expect(response.status == 200 && !response.cacheStatus.contains("stored"), "\(response.cacheStatus)")
        }
        holder.signal(SIGKILL)
        #expect(try eventually { try larder.get("/users/2").isHit })
    }

    @Test(arguments: [120, 121, 122])
    func `a start that another process's lock prevents names that process`(byte: Int) throws {
        let larder = try Larder(try Self.origin())
        larder.terminate()
        let holder = try Self.lock(larder, byte: byte)
        let blocked = try TestProcess(
            Larder.binary,
            [
                "serve", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
                "--store", larder.folder.file("larder.db"),
            ]
        )
        blocked.waitForEnd()
        #expect(blocked.errors.contains("process \(holder.pid) (python3) keeps it locked"), "\(blocked.errors)")
        holder.signal(SIGKILL)
        try larder.start()
        #expect(try larder.get("/users/1").status == 200)
    }
}
