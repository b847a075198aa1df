import Glibc

/// Signals that would end the process by default, although the sender does not intend that.
///
/// Other daemons reload their config or reopen their logs at them.
enum HarmlessSignals {
    /// The signals that the daemon handles; those ignored at its start, for example by `nohup`, stay ignored.
    static let handled = [SIGHUP, SIGUSR1, SIGUSR2].filter { number in
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return true }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            != unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Whether it started with a terminal that could end the daemon by closing.
    private static let hadTerminal = hasTerminal

    private static var hasTerminal: Bool {
        let descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        close(descriptor)
        return true
    }

    /// Whether the daemon's terminal has been closed since its start.
    static var hasLostTerminal: Bool { hadTerminal && !hasTerminal }

    /// Ignores them until the daemon can handle them; called first of all.
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
    /// Opens closed ones on `/dev/null`: otherwise the next socket would become 2, and log lines would go to a client.
    static func open() {
        for number in Int32(0)...2 where fcntl(number, F_GETFD) < 0 {
            // This opens the lowest free number, which is this one.
            _ = Glibc.open("/dev/null", number == 0 ? O_RDONLY : O_WRONLY)
        }
    }
}

/// The limit on open descriptors: clients' connections must leave enough for the store and the upstreams.
enum DescriptorLimit {
    /// Raises the limit as far as the process may; returns it.
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

    /// The number of client connections that fit within a limit.
    ///
    /// Loops, listeners, the store's files and its readers take some fifty descriptors. The server also opens up to 64
    /// connections above its limit, to refuse them with a message.
    static func connections(wanted: Int, within limit: Int, upstreamConnections: Int) -> Int {
        let rest = limit - 128 - upstreamConnections
        return max(1, min(wanted, max(rest, limit / 8)))
    }
}
