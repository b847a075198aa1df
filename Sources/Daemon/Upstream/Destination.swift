import Glibc

/// The host and port of a URL that a request goes to, unless a proxy is on the way.
struct Destination: Equatable {
    /// As in the URL; an IPv6 address without its brackets.
    let host: String
    let port: Int

    /// - Parameter url: an absolute `http` or `https` URL; nil for any other text.
    init?(_ url: String) {
        guard let scheme = url.firstRange(of: "://") else { return nil }
        let authority = url[scheme.upperBound...].prefix { !"/?#".contains($0) }.lowercased()
        let colon = authority.lastIndex(of: ":").flatMap { authority[$0...].contains("]") ? nil : $0 }
        let usual = url[..<scheme.lowerBound].lowercased() == "https" ? 443 : 80
        host = authority[..<(colon ?? authority.endIndex)].trimmingCharacters("[]")
        port = colon.flatMap { Int(authority[authority.index(after: $0)...]) } ?? usual
    }

    /// Whether libcurl's message names this destination as the one to which it could not connect.
    ///
    /// Otherwise it was the proxy: libcurl has the same error for both.
    func isNamed(by message: String) -> Bool {
        message.lowercased().hasPrefix("failed to connect to \(host) port \(port) ")
    }

    /// Whether `no_proxy` names this host with this port, as in `localhost:8080` or `.internal:443`.
    ///
    /// Names without a port are libcurl's to read, which takes none with one.
    func isNamed(inNoProxy list: String) -> Bool {
        list.lowercased().split { $0 == "," || $0 == " " }.contains { entry in
            guard let colon = entry.lastIndex(of: ":"), Int(entry[entry.index(after: colon)...]) == port else {
                return false
            }
            var name = String(entry[..<colon])
            // An IPv6 address alone has colons of its own.
            if name.hasPrefix("[") { return name.trimmingCharacters("[]") == host }
            guard !name.contains(":") else { return false }
            if name.hasPrefix("*") { name.removeFirst() }
            if name.hasPrefix(".") { name.removeFirst() }
            return !name.isEmpty && (host == name || host.hasSuffix("." + name))
        }
    }

    /// Whether the environment names a proxy; without one libcurl need not search it for each transfer.
    static var hasProxy: Bool {
        let names: [String] = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        return names.contains { getenv($0) != nil }
    }

    /// The value of `no_proxy` in the environment.
    static var noProxy: String? { (getenv("no_proxy") ?? getenv("NO_PROXY")).map { String(cString: $0) } }
}

extension StringProtocol {
    fileprivate func trimmingCharacters(_ characters: String) -> String {
        String(drop { characters.contains($0) }.reversed().drop { characters.contains($0) }.reversed())
    }
}
