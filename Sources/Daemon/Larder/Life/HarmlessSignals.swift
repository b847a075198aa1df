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
