#if DEBUG
    import Glibc

    /// Lets a test of the daemon hold each commit between the moment at which readers see it and its publication.
    ///
    /// The writer adds a byte to a file at each commit, and then waits while another process holds a lock on it
    /// (`flock`).
    public enum CommitGate {
        static let variable = "LARDER_COMMIT_GATE"

        /// The gate that the environment asks for; nil if it asks for none.
        public static func step() -> (@Sendable (CommitStep) -> Void)? {
            guard let path = getenv(variable) else { return nil }
            let file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            precondition(file >= 0, "\(variable) names a file that cannot be opened")
            return { step in
                guard case .committed = step else { return }
                precondition(write(file, "c", 1) == 1, "the file of \(variable) cannot be written")
                while flock(file, LOCK_EX) != 0 && errno == EINTR {}
                flock(file, LOCK_UN)
            }
        }
    }
#endif
