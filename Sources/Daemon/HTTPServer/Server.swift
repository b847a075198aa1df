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
    /// Paths of the server's Unix sockets, removed at shutdown.
    private let paths = Mutex<[String]>([])

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

    /// Listens on an address, which may resolve to several; returns the bound ones.
    ///
    /// A TCP address has a socket for each worker. The connections of an address with a single descriptor are accepted by the
    /// first worker and distributed. Blocks while a host name is resolved.
    @discardableResult
    package func listen(on address: Address) throws(ListenError) -> [Address] {
        switch address {
        case .tcp(let host, let port):
            let groups = try ListeningSocket.tcp(host: host, port: port, count: workers.count)
            for group in groups {
                let entrance = Entrance(address: group[0].address, configured: address)
                for (worker, socket) in zip(workers, group) { start(socket, entrance, on: worker, sharing: []) }
            }
            return groups.map { $0[0].address }
        case .unix(let path, let mode, let group):
            let socket = try ListeningSocket.unix(path: path, mode: mode, group: group)
            paths.withLock { $0.append(path) }
            return [startSharing(socket, address)]
        }
    }

    /// Listens on a socket that another process has opened; returns its address.
    @discardableResult
    package func listen(inherited descriptor: Int32) throws(ListenError) -> Address {
        startSharing(try ListeningSocket.inherited(descriptor), nil)
    }

    private func startSharing(_ socket: ListeningSocket, _ configured: Address?) -> Address {
        let entrance = Entrance(address: socket.address, configured: configured)
        start(socket, entrance, on: workers[0], sharing: workers.count > 1 ? workers : [])
        return socket.address
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

    private func removePaths() {
        let paths = paths.withLock { paths in
            defer { paths = [] }
            return paths
        }
        for path in paths { unlink(path) }
    }
}

/// Counts the traffic of one worker's sockets; called on the worker's thread, so it must be quick.
package protocol HTTPMeter: AnyObject, Sendable {
    func connectionOpened()
    func connectionClosed()
    func received(bytes: Int)
    func sent(bytes: Int)
}
