/// Why an event loop, or something on it, could not be made.
package enum LoopError: Error, Sendable, Equatable {
    /// libevent gave no base: memory or descriptors have run out.
    case noBase
    /// A system call that the loop needs failed.
    case system(call: String, errno: Int32)
}

extension LoopError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noBase: "the event loop could not be created: out of memory or of file descriptors"
        case .system(let call, let errno): "the event loop could not be created: \(call): \(SystemCall.message(errno))"
        }
    }
}
