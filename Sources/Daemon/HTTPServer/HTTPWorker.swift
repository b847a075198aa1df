import EventLoops
import Glibc
import HTTPSemantics

/// One worker: listeners, connections and a handler, all on one event loop.
///
/// Other threads and the loop's callbacks enter only through its methods.
actor HTTPWorker {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    nonisolated let limits: HTTPLimits
    nonisolated let population: Population
    nonisolated let notice: @Sendable (HTTPNotice) -> Void
    nonisolated let meter: (any HTTPMeter)?
    private var host: ConnectionHost?
    private var listeners: [Listener] = []
    private var sweep: EventTimer?
    private var acceptPause: EventTimer?
    private var drained: CheckedContinuation<Void, Never>?
    private var drainTimer: EventTimer?

    /// A listening socket on this loop.
    private struct Listener {
        var socket: ListeningSocket
        var entrance: Entrance
        var watch: EventWatch?
        /// The workers that share the connections; empty if all go to this worker.
        var recipients: [HTTPWorker]
        var next = 0
    }

    init(
        loop: EventLoop,
        limits: HTTPLimits,
        population: Population,
        notice: @escaping @Sendable (HTTPNotice) -> Void,
        meter: (any HTTPMeter)?
    ) {
        self.meter = meter
        self.loop = loop
        self.limits = limits
        self.population = population
        self.notice = notice
    }

    /// Makes the handler and starts the sweep for deadlines.
    func begin(_ makeHandler: @Sendable () -> any HTTPHandler) {
        host = ConnectionHost(worker: self, handler: makeHandler())
        let shortest = [limits.headTimeout, limits.bodyIdle, limits.idle, limits.writeStall, limits.linger].min()!
        sweep = loop.every(min(.seconds(1), shortest / 4)) { [unowned self] in self.sweepConnections() }
    }

    // MARK: Accepting

    /// Starts to accept connections from a socket; with `recipients`, distributes them among those workers.
    func listen(_ socket: ListeningSocket, entrance: Entrance, sharingWith recipients: [HTTPWorker]) {
        let index = listeners.count
        let watch = loop.watch(descriptor: socket.descriptor, events: .read) { [unowned self] _ in
            self.acceptReady(index)
        }
        listeners.append(Listener(socket: socket, entrance: entrance, watch: watch, recipients: recipients))
    }

    private func acceptReady(_ index: Int) {
        for _ in 0..<limits.acceptsPerTurn {
            switch EventSystem.accept(listeners[index].socket.descriptor) {
            case .done(let descriptor): hand(Int32(descriptor), from: index)
            case .failed(EAGAIN): return
            case .failed(let number)
            where number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM:
                return pauseAccepting(number)
            // The client has already left, or the network reported an error: the next connection may be fine.
            case .failed: continue
            }
        }
    }

    private func hand(_ descriptor: Int32, from index: Int) {
        // Counted here, because a connection that waits for another worker's loop already holds its descriptor.
        let count = population.joined()
        guard count <= limits.maxConnections + min(Self.refusedConnections, limits.maxConnections) else {
            population.left()
            close(descriptor)
            return
        }
        let isRefused = count > limits.maxConnections
        let entrance = listeners[index].entrance
        let recipients = listeners[index].recipients
        if recipients.isEmpty { return adopt(descriptor, entrance, isRefused: isRefused) }
        let recipient = recipients[listeners[index].next % recipients.count]
        listeners[index].next += 1
        if recipient === self { return adopt(descriptor, entrance, isRefused: isRefused) }
        recipient.loop.enqueue {
            recipient.assumeIsolated { $0.adopt(descriptor, entrance, isRefused: isRefused) }
        }
    }

    /// Pauses accepting: without descriptors the listener stays readable, and the loop would spin.
    private func pauseAccepting(_ number: Int32) {
        notice(
            HTTPNotice(
                level: .error,
                message: "no connections accepted for a moment",
                details: ["reason": SystemCall.message(number)]
            )
        )
        for listener in listeners { listener.watch?.disable() }
        acceptPause = loop.after(.milliseconds(200)) { [unowned self] in self.resumeAccepting() }
    }

    private func resumeAccepting() {
        acceptPause = nil
        for listener in listeners { listener.watch?.enable() }
    }

    /// The number of connections beyond the limit that get a 503; further ones are just closed.
    private static let refusedConnections = 64

    private func adopt(_ descriptor: Int32, _ entrance: Entrance, isRefused: Bool) {
        guard let host else {
            population.left()
            close(descriptor)
            return
        }
        let connection = HTTPConnection(
            descriptor: descriptor,
            id: population.makeID(),
            entrance: entrance,
            host: host
        )
        host.connections[connection.id] = connection
        meter?.connectionOpened()
        connection.open()
        if isRefused { connection.refuse(.tooManyConnections) }
    }

    // MARK: From replies and bodies

    func replyHasOperations(_ channel: ReplyChannel) {
        guard let connection = host?.connections[channel.connectionID] else { return channel.disconnected() }
        connection.perform(channel)
    }

    func bodyIsWanted(on id: UInt64) {
        host?.connections[id]?.bodyIsWanted()
    }

    func resume(_ id: UInt64) {
        host?.connections[id]?.resume()
    }

    // MARK: Deadlines

    private func sweepConnections() {
        guard let host else { return }
        let now = loop.now
        var expired: [HTTPConnection] = []
        for connection in host.connections.values where connection.deadline <= now { expired.append(connection) }
        for connection in expired { connection.expired() }
    }

    // MARK: The end

    /// Stops accepting, closes idle connections, and returns when all responses in flight are finished or cut.
    func drain(within limit: Duration) async {
        stopAccepting()
        guard let host else { return }
        host.isDraining = true
        for connection in Array(host.connections.values) { connection.drain() }
        guard !host.connections.isEmpty else { return end() }
        await withCheckedContinuation { continuation in
            drained = continuation
            drainTimer = loop.after(limit) { [unowned self] in self.closeAll() }
            // The last connection may have closed before `drained` was set.
            connectionClosed()
        }
        end()
    }

    private func stopAccepting() {
        acceptPause = nil
        for index in listeners.indices {
            // Connections that the kernel has already accepted are still served.
            acceptReady(index)
            listeners[index].watch = nil
            listeners[index].socket.close()
        }
        listeners = []
    }

    /// Resumes `drain` when the last connection has closed.
    func connectionClosed() {
        guard let host, host.connections.isEmpty, let drained else { return }
        self.drained = nil
        drained.resume()
    }

    private func closeAll() {
        guard let host else { return }
        for connection in Array(host.connections.values) { connection.abort() }
    }

    /// Closes everything at once.
    func end() {
        stopAccepting()
        closeAll()
        sweep = nil
        drainTimer = nil
        host = nil
    }
}
