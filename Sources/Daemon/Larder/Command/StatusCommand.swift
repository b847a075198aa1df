import Admin
import ArgumentParser

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show on one screen how the daemon does.",
        discussion: """
            It shows what the daemon serves, how its upstreams do, its hits, its store and its memory, and what is to be known or \
            done:

              larder status
              larder status --json

            The exit code is 1 if something needs a person, or if the daemon does not respond.

            With --ready it only asks whether the daemon serves requests, for the health check of a container. It needs no token, \
            and the exit code does not depend on the upstreams.
            """
    )

    @OptionGroup var options: AdminOptions
    @Flag(help: "Only say whether the daemon serves requests.") var ready = false

    func run() throws {
        if ready { return try showReadiness() }
        let response = try options.ask("GET", "/status")
        let status = try options.decode(Status.self, response)
        try options.present(Status.self, response) { $0.text }
        if !status.ok { throw ExitCode.failed }
    }

    private func showReadiness() throws {
        let client = AdminClient(address: try options.client().address, token: nil)
        try options.present(HealthResponse.self, try client.send("GET", "/readyz")) { $0.status }
    }
}

extension Status {
    fileprivate var text: String {
        var facts = TextTable(columns: ["", ""])
        facts.rows = [
            ["larder", "\(version), up \(HumanText.longDuration(uptime)), \(mode)"], ["config", config ?? "none"],
            ["listen", listen.joined(separator: ", ")], ["admin", admin.joined(separator: ", ")],
            ["last hour", lastHour.text], ["since start", sinceStart.text],
            [
                "store",
                "\(HumanText.bytes(store.bytes)) of \(HumanText.bytes(store.maximum)), "
                    + "\(HumanText.counts(store.objects, store.documents)), \(store.path)",
            ],
            [
                "memory",
                "\(HumanText.bytes(memory.bytes)) of \(HumanText.bytes(memory.maximum)), "
                    + HumanText.count(memory.responses, "response"),
            ],
        ]
        if let fleet { facts.rows.append(["fleet", fleet.text]) }
        var table = TextTable(
            columns: ["upstream", "state", .right("requests"), .right("failures"), .right("limit"), "last error"]
        )
        table.rows = upstreams.map { upstream in
            let limit = upstream.rateLimit.map { "\($0.remaining)" + ($0.limit.map { "/\($0)" } ?? "") }
            let error = upstream.lastError.map { "\($0.time) \($0.message)" }
            return [
                upstream.name, upstream.state, "\(upstream.requests)", "\(upstream.failures)", limit ?? "", error ?? "",
            ]
        }
        let remarks = notes.map { ($0.needsAttention ? "! " : "- ") + $0.text }
        let end = remarks.isEmpty ? "nothing needs attention" : remarks.joined(separator: "\n")
        return [facts.text, table.text, end].joined(separator: "\n\n")
    }
}

extension FleetStatus {
    fileprivate var text: String {
        guard connected else { return "alone, \(server) cannot be used" }
        let parts = [
            "\(HumanText.count(Int(clamping: found), "response")) of others", "\(shared) shared",
            queued == 0 ? nil : "\(queued) announcements waiting", "\(HumanText.tenths(delay * 1000)) ms behind",
            server,
        ]
        return parts.compactMap(\.self).joined(separator: ", ")
    }
}

extension Status.Requests {
    fileprivate var text: String {
        guard let hitRatio else { return "no requests" }
        let parts = [
            HumanText.count(Int(requests), "request"), "\(HumanText.tenths(hitRatio * 100)) % hits",
            HumanText.count(Int(errors), "error"),
        ]
        return parts.joined(separator: ", ")
    }
}
