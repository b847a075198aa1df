import Glibc

/// Runs the daemon until it is told to stop; gives the exit code.
///
/// - Throws: what keeps it from starting, with a message for the person who starts it.
func runDaemon(_ settings: Settings) throws -> Int32 {
    // A client that leaves must not end the process; neither libevent nor libcurl sees to that.
    signal(SIGPIPE, SIG_IGN)
    return try LarderDaemon(settings, environment: Environment.variables).run()
}
