/// A config file, read and checked.
package struct ConfigFile {
    /// Usable only if no diagnostic is an error.
    package let settings: Configuration
    /// In the order of the files, that which was asked for first.
    package let diagnostics: [Diagnostic]

    /// The largest file that counts as a config.
    static let sizeLimit = 8 << 20

    /// Reads a file and everything it refers to.
    package static func read(_ path: String, environment: [String: String], overriding: ConfigOverrides = .init())
        -> ConfigFile
    {
        do {
            let bytes = try ConfigBytes.read(path, limit: sizeLimit).bytes
            guard let text = String(validating: bytes, as: UTF8.self) else {
                return unreadable(path, "the file is not UTF-8 text; save it as UTF-8")
            }
            return parse(text, file: path, environment: environment, overriding: overriding)
        } catch {
            return unreadable(path, "the file cannot be read: \(error.reason)")
        }
    }

    /// Reads the text of a config and the files it includes; `file` is its name in messages, and what their paths are
    /// relative to.
    package static func parse(
        _ yaml: String,
        file: String,
        environment: [String: String],
        overriding: ConfigOverrides = .init()
    ) -> ConfigFile {
        var reader = ConfigReader(environment: environment)
        var draft = ConfigDraft()
        var inclusion = ConfigReader.Inclusion(file)
        guard let root = reader.compose(yaml, file: file, &inclusion) else {
            return ConfigFile(settings: draft.settings, diagnostics: reader.sorted)
        }
        draft.places = reader.section(root, into: &draft)
        if overriding.upstream != nil, draft.upstreams.count > 1 {
            reader.error(
                nil,
                "--upstream takes the place of one upstream's url, but the file names \(draft.upstreams.count)"
            )
        }
        overriding.apply(to: &draft)
        // Held against each other the parts would seem to lack what stands in a file that could not be read.
        if !reader.isIncomplete { draft.validate(&reader) }
        return ConfigFile(settings: draft.finished, diagnostics: reader.sorted)
    }

    /// The settings and the warnings; throws when there is any error.
    func checked() throws(ConfigError) -> (settings: Configuration, warnings: [Diagnostic]) {
        if diagnostics.contains(where: { $0.severity == .error }) { throw ConfigError(diagnostics) }
        return (settings, diagnostics)
    }

    private static func unreadable(_ path: String, _ message: String) -> ConfigFile {
        ConfigFile(settings: Configuration(), diagnostics: [Diagnostic(file: path, place: nil, message: message)])
    }
}

/// What the command line says in place of the file.
package struct ConfigOverrides: Sendable, Equatable {
    /// In place of the one upstream's URL, or as the only upstream where the file names none.
    package var upstream: UpstreamURL?
    package var listen: [Address] = []
    package var admin: Address?
    package var storePath: String?
    package var mode: Configuration.Mode?
    package var workers: Int?
    package var logLevel: Configuration.Log.Level?

    package init(
        upstream: UpstreamURL? = nil,
        listen: [Address] = [],
        admin: Address? = nil,
        storePath: String? = nil,
        mode: Configuration.Mode? = nil,
        workers: Int? = nil,
        logLevel: Configuration.Log.Level? = nil
    ) {
        self.upstream = upstream
        self.listen = listen
        self.admin = admin
        self.storePath = storePath
        self.mode = mode
        self.workers = workers
        self.logLevel = logLevel
    }

    func apply(to draft: inout ConfigDraft) {
        if let upstream {
            if draft.upstreams.isEmpty {
                var only = UpstreamDraft()
                only.settings.name = "upstream"
                draft.upstreams = [only]
            }
            for index in draft.upstreams.indices { draft.upstreams[index].settings.url = upstream }
        }
        if !listen.isEmpty {
            draft.settings.listen = listen
            draft.places["listen"] = nil
        }
        if let admin {
            draft.settings.admin = admin
            draft.places["admin"] = nil
        }
        if let storePath { draft.settings.store.path = storePath }
        if let mode { draft.settings.mode = mode }
        if let workers { draft.settings.workers = workers }
        if let logLevel { draft.settings.log.level = logLevel }
    }
}
