import Glibc

/// How much the kernel has received on a socket.
enum SocketCount {
    /// All bytes received in the life of a TCP connection, read or not; nil for other sockets.
    static func receivedBytes(_ socket: Int32) -> UInt64? {
        // `tcpi_bytes_received` of Linux's tcp_info, which glibc's older declaration of the structure lacks.
        let offset = 128
        var size = socklen_t(offset + 8)
        return withUnsafeTemporaryAllocation(byteCount: Int(size), alignment: 8) { room in
            let failed = getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, room.baseAddress, &size)
            guard failed == 0, Int(size) >= offset + 8 else { return nil }
            // The other side's FIN is counted as a byte. After a reset it cannot be told whether there was one: then a
            // connection that brought nothing seems to have brought a byte, which errs on the safe side.
            let hasFIN = Self.statesAfterFIN.contains(room.load(as: UInt8.self))
            return room.load(fromByteOffset: offset, as: UInt64.self) &- (hasFIN ? 1 : 0)
        }
    }

    /// `TCP_TIME_WAIT`, `TCP_CLOSE_WAIT`, `TCP_LAST_ACK`, `TCP_CLOSING` as `tcpi_state`, the structure's first byte.
    private static let statesAfterFIN: Set<UInt8> = [6, 8, 9, 11]

    /// Whether bytes wait to be read.
    static func hasBytes(_ socket: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }
}
