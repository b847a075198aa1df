import Glibc
package import HTTPSemantics
package import Yams

package struct ConfigFile {
    /// Usable only if no diagnostic is an error.
    package let settings: Configuration
    /// In the order of the files, beginning with the main file.
    package let diagnostics: [Diagnostic]
    /// Whether a part of it could not be read at all, so that keys seem to be missing.
    var isIncomplete = false

    static let sizeLimit = 8 << 20

    /// Reads a file and all files that it includes.
    package static func read(_ path: String, environment: [String: String], overriding: ConfigOverrides = .init())
        -> ConfigFile
    {
        do {
            let bytes = try FileBytes.read(path, limit: sizeLimit).bytes
            guard let text = String(validating: bytes, as: UTF8.self)
            else { return unreadable(path, "the file is not UTF-8 text; save it as UTF-8") }
            return parse(text, file: path, environment: environment, overriding: overriding)
        } catch { return unreadable(path, "the file cannot be read: \(error.reason)") }
    }

    /// Parses the text of a config and the files that it includes.
    ///
    /// `file` is its name in messages, and its folder is the base of relative paths.
    package static func parse(
        _ yaml: String,
        file: String,
        environment: [String: String],
        overriding: ConfigOverrides = .init()
    ) -> ConfigFile {
        var reader = ConfigReader(environment: environment)
        var draft = ConfigDraft()
        if let host = overriding.bind { draft.bind(to: host) }
        reader.inclusion = ConfigReader.Inclusion(file)
        guard let root = reader.compose(yaml, file: file) else {
            return ConfigFile(settings: draft.settings, diagnostics: reader.sorted, isIncomplete: true)
        }
        draft.places = reader.section(root, into: &draft)
        if overriding.upstream != nil, draft.upstreams.count > 1 {
            reader.error(
                nil,
                "--upstream replaces one upstream's url, but the file has \(draft.upstreams.count) upstreams"
            )
        }
        if let advice = overriding.missingPath(in: draft) { reader.warning(nil, advice) }
        overriding.apply(to: &draft)
        // Without the unreadable file these checks would report things as missing.
        if !reader.isIncomplete { draft.validate(&reader) }
        return ConfigFile(settings: draft.finished, diagnostics: reader.sorted, isIncomplete: reader.isIncomplete)
    }

    /// The same file with changed settings.
    package func completed(_ change: (inout Configuration) -> Void) -> ConfigFile {
        var settings = settings
        change(&settings)
        return ConfigFile(settings: settings, diagnostics: diagnostics, isIncomplete: isIncomplete)
    }

    /// The diagnostics that keep it from being used.
    package var errors: [Diagnostic] { diagnostics.filter { $0.severity == .error } }

    /// The errors that may hide how to reach the daemon: by its admin address, or by its store.
    package var errorsAboutAdmin: [Diagnostic] {
        errors.filter { error in isIncomplete || ["admin", "store"].contains { error.message.hasPrefix($0) } }
    }

    private static func unreadable(_ path: String, _ message: String) -> ConfigFile {
        let diagnostic = Diagnostic(file: path, place: nil, message: message)
        return ConfigFile(settings: Configuration(), diagnostics: [diagnostic], isIncomplete: true)
    }

    // MARK: Portable

    /// The part of a config that determines how requests and responses are interpreted, as YAML: upstreams, models, routes,
    /// errors.
    ///
    /// Included files are merged into it. Machine-specific and secret keys are left out: addresses, credentials, certificates,
    /// proxies, the daemon's own keys.
    ///
    /// - Parameters:
    ///   - path: the file; nil if only a URL was given.
    ///   - settings: as the file was read, for URLs that were given in its place.
    package static func portable(_ path: String?, _ settings: Configuration, environment: [String: String]) -> String {
        var root = Node.Mapping([])
        if let path, let bytes = try? FileBytes.read(path, limit: sizeLimit).bytes {
            var reader = ConfigReader(environment: environment)
            reader.inclusion = ConfigReader.Inclusion(path)
            let text = String(decoding: bytes, as: UTF8.self)
            root = reader.compose(text, file: path)?.mapping ?? root
        }
        let named = Dictionary(
            (root["upstreams"]?.mapping ?? Node.Mapping([])).map { ($0.key.scalar?.string ?? "", $0.value) }
        ) { first, _ in first }
        let upstreams = settings.upstreams.map { upstream -> (Node, Node) in
            let known = named[upstream.name]?.mapping ?? Node.Mapping([])
            var members: [(Node, Node)] = [(Node("url"), Node(upstream.url.description))]
            members += known.filter { portableKeys.contains($0.key.scalar?.string ?? "") }.map { ($0.key, $0.value) }
            return (Node(upstream.name), .mapping(Node.Mapping(members)))
        }
        var members: [(Node, Node)] = [(Node("upstreams"), .mapping(Node.Mapping(upstreams)))]
        members += portableSections.compactMap { name in root[Node(name)].map { (Node(name), $0) } }
        return (try? Yams.serialize(node: .mapping(Node.Mapping(members)), width: 120, allowUnicode: true)) ?? ""
    }

    /// The keys of an upstream that determine how its requests and responses are interpreted, except its URL.
    private static let portableKeys: Set<String> = [
        "prefix", "aliases", "principal", "context", "shared", "cookies", "cors", "rewrite_links", "hosts", "models",
        "routes", "errors",
    ]

    /// The other keys at the top of the file that do.
    private static let portableSections = ["models", "routes", "errors"]

    /// The keys in a recording's config that `portable` never writes, each with its place.
    ///
    /// A recording may come from elsewhere. Such keys would make Larder read and write files of its user, or listen to others.
    ///
    /// - Parameter root: without the recording's own keys.
    package static func keys(notAllowedInRecordings root: Node) -> [(key: String, place: Place?)] {
        func others(_ node: Node?, _ known: [String]) -> [(key: String, place: Place?)] {
            (node?.mapping?.keys ?? Node.Mapping([]).keys).filter { !known.contains($0.scalar?.string ?? "") }
                .map { ($0.scalar?.string ?? $0.kindInWords, $0.place) }
        }
        let upstreams = root["upstreams"]?.mapping.map { $0.map(\.value) } ?? []
        return others(root, ["upstreams"] + portableSections)
            + upstreams.flatMap { others($0, ["url"] + portableKeys) }
    }
}

/// Values from the command line that override the file; nil and empty lists leave it as it is.
package struct ConfigOverrides: Sendable, Equatable {
    /// Overrides the only upstream's URL, or is the only upstream if the file has none.
    package var upstream: UpstreamURL?
    var listen: [Address] = []
    var admin: [Address] = []
    var storePath: String?
    package var mode: Configuration.Mode?
    package var workers: Int?
    package var logLevel: Configuration.Log.Level?
    package var accessLog: Configuration.AccessLog.Format?
    /// Replaces every upstream's `fresh_unsaid`.
    package var freshUnsaid: Duration?
    /// The host of the default addresses, which stand where the file names none.
    package var bind: String?
    /// Further names of this server, for every upstream.
    package var hosts: [String] = []

    package init(
        upstream: UpstreamURL? = nil,
        listen: [Address] = [],
        admin: [Address] = [],
        storePath: String? = nil
    ) {
        (self.upstream, self.listen, self.admin, self.storePath) = (upstream, listen, admin, storePath)
    }

    /// What to write instead if the URL replaces that of another server, and may lack the path of its API.
    ///
    /// An alias for the root names the path below which such servers have it.
    func missingPath(in draft: ConfigDraft) -> String? {
        guard let upstream, upstream.basePath.isEmpty, upstream.mayBeServerOfTheirOwn, draft.upstreams.count == 1,
            let former = draft.upstreams.first?.settings, former.url.host != upstream.host,
            let alias = former.aliases.first(where: { $0.target.isEmpty })
        else { return nil }
        return "--upstream \(upstream): servers of one's own usually have this API below \(alias.path); "
            + "if this one does, write --upstream \(upstream)\(alias.path)"
    }

    func apply(to draft: inout ConfigDraft) {
        if let upstream {
            if draft.upstreams.isEmpty {
                draft.upstreams = [UpstreamDraft(settings: .init(name: "upstream"))]
            }
            for index in draft.upstreams.indices { draft.upstreams[index].settings.url = upstream }
        }
        if !listen.isEmpty {
            draft.settings.listen = listen
            draft.places["listen"] = nil
        }
        if !admin.isEmpty {
            draft.settings.admin = admin
            draft.places["admin"] = nil
        }
        if let storePath { draft.settings.store.path = storePath }
        if let mode { draft.settings.mode = mode }
        if let workers { draft.settings.workers = workers }
        if let logLevel { draft.settings.log.level = logLevel }
        if let accessLog { draft.settings.accessLog.format = accessLog }
        for index in draft.upstreams.indices {
            if let freshUnsaid { draft.upstreams[index].settings.freshUnsaid = freshUnsaid }
            draft.upstreams[index].settings.hosts += hosts
        }
    }
}

/// The files of a config, beginning with the main file.
///
/// They share one space of lines, like a compiler's sources: each begins after the last line of the previous one. So a `Place`
/// identifies its file, and a node may move into another file's tree.
struct ConfigSources {
    private struct File {
        let name: String
        /// The number of lines before its first.
        let offset: Int
        let lines: [Substring]
    }

    private var files: [File] = []
    private var count = 0

    var mainName: String { files.first?.name ?? "" }

    /// Adds a file; returns the number of lines before its first.
    mutating func add(_ name: String, text: String) -> Int {
        // All line ends of YAML 1.1: counting too many lines does no harm, counting too few does.
        let ends: Set<Unicode.Scalar> = ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"]
        let offset = count
        count += text.unicodeScalars.reduce(1) { ends.contains($1) ? $0 + 1 : $0 }
        files.append(
            File(name: name, offset: offset, lines: text.split(separator: "\n", omittingEmptySubsequences: false))
        )
        return offset
    }

    /// The file of a place, and the place within it; without a place, the main file.
    func resolve(_ place: Place?) -> (file: String, place: Place?) {
        guard let place, let file = file(of: place) else { return (mainName, place) }
        return (file.name, Place(line: place.line - file.offset, column: place.column))
    }

    /// "line 7", or "line 7 of base.yaml" if that is not the file of the other place.
    func words(for place: Place?, seenFrom other: Place?) -> String {
        let (there, here) = (resolve(place), resolve(other))
        let line = "line \(there.place?.line ?? 0)"
        return there.file == here.file ? line : "\(line) of \(there.file)"
    }

    func line(_ place: Place?) -> Substring {
        guard let place, let file = file(of: place) else { return "" }
        let index = place.line - file.offset - 1
        return file.lines.indices.contains(index) ? file.lines[index] : ""
    }

    private func file(of place: Place) -> File? { files.last { $0.offset < place.line } }
}

package struct Defaults: Sendable {
    private let environment: [String: String]

    package init(environment: [String: String]) { self.environment = environment }

    /// The store: in the service's state under systemd, else in the user's cache; nil without a home.
    package var storePath: String? {
        // systemd separates several directories by colons.
        if let state = environment["STATE_DIRECTORY"]?.split(separator: ":").first { return "\(state)/larder.db" }
        if let cache = absolute("XDG_CACHE_HOME") { return "\(cache)/larder/larder.db" }
        return absolute("HOME").map { "\($0)/.cache/larder/larder.db" }
    }

    /// The folders of config files, the user's own first.
    package var configFolders: [String] {
        let personal = absolute("XDG_CONFIG_HOME") ?? absolute("HOME").map { "\($0)/.config" }
        return [personal.map { "\($0)/larder" }, "/etc/larder"].compactMap(\.self)
    }

    /// The XDG specification ignores relative paths.
    private func absolute(_ name: String) -> String? { environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
}

extension Configuration {
    /// The settings without what a recording's config allows to web pages and other names of this machine: that counts while
    /// it is replayed, and not where upstreams are asked.
    package var withoutBrowserAccess: Configuration {
        var settings = self
        for index in settings.upstreams.indices {
            (settings.upstreams[index].cors, settings.upstreams[index].hosts) = ([], [])
        }
        return settings
    }
}
