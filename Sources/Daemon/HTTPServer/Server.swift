package import EventLoops
import Glibc
package import HTTPSemantics
import Synchronization

/// Serves the requests of one worker's connections; made once per worker and used on its thread only.
package protocol HTTPHandler: AnyObject {
    /// Serves a request now with `connection.respond(…)`, or takes it over with `connection.deferReply(…)`.
    ///
    /// `request` is invalid after this returns. A request that is neither served nor deferred gets a 500.
    func received(_ request: borrowing RequestHead, on connection: HTTPConnection)
}

/// An error of the server for the log.
package struct HTTPNotice: Sendable {
    /// Constant text; variable parts are in `details`.
    package var message: String
    package var details: [String: String]
}

/// An HTTP/1.1 server: one worker per event loop, any number of addresses.
///
/// Its methods may be called from any thread. Deinitialising it closes everything at once.
package final class Server: Sendable {
    private let workers: [HTTPWorker]
    private let counter = ConnectionCounter()
    /// What it listens on.
    private let entrances = Mutex<[Entrance]>([])

    /// Makes a server without an address.
    ///
    /// `makeHandler` is called once for each worker, on its loop, with its index. `meters` has one element for each worker, or
    /// is empty.
    package init(
        loops: [EventLoop],
        limits: HTTPLimits = HTTPLimits(),
        notice: @escaping @Sendable (HTTPNotice) -> Void = { _ in },
        meters: [any HTTPMeter] = [],
        makeHandler: @escaping @Sendable (Int) -> any HTTPHandler
    ) {
        precondition(!loops.isEmpty, "a server needs a loop")
        let counter = counter
        workers = loops.enumerated().map { index, loop in
            let meter = meters.isEmpty ? nil : meters[index]
            return HTTPWorker(loop: loop, limits: limits, counter: counter, notice: notice, meter: meter)
        }
        for (index, worker) in workers.enumerated() {
            let others = Array(workers[(index + 1)...] + workers[..<index])
            worker.loop.enqueue { worker.assumeIsolated { $0.begin(beside: others) { makeHandler(index) } } }
        }
    }

    deinit {
        removePaths()
        for worker in workers {
            worker.loop.enqueue { worker.assumeIsolated { $0.end() } }
        }
    }

    var connectionCount: Int { counter.count }

    /// Sockets that are bound to an address and whose connections wait in the kernel.
    package struct Bound: Sendable {
        /// As bound: one, or several if the address resolves to several.
        package var addresses: [Address] { groups.map { $0[0].address } }
        fileprivate let configured: Address?
        /// For each address a socket for each worker, or one that all share.
        fileprivate let groups: [[ListeningSocket]]
    }

    /// Listens on an address, which may resolve to several; returns the bound ones.
    ///
    /// A TCP address has a socket for each worker. The connections of an address with a single descriptor are accepted by the
    /// first worker and distributed. Blocks while a host name is resolved.
    @discardableResult
    func listen(on address: Address) throws(ListenError) -> [Address] { start(try bind(address)) }

    /// Listens on a socket that another process has opened; returns its address.
    @discardableResult
    package func listen(inherited descriptor: Int32) throws(ListenError) -> Address {
        start(Bound(configured: nil, groups: [[try ListeningSocket.inherited(descriptor)]]))[0]
    }

    /// Binds an address; pass the result to `start` or to `discard`.
    ///
    /// - Parameter besideOwn: whether this process may have the port already, at another address that includes this one.
    package func bind(_ address: Address, besideOwn: Bool = false) throws(ListenError) -> Bound {
        switch address {
        case .tcp(let host, let port):
            let groups = try ListeningSocket.tcp(host: host, port: port, count: workers.count, besideOwn: besideOwn)
            return Bound(configured: address, groups: groups)
        case .unix(let path, let mode, let group):
            return Bound(
                configured: address,
                groups: [[try ListeningSocket.unix(path: path, mode: mode, group: group)]]
            )
        }
    }

    /// Accepts the connections of bound sockets; returns their addresses.
    @discardableResult
    package func start(_ bound: Bound) -> [Address] {
        for group in bound.groups {
            let entrance = Entrance(address: group[0].address, configured: bound.configured)
            entrances.withLock { $0.append(entrance) }
            if case .tcp? = bound.configured {
                for (worker, socket) in zip(workers, group) { start(socket, entrance, on: worker, sharing: []) }
            } else {
                start(group[0], entrance, on: workers[0], sharing: workers.count > 1 ? workers : [])
            }
        }
        return bound.addresses
    }

    /// Closes bound sockets that were not started.
    package func discard(_ bound: Bound) {
        for socket in bound.groups.joined() { socket.close() }
        if case .unix(let path, _, _)? = bound.configured { unlink(path) }
    }

    /// Stops to listen on an address as it was given to `bind` or `listen`.
    ///
    /// Requests under way on its connections are finished, streams included; then these are closed.
    package func stopListening(on address: Address) {
        let gone = entrances.withLock { entrances in
            let gone = entrances.filter { $0.configured?.description == address.description }
            entrances.removeAll { entrance in gone.contains { $0 === entrance } }
            return gone
        }
        for worker in workers {
            worker.loop.enqueue { worker.assumeIsolated { for entrance in gone { $0.close(entrance) } } }
        }
        if case .unix(let path, _, _) = address { unlink(path) }
    }

    /// Sets other permissions for a Unix socket that it listens on.
    package func permit(_ address: Address) throws(ListenError) {
        guard case .unix(let path, let mode, let group) = address else { return }
        try ListeningSocket.permit(path, mode: mode, group: group)
    }

    /// Replaces the limits: for connections that are open, too, but not for a head that has begun to arrive.
    package func setLimits(_ limits: HTTPLimits) {
        for worker in workers { worker.loop.enqueue { worker.assumeIsolated { $0.setLimits(limits) } } }
    }

    private func start(_ socket: ListeningSocket, _ entrance: Entrance, on worker: HTTPWorker, sharing: [HTTPWorker]) {
        worker.loop.enqueue {
            worker.assumeIsolated { $0.listen(socket, entrance: entrance, sharingWith: sharing) }
        }
    }

    /// Stops accepting, closes idle connections, and returns when the responses in flight are finished.
    ///
    /// Responses that take longer than `limit` are cut. The server cannot be used again.
    package func drain(within limit: Duration) async {
        removePaths()
        await withTaskGroup { group in
            for worker in workers { group.addTask { await worker.drain(within: limit) } }
        }
    }

    /// Removes the paths of its Unix sockets.
    private func removePaths() {
        let entrances = entrances.withLock { entrances in
            defer { entrances = [] }
            return entrances
        }
        for case .unix(let path, _, _)? in entrances.map(\.configured) { unlink(path) }
    }
}

/// Counts the traffic of one worker's sockets; called on the worker's thread, so it must be quick.
package protocol HTTPMeter: AnyObject, Sendable {
    func connectionOpened()
    func connectionClosed()
    func received(bytes: Int)
    func sent(bytes: Int)
}
