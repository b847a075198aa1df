package import Glibc

/// Programs that this process starts.
package enum ChildProcess {
    package struct StartError: Error { package let code: Int32 }

    /// Starts a program; the caller has to wait for its end.
    ///
    /// - Parameters:
    ///   - program: its file, if the command's first word, which is looked for in the `PATH`, is another.
    ///   - descriptors: what it has as descriptors 0, 1 and so on; nil for `/dev/null`. Those beyond stay as they are.
    package static func start(
        _ command: [String],
        program: String? = nil,
        _ variables: [String: String],
        descriptors: [Int32?] = []
    ) throws(StartError) -> pid_t {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The daemon ignores some signals, and its threads block others; the program must start with the defaults.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for number in [SIGPIPE, SIGXFSZ, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2] { sigaddset(&signals, number) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in zip(Int32(0)..., descriptors) {
            if let descriptor {
                posix_spawn_file_actions_adddup2(&actions, descriptor, number)
            } else {
                posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
            }
        }
        let arguments = command.map { strdup($0) } + [nil]
        let environment = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { (arguments + environment).forEach { free($0) } }
        var pid = pid_t()
        let code = posix_spawnp(&pid, program ?? command[0], &actions, &attributes, arguments, environment)
        guard code == 0 else { throw StartError(code: code) }
        return pid
    }
}
