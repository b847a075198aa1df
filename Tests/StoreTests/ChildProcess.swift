import Glibc

/// A process of another program, without Foundation's, which may wait for ever for one that has ended.
struct ChildProcess {
    private let identifier: pid_t

    /// Starts a program with its standard error thrown away; nil when it cannot be started.
    init?(_ arguments: [String], input: String = "/dev/null", output: String = "/dev/null") {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // Nothing of the test's: neither its sockets, nor locks of whoever runs it, nor its threads' blocked signals.
        for descriptor in Int32(3)..<1024 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        defer { for word in words { free(word) } }
        words.append(nil)
        let path = strdup("PATH=\(String(cString: getenv("PATH")))")
        defer { free(path) }
        let environment = [path, nil]
        var identifier = pid_t()
        guard posix_spawnp(&identifier, arguments[0], &actions, &attributes, words, environment) == 0 else {
            return nil
        }
        self.identifier = identifier
    }

    /// Whether it has not ended yet.
    var isRunning: Bool {
        var information = siginfo_t()
        let found = waitid(P_PID, id_t(identifier), &information, WEXITED | WNOHANG | WNOWAIT)
        return found == 0 && information.si_signo == 0
    }

    /// Waits for its end; true when it went well.
    @discardableResult
    func wait() -> Bool {
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        return status == 0
    }

    /// Ends it, whatever it is doing.
    func end() {
        kill(identifier, SIGKILL)
        wait()
    }
}
