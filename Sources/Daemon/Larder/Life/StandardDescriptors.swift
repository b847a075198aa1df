import Glibc

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
