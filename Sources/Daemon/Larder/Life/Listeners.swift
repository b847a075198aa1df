import Admin
import HTTPSemantics
import HTTPServer
import Logging
import Settings
import Synchronization

/// The addresses that the daemon listens on, which follow the config; any thread.
final class Listeners: Sendable {
    private let data: Server
    private let admin: Server
    private let log: Logger
    private let state = Mutex(State())

    private struct State {
        /// The sockets of the service manager, which stay.
        var inherited: [InheritedListener] = []
        /// The data addresses that they replace, and whether they replace the admin's.
        var inheritsData = false
        var inheritsAdmin = false
        var data: [Listener] = []
        var admin: [Listener] = []
    }

    private struct Listener: Sendable {
        /// As in the config; nil for an inherited socket.
        var given: Address?
        var bound: [Address]
    }

    /// What differs on one side from the addresses of a config.
    private struct Difference: Sendable {
        var bound: [(given: Address, sockets: Server.Bound)] = []
        /// Unix sockets with other permissions.
        var permitted: [Address] = []
        var closed: [Address] = []
    }

    init(data: Server, admin: Server, log: Logger) { (self.data, self.admin, self.log) = (data, admin, log) }

    /// What it listens on, the service manager's sockets first.
    var addresses: (data: [Address], admin: [Address]) {
        state.withLock { ($0.data.flatMap(\.bound), $0.admin.flatMap(\.bound)) }
    }

    /// Opens every address of a config, those inherited from the service manager first.
    func open(_ settings: Configuration, _ inherited: [InheritedListener]) throws {
        let (dataSockets, adminSockets) = inherited.sorted(adminAddresses: settings.admin.map(\.description))
        let data = try dataSockets.map { Listener(bound: [try self.data.listen(inherited: $0.descriptor)]) }
        let admin = try adminSockets.map { Listener(bound: [try self.admin.listen(inherited: $0.descriptor)]) }
        state.withLock { state in
            (state.inherited, state.data, state.admin) = (inherited, data, admin)
            (state.inheritsData, state.inheritsAdmin) = (!data.isEmpty, !admin.isEmpty)
        }
        announce("admin on", admin.flatMap(\.bound))
        announce("listening on", data.flatMap(\.bound))
        try change(to: settings).commit()
    }

    /// Binds new addresses, which are accepted at, and closes old ones, once the config is in force.
    func change(to settings: Configuration) throws(ListenError) -> ConfigSource.Preparation {
        let former = state.withLock { $0 }
        let admin = try difference(self.admin, former.admin, wantedAdmin(settings, former), beside: former)
        let data: Difference
        do throws(ListenError) {
            data = try difference(self.data, former.data, wantedData(settings, former), beside: former)
        } catch {
            for (_, sockets) in admin.bound { self.admin.discard(sockets) }
            throw error
        }
        return (
            commit: { [self] in
                let newAdmin = apply(admin, self.admin, former.admin, "admin on")
                let newData = apply(data, self.data, former.data, "listening on")
                state.withLock { ($0.data, $0.admin) = (newData, newAdmin) }
            },
            abandon: { [self] in
                for (_, sockets) in admin.bound { self.admin.discard(sockets) }
                for (_, sockets) in data.bound { self.data.discard(sockets) }
            }
        )
    }

    private func wantedAdmin(_ settings: Configuration, _ state: State) -> [Address] {
        // A TCP address inherited from systemd may be spelled differently in the config; a Unix socket may not.
        let held = Set(state.inherited.map { "\($0.address)" })
        return settings.admin.filter { !state.inheritsAdmin || $0.isUnix && !held.contains($0.description) }
    }

    private func wantedData(_ settings: Configuration, _ state: State) -> [Address] {
        let isShared = !state.inheritsData && settings.upstreams.contains { $0.listen.isEmpty }
        let all = (isShared ? settings.listen : []) + settings.upstreams.flatMap(\.listen)
        // Two upstreams may share an address of their own; port 0 is another one each time.
        var known: Set<String> = []
        return all.filter { $0.port == 0 || known.insert($0.description).inserted }
    }

    private func difference(_ server: Server, _ former: [Listener], _ wanted: [Address], beside state: State)
        throws(ListenError) -> Difference
    {
        var result = Difference()
        var rest = former.compactMap(\.given)
        let ports = Set((state.data + state.admin).flatMap(\.bound).compactMap(\.port))
        do throws(ListenError) {
            for address in wanted {
                guard let index = rest.firstIndex(where: address.isSamePlace) else {
                    let besideOwn = address.port.map { $0 != 0 && ports.contains($0) } ?? false
                    result.bound.append((address, try server.bind(address, besideOwn: besideOwn)))
                    continue
                }
                if rest.remove(at: index) != address { result.permitted.append(address) }
            }
        } catch {
            for (_, sockets) in result.bound { server.discard(sockets) }
            throw error
        }
        result.closed = rest
        return result
    }

    private func apply(_ difference: Difference, _ server: Server, _ former: [Listener], _ words: String) -> [Listener]
    {
        var listeners = former
        for (given, sockets) in difference.bound {
            listeners.append(Listener(given: given, bound: server.start(sockets)))
            announce(words, sockets.addresses)
        }
        for address in difference.permitted {
            do throws(ListenError) {
                try server.permit(address)
            } catch { log.error("the permissions of a socket are not changed", metadata: ["reason": "\(error)"]) }
            for index in listeners.indices where listeners[index].given.map(address.isSamePlace) ?? false {
                listeners[index].given = address
            }
        }
        for address in difference.closed {
            server.stopListening(on: address)
            listeners.removeAll { $0.given == address }
            log.info("not listening any more on \(address)")
        }
        return listeners
    }

    private func announce(_ what: String, _ addresses: [Address]) {
        for address in addresses {
            let text = if case .tcp = address { "http://\(address)" } else { "\(address)" }
            log.info("\(what) \(text)")
        }
    }
}
