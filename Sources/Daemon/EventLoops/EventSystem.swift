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

/// The system calls of the loop and of the HTTP server, each made and its `errno` read in one step.
///
/// Nothing may run between a call and the reading of `errno`, not even a release; hence one function per call, never
/// inlined into code that the compiler could reorder around it.
package enum SystemCall {
    /// What a call gave: its value, or the error number.
    package enum Outcome<Value: Sendable>: Sendable {
        case done(Value)
        case failed(Int32)
    }

    /// Makes the call again as long as a signal interrupts it.
    @inline(never)
    package static func retried(_ call: () -> Int) -> Outcome<Int> {
        while true {
            let value = call()
            if value >= 0 { return .done(value) }
            let number = errno
            if number != EINTR { return .failed(number) }
        }
    }

    /// The system's words for an error number.
    package static func message(_ number: Int32) -> String {
        var buffer = [CChar](repeating: 0, count: 128)
        return buffer.withUnsafeMutableBufferPointer { room in
            // The GNU form of strerror_r is not visible to Swift; this is the POSIX one, thread-safe.
            guard let text = room.baseAddress, strerror_r(number, text, room.count) == 0 else {
                return "error \(number)"
            }
            return String(cString: text)
        }
    }
}
