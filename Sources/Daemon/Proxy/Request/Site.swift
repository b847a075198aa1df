import HTTPSemantics
import HTTPServer
import Settings

/// The upstreams that are reached at one address, and who may ask for them there.
///
/// A class, because every request asks one: a value would be copied for each.
final class Site {
    /// Longest prefix first.
    let upstreams: [ProxiedUpstream]
    private let guards: [Guard]

    init(_ entrance: Entrance, upstreams all: [ProxiedUpstream]) {
        let owners = all.filter { $0.owns(entrance) }
        upstreams = (owners.isEmpty ? all.filter(\.settings.listen.isEmpty) : owners)
            .sorted { $0.settings.prefix.utf8.count > $1.settings.prefix.utf8.count }
        let listener: Guard.Listener =
            switch entrance.address {
            case .tcp(let host, let port): .tcp(host: host, port: port)
            case .unix: .unix
            }
        guards = upstreams.map { Guard(listeners: [listener], hosts: $0.settings.hosts, cors: $0.cors) }
    }

    /// Where the upstream stands whose prefix a path has; nil where none has.
    func position(for path: UnsafeRawBufferPointer) -> Int? {
        upstreams.firstIndex { upstream in
            let prefix = upstream.normaliser.prefix
            guard !prefix.isEmpty else { return true }
            guard path.count >= prefix.count, path.count == prefix.count || path[prefix.count] == 0x2F else {
                return false
            }
            return path.prefix(prefix.count).elementsEqual(prefix)
        }
    }

    /// Whether a request may be answered at all; where no upstream is meant, any one's guard says whether the host is ours.
    func check(_ request: borrowing RequestHead, at position: Int?) -> Guard.Verdict {
        guards[position ?? 0].check(Guard.Facts(request, authority: request.authority))
    }

    func cors(at position: Int?) -> CORS { guards[position ?? 0].cors }
}

extension ProxiedUpstream {
    /// Whether an address is one of its own.
    fileprivate func owns(_ entrance: Entrance) -> Bool {
        settings.listen.contains { ListenAddress($0) == entrance.configured }
    }
}
