import TestSupport

/// The network between a daemon and a server on this machine: it passes bytes on in both directions, until a test breaks it.
///
/// A thread waits for each direction of each connection.
final class NetworkRelay: Sendable {
    private enum Condition { case passing, holding, cut }

    private struct State {
        var condition = Condition.passing
        var target: UInt16
        var listener: Socket?
        var connections: [Int: (near: Socket, far: Socket)] = [:]
        var count = 0
    }

    let port: UInt16
    /// Keeps the port while it has no listener: another test would be given it.
    private let place: Socket
    private let state: Monitor<State>

    /// - Parameter target: the port of the server.
    init(to target: UInt16) throws {
        place = try Socket.bound()
        port = place.port
        state = Monitor(State(target: target))
        try listen()
    }

    deinit { cut() }

    /// Ends all connections, and refuses new ones.
    func cut() {
        state.withLock { state in
            state.listener?.shutDown()
            // Before anything that was kept is passed on.
            for (near, far) in state.connections.values {
                near.shutDown()
                far.shutDown()
            }
            (state.condition, state.listener, state.connections) = (.cut, nil, [:])
        }
    }

    /// Passes nothing on any more, and keeps what comes, as a network that loses all packets does.
    func hold() { state.withLock { if $0.condition == .passing { $0.condition = .holding } } }

    /// Passes on what was kept, and everything from now on.
    func restore() throws {
        let wasCut = state.withLock { state in
            defer { state.condition = .passing }
            return state.condition == .cut
        }
        if wasCut { try listen() }
    }

    /// Leads to another server; connections to the former one end, with all that was kept.
    func lead(to target: UInt16) throws {
        cut()
        state.withLock { $0.target = target }
        try restore()
    }

    private func listen() throws {
        let listener = try Socket.listen(port: port)
        state.withLock { $0.listener = listener }
        startThread { [state] in
            while let near = listener.accept() {
                startThread { Self.serve(near, state) }
            }
        }
    }

    private static func serve(_ near: Socket, _ state: Monitor<State>) {
        guard let far = try? Socket.connect(port: state.current.target) else { return near.resetOnClose() }
        let number = state.withLock { state -> Int? in
            guard state.condition != .cut else { return nil }
            state.count += 1
            state.connections[state.count] = (near, far)
            return state.count
        }
        guard let number else { return }
        startThread { pass(from: far, to: near, number, state) }
        pass(from: near, to: far, number, state)
    }

    /// Passes on one direction; with its end, the connection ends.
    private static func pass(from source: Socket, to target: Socket, _ number: Int, _ state: Monitor<State>) {
        while true {
            let bytes = (try? source.receive()) ?? []
            if state.current.condition == .holding { state.wait(.seconds(3600)) { $0.condition != .holding } }
            guard !bytes.isEmpty, (try? target.send(bytes)) != nil else { break }
        }
        state.withLock { $0.connections[number] = nil }
        source.shutDown()
        target.shutDown()
    }
}
