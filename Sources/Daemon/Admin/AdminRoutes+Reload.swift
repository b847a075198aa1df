import HTTPSemantics
import Settings

extension AdminRoute {
    static let reload: [AdminRoute] = documented([
        "Reads the config again and puts it in force. A config with mistakes changes nothing: 422 with each mistake and its place. Requests and streams under way are not interrupted; stored objects are brought to changed models in the background. What only a restart changes is named.":
            .json(
                "POST /reload",
                query: Parameter.documented([
                    "`true`: change nothing, and say what would change.": Parameter("dry_run", .boolean)
                ])
            ) { request, daemon in ReloadResponse(try await daemon.reload(dryRun: try request.flag("dry_run"))) }
    ])
}

/// `POST /reload`.
package struct ReloadResponse: AdminBody {
    static let sentences = [
        "config": "The file that was read; absent if the daemon was started with a URL alone.",
        "dryRun": "Whether nothing was changed.",
        "changes": "What has changed, or would change, in the order of the reference.",
        "needsRestart": "The keys of those changes that take effect at a restart only.",
        "warnings": "The warnings about the config, as `larder check` prints them.",
    ]
    package var config: String?
    package var dryRun: Bool
    package var changes: [Change]
    var needsRestart: [String]
    package var warnings: [String]

    package struct Change: AdminBody {
        static let sentences = [
            "key": "The key in the config; of models and routes the name and the path.",
            "change": "`added`, `removed` or `changed`.",
            "former": "The former value; absent if there was none, if it is secret, or more than one value.",
            "new": "The same of the new value.", "needsRestart": "Whether it takes effect at a restart only.",
        ]
        package var key: String
        package var change: String
        package var former: String?
        package var new: String?
        package var needsRestart: Bool

        init(_ change: ConfigChange) {
            (key, self.change, needsRestart) = (change.key, change.kind.rawValue, change.needsRestart)
            (former, new) = (change.former, change.new)
        }
    }

    init(_ reload: Reload) {
        (config, dryRun, needsRestart) = (reload.path, reload.isDryRun, reload.keysForRestart)
        changes = reload.changes.map(Change.init)
        warnings = reload.warnings.map(\.description)
    }
}

extension ProblemDocument {
    init(_ error: ConfigurationReplacementError) {
        switch error {
        case .mistakes(let diagnostics):
            let errors = diagnostics.filter { $0.severity == .error }
            self.init(422, "the config has mistakes, so nothing has changed:\n\(error)")
            extra = [("errors", .array(errors.map { .string($0.description) }))]
        case .invalid, .unreadable: self.init(422, "nothing has changed: \(error)")
        case .store(let error): self.init(error)
        case .unavailable, .recording, .underWay, .noSource: self.init(409, "nothing has changed: \(error)")
        }
    }
}
