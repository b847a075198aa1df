package import EventLoops
import Glibc
package import HTTPSemantics
import Synchronization

/// An HTTP/1.1 server: one worker per event loop, any number of addresses.
///
/// Its methods may be called from any thread. Deinitialising it closes everything at once.
package final class Server: Sendable {
    private let workers: [HTTPWorker]
    private let population = Population()
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
        let population = population
        workers = loops.enumerated().map { index, loop in
            HTTPWorker(
                loop: loop,
                limits: limits,
                population: population,
                notice: notice,
                meter: meters.isEmpty ? nil : meters[index]
            )
        }
        for (index, worker) in workers.enumerated() {
            worker.loop.enqueue { worker.assumeIsolated { $0.begin { makeHandler(index) } } }
        }
    }

    deinit {
        removePaths()
        for worker in workers {
            worker.loop.enqueue { worker.assumeIsolated { $0.end() } }
        }
    }

    /// The number of open connections.
    var connectionCount: Int { population.count }

    /// Listens on an address, which may resolve to several; returns the bound ones.
    ///
    /// A TCP address has a socket for each worker. The connections of an address with a single descriptor are accepted by the
    /// first worker and distributed. Blocks while a host name is resolved.
    @discardableResult
    package func listen(on address: ListenAddress) throws(ListenError) -> [BoundAddress] {
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
        case .inherited(let descriptor):
            return [startSharing(try ListeningSocket.inherited(descriptor), address)]
        }
    }

    private func startSharing(_ socket: ListeningSocket, _ address: ListenAddress) -> BoundAddress {
        let entrance = Entrance(address: socket.address, configured: address)
        start(socket, entrance, on: workers[0], sharing: workers.count > 1 ? workers : [])
        return socket.address
    }

    private func start(
        _ socket: ListeningSocket,
        _ entrance: Entrance,
        on worker: HTTPWorker,
        sharing recipients: [HTTPWorker]
    ) {
        worker.loop.enqueue {
            worker.assumeIsolated { $0.listen(socket, entrance: entrance, sharingWith: recipients) }
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

/// The number of a server's connections, over all its workers, and their ids.
final class Population: Sendable {
    private let connections = Atomic<Int>(0)

    /// The last id; ids are unique within the process, so that a late call of a reply cannot reach another server's connection.
    private static let lastID = Atomic<UInt64>(0)

    var count: Int { connections.load(ordering: .relaxed) }

    /// Counts one more connection; returns the new number.
    func joined() -> Int { connections.add(1, ordering: .relaxed).newValue }

    func left() { connections.subtract(1, ordering: .relaxed) }

    func makeID() -> UInt64 { Self.lastID.add(1, ordering: .relaxed).newValue }
}
