import Yams

extension ConfigFile {
    /// The part of a config that says how requests and responses are read, as YAML: upstreams, models, routes, errors.
    ///
    /// What it includes is in it. Left out is what belongs to one machine or is secret: addresses, credentials, certificates,
    /// proxies, the daemon's own keys.
    ///
    /// - Parameters:
    ///   - path: the file; nil where a URL alone was given.
    ///   - settings: as the file was read, for the URLs that were given in its place.
    package static func portable(_ path: String?, _ settings: Configuration, environment: [String: String]) -> String {
        var root = Node.Mapping([])
        if let path, let bytes = try? ConfigBytes.read(path, limit: sizeLimit).bytes {
            var reader = ConfigReader(environment: environment)
            var inclusion = ConfigReader.Inclusion(path)
            let text = String(decoding: bytes, as: UTF8.self)
            root = reader.compose(text, file: path, &inclusion)?.mapping ?? root
        }
        let upstreams = settings.upstreams.map { upstream -> (Node, Node) in
            let known = root["upstreams"]?.mapping?[Node(upstream.name)]?.mapping ?? Node.Mapping([])
            var members: [(Node, Node)] = [(Node("url"), Node(upstream.url.description))]
            members += known.filter { portableKeys.contains($0.key.scalar?.string ?? "") }.map { ($0.key, $0.value) }
            return (Node(upstream.name), .mapping(Node.Mapping(members)))
        }
        var members: [(Node, Node)] = [(Node("upstreams"), .mapping(Node.Mapping(upstreams)))]
        for name in ["models", "routes", "errors"] {
            if let node = root[Node(name)] { members.append((Node(name), node)) }
        }
        return (try? Yams.serialize(node: .mapping(Node.Mapping(members)), width: 120, allowUnicode: true)) ?? ""
    }

    /// The keys of an upstream that say how its requests and responses are read, but for its URL.
    private static let portableKeys: Set<String> = [
        "prefix", "principal", "context", "shared", "cookies", "cors", "rewrite_links", "hosts", "models", "routes",
        "errors",
    ]
}
