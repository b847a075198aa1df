import Foundation

/// The wall clock of a process, which a test sets while it runs; elapsed time is left alone.
package final class WallClock: Sendable {
    /// It reads a file each time, and is wrong by as many seconds as that says.
    private static let source = """
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
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
        int gettimeofday(struct timeval *time, void *zone) {
            struct timespec now;
            int result = clock_gettime(CLOCK_REALTIME, &now);
            time->tv_sec = now.tv_sec;
            time->tv_usec = now.tv_nsec / 1000;
            return result;
        }
        """

    private static let library = Result { () throws -> TemporaryFolder in
        let folder = TemporaryFolder()
        let file = try folder.write(source, to: "wall.c")
        try TestProcess.run("clang", ["-shared", "-fPIC", "-O1", "-o", folder.file("wall.so"), file])
        return folder
    }

    private let folder: TemporaryFolder
    /// What the process needs in its environment.
    package let environment: [String: String]

    /// - Parameter folder: where the file is.
    package init(in folder: TemporaryFolder = TemporaryFolder()) throws {
        self.folder = folder
        environment = try [
            "LD_PRELOAD": Self.library.get().file("wall.so"), "WALL_CLOCK_FILE": folder.file("seconds"),
        ]
        try set(ahead: 0)
    }

    /// Sets it so many seconds ahead of the machine's.
    package func set(ahead seconds: Int) throws {
        // Whoever reads it meanwhile gets the former or the new one.
        let draft = try folder.write("\(seconds)", to: "seconds.new")
        guard rename(draft, folder.file("seconds")) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }
}
