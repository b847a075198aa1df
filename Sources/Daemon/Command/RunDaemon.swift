/// Runs the daemon until it is told to stop; gives the exit code.
func runDaemon(_ settings: Settings) throws -> Int32 {
    Terminal.complain("the daemon is not built into this binary")
    return 1
}
