import Foundation
import Mapping
import Synchronization
import TestSupport
import Testing

@testable import Store

/// Locks of other processes on the store's files, by which nothing can be written.
@Suite(.scripts) struct ForeignLockTests {
    /// A process that may only read the files, and locks bytes of the WAL's index.
    private final class Holder {
        let process: TestProcess

        init(_ store: String, bytes: ClosedRange<Int>) throws {
            let script = """
                import fcntl, os, sys, time
                file = os.open(sys.argv[1], os.O_RDONLY)
                fcntl.lockf(file, fcntl.LOCK_SH, \(bytes.count), \(bytes.lowerBound))
                print("held", file=sys.stderr, flush=True)
                time.sleep(600)
                """
            process = try TestProcess("python3", ["-c", script, store + "-shm"])
            try #require(process.waitForErrors(until: { $0.contains("held") }))
        }

        func release() {
            process.signal(SIGKILL)
            process.waitForEnd()
        }
    }

    private func bench() throws -> (Bench, notices: Monitor<[StoreNotice]>) {
        let notices = Monitor<[StoreNotice]>([])
        let bench = try Bench { configuration in
            configuration.notify = { notice in notices.withLock { $0.append(notice) } }
        }
        return (bench, notices)
    }

    private func failure(of work: () async throws -> Void) async -> StoreError? {
        do {
            try await work()
            return nil
        } catch { return error as? StoreError }
    }

    @Test(arguments: [120...120, 120...127])
    func `the holder of a shared lock on the WAL's index is named, and nothing waits for it`(bytes: ClosedRange<Int>)
        async throws
    {
        let (bench, notices) = try bench()
        try await bench.receive("/before", "1")
        let holder = try Holder(bench.folder.file(), bytes: bytes)
        let name = "process \(holder.process.pid) (python3)"
        let locked = StoreError.lockedOut("\(name) keeps it locked")
        for _ in 0..<20 {
            #expect(await failure { try await bench.receive("/during", "1") } == locked)
            let suspect = await failure {
                _ = try await bench.store.markSuspect(Invalidation(of: "github", paths: ["/before"], at: 0))
            }
            #expect(suspect == locked)
            #expect(try await bench.body("/before") == "1")
            #expect(try await bench.store.count().documents == 1)
        }
        #expect(bench.store.statistics.lockHolder == name)
        // It is said once.
        #expect(notices.current == [.lockedOut(by: name)])
        holder.release()
        #expect(await eventually { bench.store.statistics.lockHolder == nil })
        #expect(notices.current == [.lockedOut(by: name), .lockGone])
        try await bench.receive("/after", "1")
        #expect(try await bench.body("/after") == "1")
        await bench.store.close()
    }

    @Test func `a long reader that keeps the WAL from being emptied is named`() async throws {
        let (bench, notices) = try bench()
        try await bench.receive("/before", "1")
        let reader = try #require(ForeignReader(bench.folder.file()))
        let body = String(repeating: "x", count: 1 << 20)
        var failed: StoreError?
        for number in 0..<200 where failed == nil {
            failed = await failure { try await bench.receive("/during/\(number)", body + "\(number)") }
        }
        guard case .lockedOut(let reason)? = failed else {
            Testing.Issue.record("another end: \(String(describing: failed))")
            return
        }
        #expect(reason.contains("(sqlite3) reads an old state"), "\(reason)")
        #expect(notices.current.count == 1)
        // What a write may change is small, and still recorded.
        #expect(
            await failure {
                _ = try await bench.store.markSuspect(Invalidation(of: "github", paths: ["/before"], at: 0))
            } == nil
        )
        reader.end()
        #expect(await eventually { bench.store.statistics.lockHolder == nil })
        try await bench.receive("/after", "1")
        #expect(notices.current.last == .lockGone)
        await bench.store.close()
    }

    @Test func `the store waits for a lock that is held for a moment`() async throws {
        let bench = try Bench()
        let foreigner = try #require(ForeignReader(bench.folder.file(), mayWrite: true))
        bench.store.receive(bench.response("/a", "1")) { _ in }
        foreigner.end()
        try await bench.receive("/b", "1")
        #expect(try await bench.body("/a") == "1")
        await bench.store.close()
    }

    @Test func `a store whose WAL index is locked is not opened, and the error names the process`() async throws {
        let bench = try Bench()
        await bench.store.close()
        let holder = try Holder(bench.folder.file(), bytes: 0...200)
        let error = await failure { _ = try Bench(folder: bench.folder, time: bench.time) }
        guard case .cannotOpen(_, let reason)? = error else {
            Testing.Issue.record("another error: \(String(describing: error))")
            return
        }
        #expect(reason == "process \(holder.process.pid) (python3) keeps it locked; end that process")
        holder.release()
        await (try Bench(folder: bench.folder, time: bench.time)).store.close()
    }

    @Test func `a lock held for moments again and again is reported once, and requests do not wait for it`()
        async throws
    {
        let (bench, notices) = try bench()
        try await bench.receive("/before", "1")
        let script = """
            import fcntl, os, sys, time
            file = os.open(sys.argv[1], os.O_RDONLY)
            while True:
                fcntl.lockf(file, fcntl.LOCK_SH, 1, 120)
                time.sleep(0.6)
                fcntl.lockf(file, fcntl.LOCK_UN, 1, 120)
                time.sleep(0.05)
            """
        let process = try TestProcess("python3", ["-c", script, bench.folder.file() + "-shm"])
        let name = "process \(process.pid) (python3)"
        for number in 0..<1_000 where notices.current.isEmpty {
            _ = await failure { try await bench.receive("/\(number)", "1") }
        }
        #expect(notices.current == [.lockedAgainAndAgain(by: name)])
        #expect(bench.store.statistics.lockHolder == name)
        process.signal(SIGKILL)
        process.waitForEnd()
        try await bench.receive("/after", "1")
        #expect(notices.current.count == 1)
        await bench.store.close()
    }
}
