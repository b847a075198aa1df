import Admin
import ArgumentParser
import Glibc
import HTTPSemantics
import Proxy
import Settings

struct TailCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Show the requests to the running daemon as they happen.",
        discussion: """
            It prints the last requests, then each new one when its response is complete, until Ctrl-C:

              larder tail
              larder tail --program PyGithub --status 5xx
              larder tail --lines 0 --json | jq 'select(.outcome == "miss") | .url'

            A line has the time (UTC), the status, how the response came about, how long it took, its size, the method, the \
            upstream and the URL without credentials. The outcome is one of hit, stale, composed, miss, revalidated, \
            offline, stale-if-error, error and bypass. Hits from memory are logged only while somebody watches. The first lines may lack them. If \
            the daemon restarts, the command waits for it and continues.
            """
    )

    @Option(
        name: [.customShort("n"), .long],
        help: .value("n", "How many of the last requests to begin with, of those wanted.")
    )
    var lines = 10

    @Option(help: .value("name", "Only requests to this upstream.")) var upstream: String?

    @Option(help: .value("path", "Only requests of this route, as the config writes its path.")) var route: String?

    @Option(help: .value("program", "Only requests of this client program.")) var program: String?

    @Option(help: .value("label", "Only requests with this principal's credentials.")) var principal: String?

    @Option(help: .value("outcome", "Only requests with this outcome, such as miss.")) var outcome: Outcome?

    @Option(help: .value("status", "Only responses with this status: 404, or 5xx.")) var status: String?

    @OptionGroup var options: AdminOptions

    func validate() throws {
        guard status?.wholeMatch(of: /[1-5](xx|[0-9]{2})/) != nil || status == nil else {
            throw ValidationError("--status: give a status such as 404, or 5xx for all that begin with 5")
        }
        try GivenNumber.check("--lines", lines, in: 0...1000)
    }

    func run() throws {
        // Ending it by a signal is no failure.
        for number in [SIGINT, SIGTERM] { signal(number) { _ in _exit(0) } }
        var last: RequestsResponse.Request?
        var remedies: Set<String> = []
        let first = try options.client()
        try checkNames(first)
        try follow(first, &last, &remedies)
        var said = ""
        while true {
            sleep(1)
            Terminal.endIfUnread()
            do {
                // It may have another token now.
                try follow(try options.client(at: first.address), &last, &remedies, isBack: true)
                said = ""
            } catch let error as AdminClientError where error.isAbsence || error.description == said {
                continue
            } catch let error as AdminClientError {
                said = error.description
                Terminal.complain("larder: \(said); trying again")
            }
        }
    }

    /// Fails for an upstream or a route that the daemon does not know: no request would ever be shown.
    private func checkNames(_ client: AdminClient) throws {
        guard upstream != nil || route != nil else { return }
        do throws(AdminClientError) {
            _ = try client.send("GET", Target.make(["history"], [("upstream", upstream), ("route", route)]))
        } catch {
            if error.status == 400 { throw ValidationError(error.description) }
            throw error
        }
    }

    /// Shows requests until the daemon ends, which was gone if it `isBack`.
    private func follow(
        _ client: AdminClient,
        _ last: inout RequestsResponse.Request?,
        _ remedies: inout Set<String>,
        isBack: Bool = false
    ) throws {
        let isFiltered = [upstream, route, program, principal, status].contains { $0 != nil } || outcome != nil
        let count = isBack || isFiltered ? 1000 : max(1, lines)
        let bytes = try client.send("GET", Target.make(["requests"], [("limit", "\(count)")]))
        let page = try options.decode(RequestsResponse.self, bytes)
        if isBack { Terminal.complain("larder: the daemon at \(client.address) is back") }
        // A daemon that has restarted counts from 1 again.
        let isSame = last.map { last in page.requests.contains { $0.id == last.id && $0.time == last.time } } ?? false
        for request in page.requests.filter(isWanted).suffix(isBack ? count : lines) {
            if let last, isSame, request.id <= last.id { continue }
            show(request, &remedies)
        }
        last = page.requests.last ?? last
        let target = Target.make(["requests"], [("follow", "true"), ("after", "\(page.next)")])
        _ = try client.listen(target, silence: AdminClient.patience) { event in
            if let request = take(event, &remedies) { last = request }
            Terminal.endIfUnread()
        }
        Terminal.complain(
            "larder: the daemon at \(client.address) has ended; waiting until it is back (Ctrl-C ends this)"
        )
    }

    /// Shows what an event says; returns the request if it is about one.
    private func take(_ event: ReceivedEvent, _ remedies: inout Set<String>) -> RequestsResponse.Request? {
        let data = Array(event.data.utf8)
        switch event.name {
        case RequestsMissed.eventName:
            guard let missed = try? options.decode(RequestsMissed.self, data).missed else { return nil }
            Terminal.complain("larder: \(HumanText.count(Int(missed), "request")) came too fast to be shown")
        case RequestsResponse.Request.eventName:
            guard let request = try? options.decode(RequestsResponse.Request.self, data) else { return nil }
            show(request, &remedies)
            return request
        default: break
        }
        return nil
    }

    private func isWanted(_ request: RequestsResponse.Request) -> Bool {
        func fits(_ wanted: String?, _ value: String?) -> Bool { wanted == nil || wanted == value }
        let isOfStatus = status.map { "\(request.status)".hasPrefix($0.prefix { $0 != "x" }) } ?? true
        return isOfStatus && fits(upstream, request.upstream) && fits(route, request.route)
            && fits(program, request.program) && fits(principal, request.principal)
            && fits(outcome?.rawValue, request.outcome)
    }

    /// Shows a request; `said` has the remedies that were named already.
    private func show(_ request: RequestsResponse.Request, _ said: inout Set<String>) {
        guard isWanted(request) else { return }
        if let remedy = request.remedy, said.insert(remedy).inserted {
            Terminal.complain(
                "larder: responses such as the next one say nothing of caching; with this line of config these requests are hits: "
                    + remedy
            )
        }
        let format: Configuration.AccessLog.Format = options.json ? .json : .short
        let line = AccessLogLine.text(request, format, colours: Terminal.hasColours(on: 1))
        // Nothing in it needs an escape any more, and its colours are escapes themselves.
        Terminal.out(Array(HumanText.folded(String(line.dropLast()), width: Terminal.width).utf8))
    }
}

extension Outcome: ExpressibleByArgument {}
