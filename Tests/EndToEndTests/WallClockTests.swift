import Foundation
import TestSupport
import Testing

/// Machines whose wall clock is set while the daemon runs, or while it does not.
@Suite(.scripts) struct WallClockTests {
    /// A wall clock that is wrong by as many seconds as a file says; elapsed time is left alone.
    private static let library = """
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        int clock_gettime(clockid_t clock, struct timespec *time) {
            int result = syscall(SYS_clock_gettime, clock, time);
            if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return result;
            int file = open(getenv("WALL_CLOCK_FILE"), O_RDONLY | O_CLOEXEC);
            if (file < 0) return result;
            char text[32] = {0};
            if (read(file, text, sizeof text - 1) > 0) time->tv_sec += atol(text);
            close(file);
            return result;
        }
        """

    private static let day = 86_400

    private static func larder(_ origin: Origin, _ folder: TemporaryFolder) throws -> Larder {
        let source = try folder.write(library, to: "wall.c")
        let compiler = try ChildProcess("clang", ["-shared", "-fPIC", "-o", folder.file("wall.so"), source])
        try #require(compiler.waitForEnd() == .exited(0), "\(compiler.errors)")
        return try Larder(
            arguments: ["--upstream", origin.url],
            folder: folder,
            environment: ["LD_PRELOAD": folder.file("wall.so"), "WALL_CLOCK_FILE": folder.file("seconds")]
        )
    }

    private static func set(_ folder: TemporaryFolder, to seconds: Int) throws {
        try folder.write("\(seconds)", to: "seconds")
    }

    @Test(arguments: [false, true])
    func `a response stored while the wall clock was ahead becomes stale in time`(isRestarted: Bool)
        throws
    {
        let folder = TemporaryFolder()
        // Without a Date of the upstream's, which would tell that the clock is wrong.
        let origin = try Origin { _ in .json("{}", ["Cache-Control": "max-age=2"]) }
        try Self.set(folder, to: Self.day)
        let larder = try Self.larder(origin, folder)
        _ = try larder.get("/x")
        try Self.set(folder, to: 0)
        if isRestarted { try larder.restart() }
        #expect(try eventually { try !larder.get("/x").isHit })
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [1, -1])
    func `a used-up limit ends when it would have ended, however the wall clock is set`(direction: Int) throws {
        let folder = TemporaryFolder()
        let reset = Monitor(3_600)
        let origin = try Origin { _ in
            .json("{}", ["X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "\(reset.current)"])
        }
        try Self.set(folder, to: 0)
        let larder = try Self.larder(origin, folder)
        _ = try larder.get("/x/1")
        try Self.set(folder, to: direction * Self.day)
        let refusal = try larder.get("/x/2")
        #expect(refusal.status == 429 && (3_000...3_600).contains(Int(refusal["Retry-After"] ?? "") ?? 0))
        // Another path has another limit, as long as the upstream names none.
        reset.withLock { $0 = 2 }
        _ = try larder.get("/y/1")
        try Self.set(folder, to: -direction * Self.day)
        #expect(try eventually { try larder.get("/y/2").status == 200 })
    }

    @Test func `if the wall clock was ahead when the store was closed, later responses are not stale on arrival`()
        throws
    {
        let folder = TemporaryFolder()
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        try Self.set(folder, to: Self.day)
        let larder = try Self.larder(origin, folder)
        _ = try larder.get("/x")
        larder.terminate()
        try Self.set(folder, to: 0)
        try larder.start()
        _ = try larder.get("/y")
        #expect(try larder.get("/y").isHit)
    }
}
