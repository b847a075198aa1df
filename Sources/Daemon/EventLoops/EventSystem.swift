import CEvent
import Glibc

/// The system calls around a loop that Swift's own Glibc module lacks.
package enum EventSystem {
    /// Limits the number of glibc's memory arenas (mallopt(3)); must be called before threads start.
    package static func limitArenas(to count: Int32) {
        mallopt(M_ARENA_MAX, count)
    }

    /// The version of the linked libevent.
    package static var version: String { String(cString: event_get_version()) }

    /// Makes an eventfd counter to wake a waiting thread; fails if no descriptors are left.
    static func makeWakeDescriptor() -> SystemCall.Outcome<Int> {
        SystemCall.retried { Int(eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))) }
    }

    /// Wakes the thread that waits for the counter.
    ///
    /// May be called on any thread.
    static func wake(_ descriptor: Int32) {
        _ = eventfd_write(descriptor, 1)
    }

    /// Names the calling thread for debuggers and `top`.
    static func nameThread(_ name: String) {
        _ = pthread_setname_np(pthread_self(), String(name.prefix(15)))
    }

    /// Accepts one waiting connection from a listener, non-blocking and closed on exec.
    package static func accept(_ listener: Int32) -> SystemCall.Outcome<Int> {
        SystemCall.retried {
            Int(accept4(listener, nil, nil, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)))
        }
    }
}

/// The system calls of the loop and of the HTTP server, each made together with reading its `errno`.
///
/// No code may run between a call and the reading of `errno`, not even a release. Hence one function makes the call, and is
/// never inlined into code that the compiler could reorder around it.
package enum SystemCall {
    /// The result of a call: its value, or the error number.
    package enum Outcome<Value: Sendable>: Sendable {
        case done(Value)
        case failed(Int32)
    }

    /// Makes a call, and repeats it while a signal interrupts it.
    @inline(never)
    package static func retried(_ call: () -> Int) -> Outcome<Int> {
        while true {
            let value = call()
            if value >= 0 { return .done(value) }
            let number = errno
            if number != EINTR { return .failed(number) }
        }
    }

    /// The system's message for an error number.
    package static func message(_ number: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 128)
        return buffer.withUnsafeMutableBufferPointer { room in
            // Swift does not see the GNU form of strerror_r; this is the POSIX one, which is thread-safe.
            guard let text = room.baseAddress, strerror_r(number, text, room.count) == 0 else {
                return "error \(number)"
            }
            return String(cString: text)
        }
    }
}
