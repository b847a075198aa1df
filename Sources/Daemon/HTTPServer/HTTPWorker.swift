import EventLoops
import Glibc
import HTTPSemantics

/// One worker: listeners, connections and a handler, all on one event loop.
///
/// Other threads and the loop's callbacks enter only through its methods.
actor HTTPWorker {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    nonisolated let counter: ConnectionCounter
    nonisolated let notice: @Sendable (HTTPNotice) -> Void
    nonisolated let meter: (any HTTPMeter)?
    private var host: ConnectionHost?
    private var others: [HTTPWorker] = []
    private var limits: HTTPLimits
    /// By numbers that are not used again.
    private var listeners: [Int: Listener] = [:]
    private var lastListener = 0
    /// The refused connections, the oldest first.
    private var refused: [UInt64] = []
    /// The connections that may make room for others, by the last search, in reverse, and since when each has waited then.
    private var dispensable: [(id: UInt64, since: UInt64)] = []
    private var nextSearch: UInt64 = 0
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
        counter: ConnectionCounter,
        notice: @escaping @Sendable (HTTPNotice) -> Void,
        meter: (any HTTPMeter)?
    ) {
        self.meter = meter
        self.loop = loop
        self.limits = limits
        self.counter = counter
        self.notice = notice
    }

    /// Makes the handler and starts the sweep for deadlines.
    func begin(beside others: [HTTPWorker], _ makeHandler: @Sendable () -> any HTTPHandler) {
        self.others = others
        host = ConnectionHost(worker: self, handler: makeHandler(), limits: limits)
        beginSweep()
    }

    private func beginSweep() {
        let shortest = [limits.headTimeout, limits.bodyIdle, limits.idle, limits.writeStall, limits.linger].min()!
        sweep = loop.every(min(.seconds(1), shortest / 4)) { [unowned self] in self.sweepConnections() }
    }

    func setLimits(_ limits: HTTPLimits) {
        self.limits = limits
        guard let host else { return }
        host.limits = limits
        beginSweep()
    }

    // MARK: Accepting

    /// Starts to accept connections from a socket; with `recipients`, distributes them among those workers.
    func listen(_ socket: ListeningSocket, entrance: Entrance, sharingWith recipients: [HTTPWorker]) {
        lastListener += 1
        let number = lastListener
        let watch = loop.watch(descriptor: socket.descriptor, events: .read) { [unowned self] _ in
            self.acceptReady(number)
        }
        listeners[number] = Listener(socket: socket, entrance: entrance, watch: watch, recipients: recipients)
    }

    /// Stops to accept connections at an entrance, and closes each of its connections once it is idle.
    func close(_ entrance: Entrance) {
        for (number, listener) in listeners where listener.entrance === entrance {
            // Connections that the kernel has already accepted are still served.
            acceptReady(number)
            listeners[number] = nil
            listener.socket.close()
        }
        for connection in Array((host?.connections ?? [:]).values) where connection.entrance === entrance {
            connection.drain()
        }
    }

    private func acceptReady(_ number: Int) {
        guard let listener = listeners[number] else { return }
        for _ in 0..<limits.acceptsPerTurn {
            switch EventSystem.accept(listener.socket.descriptor) {
            case .done(let descriptor): hand(Int32(descriptor), from: number)
            case .failed(EAGAIN): return
            case .failed(let code) where [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code):
                return pauseAccepting(code)
            // The client has already left, or the network reported an error: the next connection may be fine.
            case .failed: continue
            }
        }
    }

    private func hand(_ descriptor: Int32, from number: Int) {
        guard let listener = listeners[number] else { preconditionFailure("only a listener accepts") }
        // Counted here, because a connection that waits for another worker's loop already holds its descriptor.
        counter.opened()
        guard counter.count <= limits.maxConnections + limits.maxSurplus else {
            counter.closed()
            Glibc.close(descriptor)
            return
        }
        let isSurplus = counter.served > limits.maxConnections
        let (entrance, recipients) = (listener.entrance, listener.recipients)
        if recipients.isEmpty { return adopt(descriptor, entrance, isSurplus: isSurplus) }
        let recipient = recipients[listener.next % recipients.count]
        listeners[number]?.next += 1
        if recipient === self { return adopt(descriptor, entrance, isSurplus: isSurplus) }
        recipient.loop.enqueue {
            recipient.assumeIsolated { $0.adopt(descriptor, entrance, isSurplus: isSurplus) }
        }
    }

    /// Pauses accepting: without descriptors the listener stays readable, and the loop would spin.
    private func pauseAccepting(_ number: Int32) {
        let reason = SystemCall.message(number)
        notice(HTTPNotice(message: "no connections accepted for a moment", details: ["reason": reason]))
        for listener in listeners.values { listener.watch?.disable() }
        acceptPause = loop.after(.milliseconds(200)) { [unowned self] in
            acceptPause = nil
            for listener in listeners.values { listener.watch?.enable() }
        }
    }

    /// Takes over a new connection.
    ///
    /// - Parameters:
    ///   - isSurplus: whether there are more than the limit. Then one that waits for its client is closed, or else the new one
    ///     refused.
    ///   - asked: how many workers have looked for such a one and found none.
    private func adopt(_ descriptor: Int32, _ entrance: Entrance, isSurplus: Bool, asked: Int = 0) {
        guard let host else {
            counter.closed()
            Glibc.close(descriptor)
            return
        }
        // Others may have closed since it was counted.
        let isRefused = isSurplus && counter.served > limits.maxConnections && !makeRoom(in: host)
        if isRefused, asked < others.count {
            let next = others[0]
            return next.loop.enqueue {
                next.assumeIsolated { $0.adopt(descriptor, entrance, isSurplus: true, asked: asked + 1) }
            }
        }
        let connection = HTTPConnection(descriptor: descriptor, id: counter.makeID(), entrance: entrance, host: host)
        host.connections[connection.id] = connection
        meter?.connectionOpened()
        connection.open()
        // A new one waits for its client, too.
        if isRefused { refuse(connection, host) } else { nextSearch = 0 }
    }

    /// Sends a 503.
    ///
    /// The connection stays open for a moment, so that the client can read it, or until many more are refused.
    private func refuse(_ connection: HTTPConnection, _ host: ConnectionHost) {
        connection.isSurplus = true
        counter.refusedOne()
        connection.refuse(.tooManyConnections)
        refused.append(connection.id)
        guard refused.count > Self.refusedConnections else { return }
        host.connections[refused.removeFirst()]?.close()
    }

    /// The number of refused connections that a worker keeps open.
    private static let refusedConnections = 16

    /// Closes a connection that waits for its client; returns false if there is none.
    ///
    /// Those that have been idle for long enough are first. Then come those whose client has sent no whole request, however short
    /// the time, or else clients that never complete one could keep all others out. In each group the longest wait is first.
    private func makeRoom(in host: ConnectionHost) -> Bool {
        if closeDispensable(in: host) { return true }
        guard loop.now >= nextSearch else { return false }
        dispensable = findDispensable(in: host)
        // If all are busy, they are not searched again for each of many new ones.
        if dispensable.isEmpty { nextSearch = loop.now + min(limits.idleBeforeClosing.nanoseconds, 100_000_000) }
        return closeDispensable(in: host)
    }

    private func closeDispensable(in host: ConnectionHost) -> Bool {
        while let (id, since) = dispensable.popLast() {
            guard let connection = host.connections[id], connection.pause?.since == since else { continue }
            if connection.makeRoom() { return true }
        }
        return false
    }

    private func findDispensable(in host: ConnectionHost) -> [(id: UInt64, since: UInt64)] {
        let latest = loop.now - min(loop.now, limits.idleBeforeClosing.nanoseconds)
        var (idle, unfinished): ([(id: UInt64, since: UInt64)], [(id: UInt64, since: UInt64)]) = ([], [])
        for connection in host.connections.values {
            guard let pause = connection.pause else { continue }
            if !pause.isBetweenRequests {
                unfinished.append((connection.id, pause.since))
            } else if pause.since <= latest {
                idle.append((connection.id, pause.since))
            }
        }
        // Of those since the same moment, ids tell the order.
        return [unfinished, idle].flatMap { group in group.sorted { ($0.since, $0.id) > ($1.since, $1.id) } }
    }

    // MARK: From replies and bodies

    func replyHasOperations(_ channel: ReplyChannel) {
        guard let connection = host?.connections[channel.connectionID] else { return channel.disconnected() }
        connection.perform(channel)
    }

    func bodyIsWanted(on id: UInt64) { host?.connections[id]?.bodyIsWanted() }
    func resume(_ id: UInt64) { host?.connections[id]?.resume() }

    // MARK: Deadlines

    private func sweepConnections() {
        guard let host else { return }
        let now = loop.now
        for connection in host.connections.values.filter({ $0.deadline <= now }) { connection.expired() }
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
        for (number, listener) in listeners {
            // Connections that the kernel has already accepted are still served.
            acceptReady(number)
            listeners[number] = nil
            listener.socket.close()
        }
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

    func end() {
        stopAccepting()
        closeAll()
        sweep = nil
        drainTimer = nil
        host = nil
        others = []
    }
}
