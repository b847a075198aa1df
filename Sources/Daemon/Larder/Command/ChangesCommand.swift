import Admin
import ArgumentParser
import Glibc

struct ChangesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "Show which objects were created, changed or deleted, or follow the changes.",
        discussion: """
            It prints one line for each change that is still kept, the oldest first. With --follow it prints the changes from \
            now on, until it is interrupted:

              larder changes
              larder changes --since 1795278000123456 --limit 20
              larder changes --follow --model Issue --upstream github
              larder changes --follow --id 583231 --json | jq .kind
              larder changes --since 1795278000123456 --values --json

            Each line begins with the change's number. --since continues after it without a gap, also with --follow. If the \
            daemon restarts, --follow waits for it and continues. If changes are no longer kept, a line on standard error says \
            which are missing.

            created  a response showed the object for the first time, or for the first time after it was deleted or removed
            changed  a member has another value, or a further member is known
            deleted  the object is deleted
            unknown  a write happened, and no response has shown its effect on the object
            """
    )

    @Option(help: .value("name", "Only objects of this model; may be repeated."), completion: .models)
    var model: [String] = []

    @Option(help: .value("id", "Only objects with this identity; may be repeated.")) var id: [String] = []

    @Option(help: .value("name", "Only objects of this upstream; may be repeated."), completion: .upstreams)
    var upstream: [String] = []

    @Option(help: .value("label", "Only objects of the principal with this label; may be repeated."))
    var principal: [String] = []

    @Option(
        help: .value(
            "number",
            "Begin after the change with this number; 0 begins with the oldest kept. (default: 0; with --follow, now)"
        )
    )
    var since: Int64?

    @Option(help: .value("n", "The most changes to print; not with --follow.")) var limit: Int?

    @Flag(help: "Also print each object's newest known members.") var values = false
    @Flag(name: .shortAndLong, help: "Follow the changes from now on.") var follow = false
    @OptionGroup var options: AdminOptions

    func validate() throws {
        try GivenText.check(["--model": model, "--id": id, "--upstream": upstream, "--principal": principal])
        if let limit {
            guard !follow else { throw ValidationError("--follow has no end: leave out --limit") }
            guard limit > 0 else { throw ValidationError("--limit: \(limit) is not a number of changes") }
        }
        if let since, since < 0 { throw ValidationError("--since: \(since) is not the number of a change") }
    }

    private var filter: [(String, String?)] {
        model.map { ("model", $0) } + id.map { ("id", $0) } + upstream.map { ("upstream", $0) }
            + principal.map { ("principal", $0) } + [("values", values ? "true" : nil)]
    }

    func run() throws { if follow { try listen() } else { try list() } }

    private func list() throws {
        var position = "\(since ?? 0)"
        var left = limit ?? .max
        while true {
            let query = filter + [("since", position), ("limit", "\(min(1_000, left))")]
            let bytes = try options.ask("GET", Target.make(["changes"], query))
            let page = try options.decode(ChangesResponse.self, bytes)
            if options.json {
                try options.present(ChangesResponse.self, bytes) { _ in "" }
            } else {
                for reset in page.resets ?? [] { Terminal.complain("larder: \(reset.message)") }
                for change in page.changes { Terminal.say(Self.line(change)) }
            }
            left -= page.changes.count
            guard page.more, left > 0 else { return }
            position = page.next
        }
    }

    private static func line(_ change: ChangeResponse) -> String {
        let context = change.context.isEmpty ? nil : HumanText.line(change.context, width: 40)
        let name = "\(change.model) \(HumanText.line(change.id, width: 60))"
        return [
            "\(change.sequence)", change.time, change.kind, name, change.upstream, change.principal, context,
            change.object?.text,
        ].compactMap(\.self).joined(separator: "  ")
    }

    private func listen() throws {
        let target = Target.make(["changes"], filter + [("since", since.map { "\($0)" })])
        let first = try options.client()
        var position = try first.listen(target, silence: AdminClient.patience, each: show)
        var (failures, isAway) = (0, false)
        while true {
            do throws(AdminClientError) {
                // It may have another token now.
                let client = try options.client(at: first.address)
                if isAway {
                    _ = try client.send("GET", "/mode")
                    Terminal.complain("larder: the daemon at \(client.address) is back")
                    isAway = false
                }
                position = try client.listen(target, after: position, silence: AdminClient.patience, each: show)
                failures = 0
            } catch {
                if error.isAbsence {
                    if !isAway {
                        Terminal.complain(
                            "larder: the daemon at \(first.address) has ended; waiting until it is back (Ctrl-C ends this)"
                        )
                    }
                    (failures, isAway) = (0, true)
                } else {
                    if failures == 0 { Terminal.complain("larder: \(error.description); trying again") }
                    failures += 1
                    guard failures < AdminClient.patience else { throw ExitCode.failed }
                }
            }
            sleep(1)
            Terminal.endIfUnread()
        }
    }

    private func show(_ event: ReceivedEvent) {
        if event.name == ChangeReset.eventName {
            let reset = try? options.decode(ChangeReset.self, Array(event.data.utf8))
            Terminal.complain("larder: \(reset?.message ?? event.data)")
        } else if options.json {
            Terminal.out(json: event.data)
        } else if let change = try? options.decode(ChangeResponse.self, Array(event.data.utf8)) {
            Terminal.say(Self.line(change))
        }
        Terminal.endIfUnread()
    }
}
