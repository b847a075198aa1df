import Glibc

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
