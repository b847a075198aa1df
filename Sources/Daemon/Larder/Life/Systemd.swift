import Basics
import EventLoops
import Glibc
import HTTPSemantics
import HTTPServer
import Settings
import Synchronization

/// Messages to the socket that `NOTIFY_SOCKET` names (sd_notify(3)), if any; any thread, never blocks.
struct SystemdNotifier: Sendable {
    /// The socket's path, or its abstract name after an `@`; nil without a service manager.
    let address: String?
    /// How often the manager expects a message; nil if it does not watch this process.
    let watchdogInterval: Duration?

    init(environment: [String: String], process: Int32 = getpid()) {
        let named = environment["NOTIFY_SOCKET"] ?? ""
        address = named.hasPrefix("/") || named.hasPrefix("@") ? named : nil
        let isForUs = environment["WATCHDOG_PID"].map { Int32($0) == process } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) } ?? 0
        watchdogInterval = isForUs && microseconds > 0 ? .microseconds(microseconds) : nil
    }

    enum State: Sendable, Equatable {
        case ready
        /// Its config is being read again; `ready` follows.
        case reloading
        case stopping
        /// One line for `systemctl status`.
        case status(String)
        case watchdog

        fileprivate var line: String {
            switch self {
            case .ready: "READY=1"
            case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(SystemClock.nanoseconds(CLOCK_MONOTONIC) / 1_000)"
            case .stopping: "STOPPING=1"
            case .status(let text): "STATUS=" + String(text.map { $0.isNewline ? " " : $0 })
            case .watchdog: "WATCHDOG=1"
            }
        }

        static func serving(_ settings: Configuration) -> State {
            .status("serving \(settings.upstreams.map(\.name).joined(separator: ", "))")
        }
    }

    /// Sends the states in one datagram; returns false without a service manager, or if the kernel refuses it.
    @discardableResult
    func send(_ states: State...) -> Bool {
        guard let address else { return false }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let message = Array(states.map(\.line).joined(separator: "\n").utf8)
        guard let (name, length) = unixSocketName(address) else { return false }
        var socketName = name
        let sent = withUnsafePointer(to: &socketName) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, message, message.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT), $0, length)
            }
        }
        return sent == message.count
    }
}

/// The kernel's form of a Unix socket's address, abstract with a leading `@`; nil if it is too long.
func unixSocketName(_ address: String) -> (name: sockaddr_un, length: socklen_t)? {
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(address.utf8)
    let isAbstract = bytes.first == UInt8(ascii: "@")
    if isAbstract { bytes[0] = 0 }
    let capacity = MemoryLayout.size(ofValue: name.sun_path)
    // A path needs its NUL; an abstract name ends with the length and may fill everything.
    guard bytes.count > (isAbstract ? 1 : 0), bytes.count + (isAbstract ? 0 : 1) <= capacity else { return nil }
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: bytes) }
    let header = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? MemoryLayout<sa_family_t>.size
    return (name, socklen_t(header + bytes.count + (isAbstract ? 0 : 1)))
}

/// Reports to the service manager that the daemon is alive, as long as every event loop is.
///
/// A beat asks each loop for a sign of life from its own thread; the next beat notifies the manager only if all have responded. A
/// loop that hangs silences the watchdog, and the manager restarts the daemon (systemd.service(5), `WatchdogSec=`).
final class Watchdog: Sendable {
    /// A loop that must be alive: its name, and how to run something on its thread.
    struct Member: Sendable {
        let name: String
        let enqueue: @Sendable (@escaping @Sendable () -> Void) -> Void
    }

    /// Half of the manager's limit, as sd_watchdog_enabled(3) recommends.
    let period: Duration
    private let notifier: SystemdNotifier
    private let members: [Member]
    private let round: Mutex<Round>

    private struct Round {
        var number = 0
        var missing: Set<Int> = []
        /// Whether a beat came while a member was missing: the manager is still waiting for it.
        var isOverdue = false
    }

    /// Nil if the service manager does not watch this process.
    init?(notifier: SystemdNotifier, members: [Member]) {
        guard let interval = notifier.watchdogInterval else { return nil }
        period = interval / 2
        (self.notifier, self.members) = (notifier, members)
        round = Mutex(Round())
    }

    /// Runs one beat, every `period`, on any thread; returns the loops that have not responded to the previous one.
    @discardableResult
    func beat() -> [String] {
        let (number, late) = round.withLock { round -> (Int, [String]) in
            if round.missing.isEmpty {
                round = Round(number: round.number + 1, missing: Set(members.indices))
                return (round.number, [])
            }
            // A late member still owes its response to the old round and is not asked again, so that nothing piles up on a loop
            // that hangs.
            round.isOverdue = true
            return (round.number, round.missing.sorted().map { members[$0].name })
        }
        guard late.isEmpty else { return late }
        for (index, member) in members.enumerated() { member.enqueue { [self] in responded(index, round: number) } }
        notifier.send(.watchdog)
        return []
    }

    /// Notes a member's sign of life; on its thread.
    private func responded(_ member: Int, round number: Int) {
        let isOverdue = round.withLock { round -> Bool in
            guard round.number == number else { return false }
            round.missing.remove(member)
            guard round.missing.isEmpty else { return false }
            defer { round.isOverdue = false }
            return round.isOverdue
        }
        // The manager might not wait until the next beat.
        if isOverdue { notifier.send(.watchdog) }
    }
}

extension Watchdog.Member {
    init(_ loop: EventLoop) { self.init(name: loop.name, enqueue: { loop.enqueue($0) }) }
}

extension Watchdog {
    /// Beats on this loop, on its thread, until the timer is dropped; `late` gets the names of loops that miss a beat.
    func start(on loop: EventLoop, late: @escaping ([String]) -> Void) -> EventTimer {
        beat()
        return loop.every(period) { [self] in
            let names = beat()
            if !names.isEmpty { late(names) }
        }
    }
}

struct InheritedListener: Sendable, Equatable {
    let descriptor: Int32
    /// The unit's `FileDescriptorName=`; without one, the name of its socket unit; `unknown` when the manager gave none.
    let name: String
    let address: Address
}

enum ListenDescriptorsError: Error, Equatable, CustomStringConvertible {
    case notOpen(descriptor: Int32)
    case notListening(descriptor: Int32, name: String)

    var description: String {
        switch self {
        case .notOpen(let descriptor):
            "LISTEN_FDS promises descriptor \(descriptor), which is not open: is LISTEN_FDS set by hand?"
        case .notListening(let descriptor, let name):
            "descriptor \(descriptor) (\(name)) from the service manager is not a listening stream socket: use ListenStream= with Accept=no"
        }
    }
}

/// The sockets handed over by a service manager (sd_listen_fds(3)).
enum ListenDescriptors {
    static let first: Int32 = 3

    /// Takes the inherited sockets, and removes their variables from the environment so that no child takes them for its own.
    ///
    /// Call it once, at start, while the process has one thread: changing the environment is not safe later.
    static func take(environment: [String: String], process: Int32 = getpid(), first: Int32 = first)
        throws(ListenDescriptorsError) -> [InheritedListener]
    {
        for variable in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] { unsetenv(variable) }
        guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == process,
            let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }), count > 0, count < 1024
        else { return [] }
        let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        var listeners: [InheritedListener] = []
        for index in 0..<count {
            let descriptor = first + index
            let name = Int(index) < names.count && !names[Int(index)].isEmpty ? String(names[Int(index)]) : "unknown"
            let flags = fcntl(descriptor, F_GETFD)
            guard flags >= 0 else { throw .notOpen(descriptor: descriptor) }
            _ = fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC)
            guard option(SO_ACCEPTCONN, of: descriptor) == 1,
                option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
            else { throw .notListening(descriptor: descriptor, name: name) }
            let address = SocketAddress.bound(descriptor).readable
            listeners.append(InheritedListener(descriptor: descriptor, name: name, address: address))
        }
        return listeners
    }

    private static func option(_ option: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 ? value : nil
    }
}

extension [InheritedListener] {
    /// Separates data and admin sockets.
    ///
    /// The names `data` and `admin` decide; without them, a socket bound to one of the config's admin addresses
    /// (`127.0.0.1:8788`, `unix:/run/larder/admin.sock`) is the admin side's, all others serve data.
    func sorted(adminAddresses: [String]) -> (data: [InheritedListener], admin: [InheritedListener]) {
        func isAdmin(_ listener: InheritedListener) -> Bool {
            listener.name == "admin" || (listener.name != "data" && adminAddresses.contains("\(listener.address)"))
        }
        return (filter { !isAdmin($0) }, filter(isAdmin))
    }
}
