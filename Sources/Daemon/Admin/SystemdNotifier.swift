import Glibc

/// The daemon's word to its service manager: datagrams to the socket that `NOTIFY_SOCKET` names (sd_notify(3)).
///
/// Without a service manager every call does nothing. Any thread; a call never blocks.
package struct SystemdNotifier: Sendable {
    /// The socket's path, or its abstract name behind an `@`; nil when nobody listens.
    let address: String?
    /// How often the manager wants to hear from us; nil when it does not watch this process.
    let watchdogInterval: Duration?

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    package init(environment: [String: String], process: Int32 = getpid()) {
        let named = environment["NOTIFY_SOCKET"] ?? ""
        address = named.hasPrefix("/") || named.hasPrefix("@") ? named : nil
        let isForUs = environment["WATCHDOG_PID"].map { Int32($0) == process } ?? true
        if isForUs, let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 {
            watchdogInterval = .microseconds(microseconds)
        } else {
            watchdogInterval = nil
        }
    }

    /// What a service manager is told.
    package enum State: Sendable, Equatable {
        case ready
        case stopping
        /// One line for `systemctl status`.
        case status(String)
        case watchdog

        fileprivate var line: String {
            switch self {
            case .ready: "READY=1"
            case .stopping: "STOPPING=1"
            case .status(let text): "STATUS=" + String(text.map { $0.isNewline ? " " : $0 })
            case .watchdog: "WATCHDOG=1"
            }
        }
    }

    /// Sends the states in one datagram; false when nobody listens or the kernel would not take it.
    @discardableResult
    package func send(_ states: State...) -> Bool {
        guard let address else { return false }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let message = Array(states.map(\.line).joined(separator: "\n").utf8)
        guard let (name, length) = unixSocketName(address) else { return false }
        var socketName = name
        let sent = withUnsafePointer(to: &socketName) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    descriptor,
                    message,
                    message.count,
                    Int32(MSG_NOSIGNAL | MSG_DONTWAIT),
                    $0,
                    length
                )
            }
        }
        return sent == message.count
    }
}

/// The kernel's form of a Unix socket's address; a leading `@` means the abstract name space.
///
/// Nil when it is too long.
func unixSocketName(_ address: String) -> (name: sockaddr_un, length: socklen_t)? {
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(address.utf8)
    let isAbstract = bytes.first == UInt8(ascii: "@")
    if isAbstract { bytes[0] = 0 }
    let capacity = MemoryLayout.size(ofValue: name.sun_path)
    // A path wants its NUL; an abstract name ends with the length and may fill everything.
    guard bytes.count > (isAbstract ? 1 : 0), bytes.count + (isAbstract ? 0 : 1) <= capacity else { return nil }
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: bytes) }
    let header = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? MemoryLayout<sa_family_t>.size
    return (name, socklen_t(header + bytes.count + (isAbstract ? 0 : 1)))
}
