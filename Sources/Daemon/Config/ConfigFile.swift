import Yams

/// A config file, read and checked.
struct ConfigFile {
    /// Usable only if no diagnostic is an error.
    let settings: Settings
    /// In the order of the file.
    let diagnostics: [Diagnostic]

    /// The largest file that is taken for a config.
    static let sizeLimit = 8 << 20

    /// Reads a file and everything it refers to.
    static func read(_ path: String, environment: [String: String], overriding: ConfigOverrides = .init()) -> ConfigFile
    {
        do {
            let bytes = try ConfigBytes.read(path, limit: sizeLimit).bytes
            guard let text = String(validating: bytes, as: UTF8.self) else {
                return unreadable(path, "the file is not UTF-8 text")
            }
            return parse(text, file: path, environment: environment, overriding: overriding)
        } catch {
            return unreadable(path, "the file cannot be read: \(error.reason)")
        }
    }

    /// Reads the text of a config; `file` is its name in messages.
    static func parse(
        _ yaml: String,
        file: String,
        environment: [String: String],
        overriding: ConfigOverrides = .init()
    ) -> ConfigFile {
        var reader = ConfigReader(file: file, environment: environment, text: yaml)
        var draft = ConfigDraft()
        do {
            // An empty file, or one of comments only, has no root.
            let root = try Yams.compose(yaml: yaml) ?? .mapping([:])
            guard root.mapping != nil || root.isNothing else {
                reader.misfit(root, wanted: "keys with values")
                return ConfigFile(settings: draft.settings, diagnostics: reader.diagnostics)
            }
            draft.places = reader.section(root.isNothing ? .mapping([:]) : root, into: &draft)
        } catch {
            let (place, message) = syntaxError(error)
            let hint = reader.line(place).contains("${") ? "; a value with \"${…}\" needs quotes between braces" : ""
            reader.error(place, message + hint)
            return ConfigFile(settings: draft.settings, diagnostics: reader.diagnostics)
        }
        if overriding.upstream != nil, draft.upstreams.count > 1 {
            reader.error(
                nil,
                "--upstream takes the place of one upstream's url, but the file names \(draft.upstreams.count)"
            )
        }
        overriding.apply(to: &draft)
        draft.validate(&reader)
        let sorted = reader.diagnostics.enumerated().sorted {
            ($0.element.place ?? Place(line: 0, column: 0), $0.offset) < (
                $1.element.place ?? Place(line: 0, column: 0), $1.offset
            )
        }
        return ConfigFile(settings: draft.finished, diagnostics: sorted.map(\.element))
    }

    /// The settings and the warnings; throws when there is any error.
    func checked() throws(ConfigError) -> (settings: Settings, warnings: [Diagnostic]) {
        if diagnostics.contains(where: { $0.severity == .error }) { throw ConfigError(diagnostics) }
        return (settings, diagnostics)
    }

    private static func unreadable(_ path: String, _ message: String) -> ConfigFile {
        ConfigFile(settings: Settings(), diagnostics: [Diagnostic(file: path, place: nil, message: message)])
    }

    /// What is wrong with the YAML as such.
    private static func syntaxError(_ error: any Error) -> (Place?, String) {
        switch error as? YamlError {
        case .scanner(let context, let problem, let mark, _)?, .parser(let context, let problem, let mark, _)?:
            let aliasHint =
                context?.text.contains("alias") == true || problem.contains("alias")
                ? "; a value that begins with \"*\" needs quotes" : ""
            let where_ = context.map { ", \($0.text)" } ?? ""
            return (Place(line: mark.line, column: mark.column), "this is not YAML: \(problem)\(where_)\(aliasHint)")
        case .composer(_, let problem, let mark, _)?:
            let hint = problem.contains("alias") ? "; a value that begins with \"*\" needs quotes" : ""
            return (Place(line: mark.line, column: mark.column), "this is not YAML: \(problem)\(hint)")
        case .duplicatedKeysInMapping(let duplicates, let context)?:
            let names = duplicates.map { "\"\($0)\"" }.joined(separator: ", ")
            return (
                Place(line: context.mark.line, column: context.mark.column),
                "\(names) stands twice among the same keys; keep one of them"
            )
        case .reader(let problem, _, _, _)?: return (nil, "this is not YAML: \(problem)")
        default: return (nil, "this is not YAML: \(error)")
        }
    }
}

/// What the command line says in place of the file.
struct ConfigOverrides: Sendable, Equatable {
    /// In place of the one upstream's URL, or as the only upstream where the file names none.
    var upstream: UpstreamURL?
    var listen: [Address] = []
    var admin: Address?
    var storePath: String?
    var mode: Settings.Mode?
    var workers: Int?
    var logLevel: Settings.Log.Level?

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
