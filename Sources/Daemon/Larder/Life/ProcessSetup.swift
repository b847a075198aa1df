import Glibc

/// Signals that would end the process by default, though nobody who sends them wants that: other daemons read their config or
/// open their logs again at them.
enum HarmlessSignals {
    /// Those that the daemon hears: what was ignored when it was started, as by `nohup`, stays so.
    static let handled = [SIGHUP, SIGUSR1, SIGUSR2].filter { number in
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return true }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            != unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Whether there was a terminal at the start that could end the daemon with it.
    private static let hadTerminal = hasTerminal

    private static var hasTerminal: Bool {
        let descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        close(descriptor)
        return true
    }

    /// Whether the daemon was started in a terminal that is closed now.
    static var hasLostTerminal: Bool { hadTerminal && !hasTerminal }

    /// Ignores them until the daemon can hear them; before anything else.
    static func ignore() {
        _ = hadTerminal
        for number in handled { signal(number, SIG_IGN) }
    }

    static func name(of signal: Int32) -> String {
        switch signal {
        case SIGHUP: "SIGHUP"
        case SIGUSR1: "SIGUSR1"
        default: "SIGUSR2"
        }
    }
}

/// The descriptors 0, 1 and 2, which may be closed when the daemon is started.
enum StandardDescriptors {
    /// Opens those that are closed, on nothing: else the next socket would be called 2, and log lines would go to a client.
    static func open() {
        for number in Int32(0)...2 where fcntl(number, F_GETFD) < 0 {
            // The lowest number that is free, which is this one.
            _ = Glibc.open("/dev/null", number == 0 ? O_RDONLY : O_WRONLY)
        }
    }
}

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
