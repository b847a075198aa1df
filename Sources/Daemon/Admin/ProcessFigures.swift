import Glibc

/// What the kernel knows of this process, by the names that Prometheus gives it.
package struct ProcessFigures: Sendable {
    var residentBytes: Int?
    var virtualBytes: Int?
    var openDescriptors: Int?
    var descriptorLimit: Int?
    var cpuSeconds: Double

    /// Reads the present figures: a few system calls, some microseconds.
    static func read() -> ProcessFigures {
        let pages = contents(of: "/proc/self/statm").split(separator: " ").prefix(2).compactMap { Int($0) }
        let pageSize = sysconf(Int32(_SC_PAGESIZE))
        var limit = rlimit()
        let hasLimit = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return ProcessFigures(
            residentBytes: pages.count == 2 ? pages[1] * pageSize : nil,
            virtualBytes: pages.count == 2 ? pages[0] * pageSize : nil,
            openDescriptors: descriptorCount(),
            descriptorLimit: hasLimit ? Int(clamping: limit.rlim_cur) : nil,
            cpuSeconds: seconds(CLOCK_PROCESS_CPUTIME_ID)
        )
    }

    /// Seconds since 1970, for showing to people and monitors; never for ordering anything.
    package static func wallClock() -> Double {
        seconds(CLOCK_REALTIME)
    }

    private static func seconds(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func descriptorCount() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Without ".", ".." and the descriptor that this very look opened.
        return max(0, count - 3)
    }

    private static func contents(of path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(file, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : ""
    }
}
