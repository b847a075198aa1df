import CEvent
import Glibc

/// The system calls around a loop that Swift's own Glibc module leaves out.
package enum EventSystem {
    /// Bounds the number of glibc's memory arenas (mallopt(3)); before the threads begin.
    package static func limitArenas(to count: Int32) {
        mallopt(M_ARENA_MAX, count)
    }

    /// The version of libevent that is linked.
    package static var version: String { String(cString: event_get_version()) }

    /// A counter that wakes whoever waits for it; nil with `errno` set when there are no descriptors left.
    static func makeWakeDescriptor() -> SystemCall.Outcome<Int> {
        SystemCall.retried { Int(eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))) }
    }

    /// Wakes whoever waits for the counter.
    ///
    /// Any thread.
    static func wake(_ descriptor: Int32) {
        _ = eventfd_write(descriptor, 1)
    }

    /// Names the calling thread for debuggers and `top`.
    static func nameThread(_ name: String) {
        _ = pthread_setname_np(pthread_self(), String(name.prefix(15)))
    }

    /// Takes one waiting connection from a listener, non-blocking and closed on exec.
    package static func accept(_ listener: Int32) -> SystemCall.Outcome<Int> {
        SystemCall.retried {
            Int(accept4(listener, nil, nil, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)))
        }
    }
}
