import Admin
import ArgumentParser

struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Have the daemon read its config again.",
        discussion: """
            The daemon takes over what has changed, and prints it. Requests and streams under way are not interrupted:

              larder reload

            A config with mistakes changes nothing: each mistake is printed with its place, and the exit code is 78. To see first \
            what would change, use `larder check --diff`. SIGHUP and `systemctl reload larder` do the same as this command.

            Some keys take effect at a restart only, such as the store's path; they are named.
            """
    )

    @OptionGroup var options: AdminOptions

    func run() throws { try options.present(ReloadResponse.self, try options.reload(dryRun: false)) { $0.text } }
}

extension AdminOptions {
    func reload(dryRun: Bool) throws -> [UInt8] {
        try ask("POST", Target.make(["reload"], [("dry_run", dryRun ? "true" : nil)]))
    }
}

extension ReloadResponse {
    var text: String {
        let now = changes.filter { !$0.needsRestart }
        var parts = warnings
        parts.append(Self.table(now, dryRun ? "a reload would change nothing" : "reloaded; nothing has changed"))
        let later = changes.filter(\.needsRestart)
        if !later.isEmpty {
            parts.append((dryRun ? "needs a restart:" : "not changed; needs a restart:") + "\n" + Self.table(later, ""))
        }
        return parts.joined(separator: "\n\n")
    }

    private static func table(_ changes: [Change], _ nothing: String) -> String {
        if changes.isEmpty { return nothing }
        let rows = changes.map { change in
            let values = [change.former ?? (change.new == nil ? "" : "none"), change.new ?? "none"]
            let isShown = change.former != nil || change.new != nil
            return [change.change, change.key, isShown ? values.joined(separator: " → ") : ""]
        }
        return TextTable(columns: ["", "", ""], rows: rows).text
    }
}
