import EventLoops
import Glibc

/// The system calls on a connection's socket.
enum SocketCall {
    /// Reads what has arrived; 0 at the end.
    static func receive(_ descriptor: Int32, _ memory: UnsafeMutableRawPointer, _ count: Int) -> SystemCall.Outcome<Int>
    {
        SystemCall.retried { recv(descriptor, memory, count, 0) }
    }

    /// Writes as much as the socket takes.
    static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> SystemCall.Outcome<Int> {
        SystemCall.retried { Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Writes as much as the socket takes of several pieces.
    static func send(_ descriptor: Int32, _ vectors: UnsafeMutableBufferPointer<iovec>) -> SystemCall.Outcome<Int> {
        var message = msghdr()
        message.msg_iov = vectors.baseAddress
        message.msg_iovlen = vectors.count
        return SystemCall.retried { sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL)) }
    }

    /// Tells the client that nothing more will come, while it may still speak.
    static func endSending(_ descriptor: Int32) {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Bytes that the socket has taken and the client's side has not acknowledged.
    static func unacknowledged(_ descriptor: Int32) -> Int {
        var count: Int32 = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    /// Makes the next `close` a reset, which no client can take for a regular end.
    static func resetOnClose(_ descriptor: Int32) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}
