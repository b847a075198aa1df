import EventLoops
import Glibc
import Settings

/// Runs the daemon until it is told to stop; gives the exit code.
///
/// - Throws: what keeps it from starting, with a message for the person who starts it.
func runDaemon(_ settings: Configuration) throws -> Int32 {
    // A client that leaves must not end the process; neither libevent nor libcurl sees to that.
    signal(SIGPIPE, SIG_IGN)
    // Bodies are made on one thread and let go of on another: with an arena for each of them, glibc keeps half as much
    // memory again as the daemon uses.
    EventSystem.limitArenas(to: 2)
    let daemon = try LarderDaemon(settings, environment: Environment.variables)
    let code = daemon.run()
    // Never given back: what lives on the loops may only be taken apart on their threads, which end with the process.
    _ = Unmanaged.passRetained(daemon)
    return code
}
