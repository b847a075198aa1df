import Admin
import ArgumentParser
import Dispatch
import Glibc
import HTTPSemantics
import Settings

struct DashboardCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dashboard",
        abstract: "Open the dashboard in a browser, logged in.",
        discussion: """
            The dashboard shows upstreams, requests, objects, documents, changes and warnings of the running daemon. The link \
            logs one browser in, once and for a short time; without a desktop it is printed.

              larder dashboard
              larder dashboard --print

            Other users of this machine can see the browser's command line, which contains the link. Use --print to avoid \
            that.
            """
    )

    @Flag(help: "Print the link instead of opening it.") var print = false
    @OptionGroup var options: AdminOptions

    func run() throws {
        let response = try options.decode(LoginCodeResponse.self, try options.ask("POST", "/login/codes"))
        guard let page = try page(response) else {
            throw CommandFailure(
                "the daemon's admin side listens on a Unix socket only, which no browser can open: give it a TCP address as well, such as `admin: 127.0.0.1:8788`"
            )
        }
        let link = "\(page)#login=\(response.code)"
        if options.json { return Terminal.out(#"{"url": "\#(link)"}"#) }
        if !print, Browser.open(link, Environment.variables) { return Terminal.out("opened \(page) in your browser") }
        Terminal.complain("Open this link within \(response.seconds) seconds; it works once:")
        Terminal.out(link)
    }

    /// The address at which this command reaches the daemon; over a Unix socket, the one that the daemon reports.
    private func page(_ response: LoginCodeResponse) throws -> String? {
        let address = try options.client().address
        return address.isUnix ? response.url : address.forBrowsers.map { "http://\($0)/" }
    }
}

private enum Browser {
    /// Opens a URL; returns false if there is no desktop, or it failed.
    static func open(_ url: String, _ environment: [String: String]) -> Bool {
        // Without a desktop xdg-open would start a terminal browser in this terminal.
        let hasDesktop = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].contains { environment[$0]?.isEmpty == false }
        let folders = (environment["PATH"] ?? "").split(separator: ":")
        guard hasDesktop, folders.contains(where: { access("\($0)/xdg-open", X_OK) == 0 }) else { return false }
        let command = ChildCommand(["xdg-open", url])
        let end = DispatchSemaphore(value: 0)
        command.start(environment) { end.signal() }
        // Some browsers stay in the foreground, which means success.
        guard end.wait(timeout: .now() + 5) == .success else { return true }
        return command.status == 0
    }
}
