import Glibc

/// The bound on open descriptors: clients' connections must leave enough of them for the store and the upstreams.
enum DescriptorLimit {
    /// Raises the bound as far as the process may; gives it.
    static func raised() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
        if limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// How many clients' connections there may be within a bound.
    ///
    /// Loops, listeners, the store's files and its readers take some fifty descriptors, and the server opens up to 64
    /// connections more than it serves, to say so.
    static func connections(wanted: Int, within limit: Int, upstreamConnections: Int) -> Int {
        let rest = limit - 128 - upstreamConnections
        return max(1, min(wanted, max(rest, limit / 8)))
    }
}
