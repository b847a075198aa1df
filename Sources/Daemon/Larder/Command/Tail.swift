import Admin
import ArgumentParser
import Glibc
import HTTPSemantics
import Settings

/// `larder tail`: the requests of a running daemon, as they end.
struct Tail: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the requests to the running daemon as they happen.",
        discussion: """
            It prints the last requests, then each new one when its response is complete, until Ctrl-C or the daemon's end:

              larder tail
              larder tail --lines 0 --json | jq 'select(.outcome == "miss") | .url'

            A line has the time (UTC), the status, how the response came about, how long it took, its size, the method, the \
            upstream and the URL without credentials. The outcome is one of hit, stale, composed, miss, revalidated, \
            offline, error and bypass. Hits from memory are noted only while somebody watches: the first lines may lack them.
            """
    )

    @Option(
        name: [.customShort("n"), .long],
        help: ArgumentHelp("How many of the last requests to begin with.", valueName: "n")
    )
    var lines = 10

    @OptionGroup var options: AdminOptions

    func validate() throws {
        guard (0...1000).contains(lines) else {
            throw ValidationError("--lines: \(lines) is not a number from 0 to 1000")
        }
    }

    /// Seconds of silence after which the daemon counts as gone; a stream is never silent for longer than 15.
    private static let patience = 60

    func run() throws {
        // Ending it by a signal is no failure.
        for number in [SIGINT, SIGTERM] { signal(number) { _ in _exit(0) } }
        let client = try options.client()
        let page = try client.send("GET", Target.make(["requests"], [("limit", "\(max(1, lines))")]))
        let last = try options.decode(RequestsResponse.self, page)
        let colours = Terminal.hasColours(on: 1)
        if lines > 0 { last.requests.forEach { show($0, colours) } }
        let target = Target.make(["requests"], [("follow", "true"), ("after", "\(last.next)")])
        _ = try client.listen(target, silence: Self.patience) { event in
            take(event, colours)
            // The reader of the output is gone (`| head`).
            if Terminal.isClosed { Glibc.exit(0) }
        }
        Terminal.complain("larder: the daemon at \(client.address) has ended")
    }

    private func take(_ event: ReceivedEvent, _ colours: Bool) {
        let data = Array(event.data.utf8)
        switch event.name {
        case RequestsMissed.eventName:
            guard let missed = try? options.decode(RequestsMissed.self, data).missed else { return }
            Terminal.complain("larder: \(HumanText.count(Int(missed), "request")) came too fast to be shown")
        case RequestsResponse.Request.eventName:
            if let request = try? options.decode(RequestsResponse.Request.self, data) { show(request, colours) }
        default: break
        }
    }

    private func show(_ request: RequestsResponse.Request, _ colours: Bool) {
        let line =
            options.json ? AccessLogLine.json(request) + "\n" : AccessLogLine.text(request, .short, colours: colours)
        Terminal.say(String(line.dropLast()))
    }
}
