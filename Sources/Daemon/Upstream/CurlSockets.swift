import CCurl
import Glibc

/// The sockets of libcurl's connections, and which requests went out on which of them.
///
/// libcurl repeats a request by itself when a connection from the pool ends without an answer, and does not tell why it ended.
/// So each socket is looked at before a request goes out on it and once more before it is closed; what the kernel has seen
/// acknowledged in between tells what became of the request.
///
/// The loop's thread only. Connections outlive the transfers that made them, so this belongs to the multi handle.
final class CurlSockets {
    /// Both ends of a connection, as libcurl spells them.
    struct Name: Hashable {
        var localAddress: String
        var localPort: Int32
        var remoteAddress: String
        var remotePort: Int32
    }

    private struct User {
        weak var transfer: CurlTransfer?
        let before: SocketFacts
    }

    private var sockets: [Name: Int32] = [:]
    /// Names of sockets, once they are connected and a request has gone out; nil until then.
    private var names: [Int32: Name?] = [:]
    private var users: [Int32: [User]] = [:]

    /// A socket was made for a connection.
    func opened(_ socket: Int32) {
        names[socket] = .some(nil)
    }

    /// A request goes out on a connection now.
    func sends(_ transfer: CurlTransfer, on name: Name) {
        guard let socket = socket(named: name), let facts = SocketFacts(socket) else { return }
        users[socket, default: []].removeAll { $0.transfer == nil || $0.transfer === transfer }
        users[socket, default: []].append(User(transfer: transfer, before: facts))
    }

    /// How a socket stood before a transfer's request went out on it.
    func facts(before transfer: CurlTransfer, on socket: Int32) -> SocketFacts? {
        users[socket]?.first { $0.transfer === transfer }?.before
    }

    /// A connection ends: those whose requests it carried hear what became of them, and the socket is closed.
    func close(_ socket: Int32) -> Int32 {
        if let name = names.removeValue(forKey: socket), let name { sockets[name] = nil }
        for user in users.removeValue(forKey: socket) ?? [] {
            guard let owner = user.transfer?.owner, owner.curlAwaitsHead else { continue }
            owner.curlLostConnection(SocketFacts(socket)?.fate(since: user.before) ?? .received)
        }
        return Glibc.close(socket)
    }

    private func socket(named name: Name) -> Int32? {
        if let known = sockets[name] { return known }
        for (socket, known) in names where known == nil {
            guard Self.name(of: socket) == name else { continue }
            names[socket] = name
            sockets[name] = socket
            return socket
        }
        return nil
    }

    private static func name(of socket: Int32) -> Name? {
        guard let local = address(of: socket, getsockname), let remote = address(of: socket, getpeername) else {
            return nil
        }
        return Name(
            localAddress: local.address,
            localPort: local.port,
            remoteAddress: remote.address,
            remotePort: remote.port
        )
    }

    private static func address(
        of socket: Int32,
        _ ask: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> (address: String, port: Int32)? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes -> (address: String, port: Int32)? in
            guard let start = bytes.baseAddress,
                ask(socket, start.assumingMemoryBound(to: sockaddr.self), &length) == 0
            else { return nil }
            let family = Int32(bytes.load(as: sa_family_t.self))
            guard family == AF_INET || family == AF_INET6 else { return nil }
            let port = UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self))
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            let offset = family == AF_INET ? 4 : 8
            guard inet_ntop(family, start + offset, &text, socklen_t(text.count)) != nil else { return nil }
            let end = text.firstIndex(of: 0) ?? text.count
            return (String(decoding: text[..<end].map { UInt8(bitPattern: $0) }, as: UTF8.self), Int32(port))
        }
    }
}

extension CurlTransfer {
    /// Has the sockets of its connections known.
    ///
    /// They must outlive the multi handle that the transfer is added to.
    func make(knownTo sockets: CurlSockets) {
        self.sockets = sockets
        let context = Unmanaged.passUnretained(sockets).toOpaque()
        larder_easy_set_sockopt_callback(handle, CURLOPT_SOCKOPTFUNCTION) { context, socket, _ in
            CurlSockets.from(context).opened(socket)
            return Int32(CURL_SOCKOPT_OK)
        }
        larder_easy_set_pointer(handle, CURLOPT_SOCKOPTDATA, context)
        larder_easy_set_closesocket_callback(handle, CURLOPT_CLOSESOCKETFUNCTION) { context, socket in
            CurlSockets.from(context).close(socket)
        }
        larder_easy_set_pointer(handle, CURLOPT_CLOSESOCKETDATA, context)
    }
}

extension CurlSockets {
    fileprivate static func from(_ context: UnsafeMutableRawPointer?) -> CurlSockets {
        Unmanaged<CurlSockets>.fromOpaque(context!).takeUnretainedValue()
    }
}
