import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings

/// The upstreams served at one address, with their guards.
///
/// A class, because every request uses one: a value would be copied for each.
final class Site {
    /// In the order of their prefixes with a slash at the end.
    let upstreams: [ProxiedUpstream]
    /// One for each upstream; without any, one that knows only the address.
    private let guards: [Guard]
    /// For each upstream the last one before it within whose prefix it lies, if any.
    private let outer: [Int?]

    init(_ entrance: Entrance, upstreams all: [ProxiedUpstream]) {
        let owners = all.filter { $0.owns(entrance) }
        let upstreams = (owners.isEmpty ? all.filter(\.settings.listen.isEmpty) : owners)
            .sorted {
                ($0.targetNormaliser.prefix + [0x2F]).lexicographicallyPrecedes($1.targetNormaliser.prefix + [0x2F])
            }
        let listeners = [entrance.address]
        guards =
            upstreams.isEmpty
            ? [Guard(listeners: listeners)]
            : upstreams.map { Guard(listeners: listeners, hosts: $0.settings.hosts, cors: $0.cors) }
        var (outer, chain): ([Int?], [Int]) = ([], [])
        for (index, upstream) in upstreams.enumerated() {
            let path = upstream.targetNormaliser.prefix
            while let last = chain.last, path.withUnsafeBytes({ !upstreams[last].hasPrefix(of: $0) }) {
                chain.removeLast()
            }
            outer.append(chain.last)
            chain.append(index)
        }
        (self.upstreams, self.outer) = (upstreams, outer)
    }

    /// The index of the upstream whose prefix a path has, the longest if there are several; nil if there is none.
    func position(for path: UnsafeRawBufferPointer) -> Int? {
        // The last prefix that does not come after the path begins with each that the path has.
        var (low, high) = (0, upstreams.count)
        while low < high {
            let middle = (low + high) / 2
            if upstreams[middle].hasPrefix(after: path) { high = middle } else { low = middle + 1 }
        }
        var position = low > 0 ? low - 1 : nil
        while let found = position, !upstreams[found].hasPrefix(of: path) { position = outer[found] }
        return position
    }

    /// The webhook with a name, and the position of its upstream; nil if there is none at this address.
    func webhook(named name: String) -> (webhook: Configuration.Webhook, position: Int)? {
        for (position, upstream) in upstreams.enumerated() {
            if let webhook = upstream.settings.webhooks.first(where: { $0.name == name }) { return (webhook, position) }
        }
        return nil
    }

    /// Whether a request may be served at all; if no upstream matches, any upstream's guard checks the host.
    func check(_ request: borrowing RequestHead, at position: Int?) -> Guard.Verdict {
        guards[position ?? 0].check(Guard.Facts(request, authority: request.authority))
    }

    func cors(at position: Int?) -> CORS { guards[position ?? 0].cors }
}

extension ProxiedUpstream {
    fileprivate func owns(_ entrance: Entrance) -> Bool {
        entrance.configured.map { given in settings.listen.contains { $0.isSamePlace(as: given) } } ?? false
    }

    /// Whether a path is the upstream's prefix, or lies below it.
    fileprivate func hasPrefix(of path: UnsafeRawBufferPointer) -> Bool {
        let prefix = targetNormaliser.prefix
        guard path.count >= prefix.count, path.count == prefix.count || path[prefix.count] == 0x2F else { return false }
        return prefix.isEmpty || path.prefix(prefix.count).elementsEqual(prefix)
    }

    /// Whether the prefix comes after a path, both with a slash at the end.
    fileprivate func hasPrefix(after path: UnsafeRawBufferPointer) -> Bool {
        let prefix = targetNormaliser.prefix
        for index in 0..<min(path.count, prefix.count) where path[index] != prefix[index] {
            return path[index] < prefix[index]
        }
        guard path.count != prefix.count else { return false }
        return path.count < prefix.count ? prefix[path.count] >= 0x2F : path[prefix.count] < 0x2F
    }
}
