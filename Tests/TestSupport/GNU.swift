import Glibc

/// System calls that Swift's Glibc module hides because they are GNU's own.
///
/// They matter here: a descriptor that is not close-on-exec from its first moment leaks into whatever another test starts
/// just then, and keeps a connection open that the test has closed.
package enum GNU {
    package static func accept4(_ socket: Int32, flags: Int32) -> Int32 {
        typealias Function = @convention(c) (Int32, OpaquePointer?, OpaquePointer?, Int32) -> Int32
        return unsafeBitCast(symbol("accept4"), to: Function.self)(socket, nil, nil, flags)
    }

    package static func pipe2(_ ends: UnsafeMutablePointer<Int32>, flags: Int32) -> Int32 {
        typealias Function = @convention(c) (UnsafeMutablePointer<Int32>, Int32) -> Int32
        return unsafeBitCast(symbol("pipe2"), to: Function.self)(ends, flags)
    }

    /// Has a process that is to be started close everything from this descriptor on.
    static func addCloseFrom(_ first: Int32, to actions: UnsafeMutablePointer<posix_spawn_file_actions_t>) {
        typealias Function = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32
        let code = unsafeBitCast(symbol("posix_spawn_file_actions_addclosefrom_np"), to: Function.self)(actions, first)
        precondition(code == 0, "descriptors cannot be closed: \(code)")
    }

    private static func symbol(_ name: String) -> UnsafeMutableRawPointer { dlsym(nil, name)! }
}
