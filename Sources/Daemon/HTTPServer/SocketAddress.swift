import Glibc
package import HTTPSemantics

/// A socket address of any family, in the kernel's form.
package struct SocketAddress: Sendable {
    private var storage = sockaddr_storage()
    private var count = socklen_t(0)

    init(_ address: UnsafePointer<sockaddr>, _ count: socklen_t) {
        self.count = count
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(count)))
        }
    }

    /// Makes the address of a Unix socket; nil if the path is too long.
    init?(path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        self = withUnsafeBytes(of: &address) {
            SocketAddress($0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
    }

    /// The address that a socket is bound to, with the port that the kernel chose for port 0.
    package static func bound(_ descriptor: Int32) -> SocketAddress {
        var address = sockaddr_storage()
        var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = getsockname(descriptor, $0, &count)
                return SocketAddress($0, count)
            }
        }
    }

    /// The other end of a socket: the bytes of its address without the port, or of the user id of a Unix socket.
    static func peer(of descriptor: Int32) -> [UInt8] {
        var address = sockaddr_storage()
        var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &address) { bytes -> [UInt8] in
            guard let start = bytes.baseAddress,
                getpeername(descriptor, start.assumingMemoryBound(to: sockaddr.self), &count) == 0
            else { return [] }
            switch Int32(bytes.load(as: sa_family_t.self)) {
            case AF_INET: return Array(bytes[4..<8])
            case AF_INET6: return Array(bytes[8..<24])
            default:
                // `struct ucred`, which Glibc's module lacks: process, user and group.
                var peer: (Int32, UInt32, UInt32) = (0, 0, 0)
                count = socklen_t(MemoryLayout.size(ofValue: peer))
                guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &count) == 0 else { return [] }
                return withUnsafeBytes(of: peer.1) { Array($0) }
            }
        }
    }

    var family: Int32 { Int32(storage.ss_family) }
    private var hasPort: Bool { family == AF_INET || family == AF_INET6 }

    /// The offset of the port, the same in `sockaddr_in` and `sockaddr_in6`.
    private static let portOffset = 2

    /// The TCP port; 0 if there is none.
    var port: UInt16 {
        get {
            guard hasPort else { return 0 }
            return withUnsafeBytes(of: storage) {
                UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: Self.portOffset, as: UInt16.self))
            }
        }
        set {
            guard hasPort else { return }
            withUnsafeMutableBytes(of: &storage) {
                $0.storeBytes(of: newValue.bigEndian, toByteOffset: Self.portOffset, as: UInt16.self)
            }
        }
    }

    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, count) }
        }
    }

    /// The address in readable form.
    package var readable: Address {
        if family == AF_UNIX {
            return withUnsafeBytes(of: storage) { bytes in
                let path = bytes[MemoryLayout<sa_family_t>.size..<max(MemoryLayout<sa_family_t>.size, Int(count))]
                return .unix(path: String(decoding: path.prefix { $0 != 0 }, as: UTF8.self))
            }
        }
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        withPointer { pointer, count in
            _ = getnameinfo(pointer, count, &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST)
        }
        return .tcp(host: host.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }, port: port)
    }
}
